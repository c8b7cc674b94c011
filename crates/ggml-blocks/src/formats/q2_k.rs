//! `Q2_K`: 4 levels, 16 sub-blocks of 16 with 4-bit scales and minimums. 2.625 bits per weight.
//!
//! ```text
//! byte  0  scales[16]  byte j, sub-block j: low nibble scale, high nibble minimum
//!      16  qs[64]      half h of 128 weights in bytes 32h..32h+32: bits 2k..2k+2 of byte l
//!                      are weight 128h + 32k + l
//!      80  d           f16 scale of the scales
//!      82  dmin        f16 scale of the minimums
//! ```
//!
//! Used by the `Q2_K` and `Q2_K_S` mixes.
//! Meets activations in `Q8_K`.

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
use crate::formats::levels::{bytes16, field, put, scaled};
use crate::simd::Simd;

/// 256 weights of 2 bits.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Q2K {
    /// Scale (low nibble) and minimum (high nibble) of each 16 weights.
    pub scales: [u8; 16],
    /// Four levels per byte, 32 weights apart.
    pub qs: [u8; 64],
    /// The scale of the scales.
    pub d: F16,
    /// The scale of the minimums, which are subtracted.
    pub dmin: F16,
}

impl Block for Q2K {
    const TYPE: GgmlType = GgmlType::Q2_K;
    type Weights = [f32; 256];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, simd: S, out: &mut [f32; 256]) {
        let scales = bytes16(&self.scales, 0);
        let d = scaled(simd, simd.widen(self.d), field(scales, 0, 15));
        let m = scaled(simd, simd.widen(self.dmin), field(scales, 4, 15));
        for i in 0..16 {
            let qs = bytes16(&self.qs, i / 8 * 2 + i % 2);
            put(simd, out, i, field(qs, i / 2 % 4 * 2, 3), |q| d[i] * q - m[i]);
        }
    }

    fn is_finite(&self) -> bool {
        self.d.is_finite() && self.dmin.is_finite()
    }
}

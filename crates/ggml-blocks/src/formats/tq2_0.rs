//! `TQ2_0`: ternary in 2 bits. 2.0625 bits per weight.
//!
//! ```text
//! byte  0  qs[64]  half h of 128 weights in bytes 32h..32h+32: bits 2k..2k+2 of byte l are
//!                  weight 128h + 32k + l, plus 1
//!      64  d       f16 scale
//! ```
//!
//! Used by models trained with ternary weights, fastest.
//! Meets activations in `Q8_K`.

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
use crate::formats::levels::{bytes16, field, put};
use crate::simd::Simd;

/// 256 ternary weights in 2 bits each.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Tq2_0 {
    /// Four weights per byte, 32 apart, each plus 1.
    pub qs: [u8; 64],
    /// The scale.
    pub d: F16,
}

impl Block for Tq2_0 {
    const TYPE: GgmlType = GgmlType::TQ2_0;
    type Weights = [f32; 256];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, simd: S, out: &mut [f32; 256]) {
        let d = simd.widen(self.d);
        for i in 0..16 {
            let qs = bytes16(&self.qs, i / 8 * 2 + i % 2);
            put(simd, out, i, field(qs, i / 2 % 4 * 2, 3), |q| (q - 1.0) * d);
        }
    }

    fn is_finite(&self) -> bool {
        self.d.is_finite()
    }
}

//! `Q2_K`: 4 levels, 16 sub-blocks of 16 with 4-bit scales and minimums. 2.625 bits per weight.
//!
//! ```text
//! byte  0  scales[16]  byte j, sub-block j: low nibble scale, high nibble minimum
//!      16  qs[64]      half h of 128 weights in bytes 32h..32h+32: bits 2k..2k+2 of byte l
//!                      are weight 128h + 32k + l
//!      80  d           f16 scale of the scales
//!      82  dmin        f16 scale of the minimums
//! ```

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
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
        let (d, min) = (simd.widen(self.d), simd.widen(self.dmin));
        let (qs, _) = self.qs.as_chunks::<32>();
        for (s, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let (first, second) = (self.scales[2 * s], self.scales[2 * s + 1]);
            let (d0, m0) = (d * f32::from(first & 15), min * f32::from(first >> 4));
            let (d1, m1) = (d * f32::from(second & 15), min * f32::from(second >> 4));
            let levels = qs[s / 4].map(|q| q >> (s % 4 * 2) & 3);
            for l in 0..16 {
                out[l] = d0 * f32::from(levels[l]) - m0;
            }
            for l in 16..32 {
                out[l] = d1 * f32::from(levels[l]) - m1;
            }
        }
    }

    fn is_finite(&self) -> bool {
        self.d.is_finite() && self.dmin.is_finite()
    }
}

//! `IQ1_S`: groups of 8 ternary levels from a 2048-entry codebook. 1.5625 bits per weight.
//!
//! ```text
//! byte  0  d       f16 scale of the scales
//!       2  qs[32]  low 8 bits of the codebook index of each group of 8
//!      34  qh[8]   u16 per sub-block of 32: bits 3l..3l+3 are bits 8..11 of the index of group l,
//!                  bits 12..15 the scale, bit 15 shifts the levels down by 1/8 instead of up
//! ```
//!
//! Used by the `IQ1_S` mix, with an importance matrix only.
//! Meets activations in `Q8_K`.

use gguf_format::GgmlType;
use zerocopy::little_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
use crate::grid::{IQ1_DELTA, IQ1S};
use crate::simd::Simd;

/// 256 weights of about 1.6 bits.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Iq1S {
    /// The scale of the scales.
    pub d: F16,
    /// The low 8 bits of the codebook index of each 8 weights.
    pub qs: [u8; 32],
    /// High index bits, scale and shift of each 32 weights.
    pub qh: [U16; 8],
}

impl Block for Iq1S {
    const TYPE: GgmlType = GgmlType::IQ1_S;
    type Weights = [f32; 256];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, simd: S, out: &mut [f32; 256]) {
        let d = simd.widen(self.d);
        for (s, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let (grid, down) = self.entries(s);
            let dl = d * f32::from(self.odd_scale(s));
            let delta = f32::from_bits(IQ1_DELTA.to_bits() | down & 0x8000_0000);
            for (l, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                *out = simd.floats8(grid[l]).map(|q| dl * (q + delta));
            }
        }
    }

    fn is_finite(&self) -> bool {
        self.d.is_finite()
    }
}

impl Iq1S {
    /// The codebook entries of weights `32s..32s + 32`, a level of -1..=1 in each byte, the first weight's
    /// lowest; bit `i` is set where the level of weight `32s + i` is shifted down by 1/8 instead of up.
    ///
    /// # Panics
    /// If `s` is not below 8.
    #[must_use]
    #[inline(always)]
    pub fn entries(&self, s: usize) -> ([u64; 4], u32) {
        let qh = self.qh[s].get();
        let mut grid = [0; 4];
        for l in 0..4 {
            grid[l] = IQ1S[usize::from(self.qs[4 * s + l]) | usize::from(qh >> (3 * l) & 7) << 8];
        }
        (grid, if qh & 0x8000 == 0 { 0 } else { u32::MAX })
    }

    /// The scale of weights `32s..32s + 32`, 1, 3, 5 to 15.
    ///
    /// # Panics
    /// If `s` is not below 8.
    #[must_use]
    #[inline(always)]
    pub fn odd_scale(&self, s: usize) -> i8 {
        2 * (self.qh[s].get() >> 12 & 7) as i8 + 1
    }
}

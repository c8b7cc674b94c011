//! `IQ3_XXS`: groups of 4 from a 256-entry codebook. 3.0625 bits per weight.
//!
//! ```text
//! byte  0  d       f16 scale of the scales
//!       2  qs[64]  codebook index of each group of 4
//!      66  scales_and_signs[32]
//!                  little-endian u32 per 32 weights: bits 7l..7l+7 sign pattern of weights
//!                  8l..8l+8, bits 28..32 the scale
//! ```
//!
//! Used by the `IQ3_XXS` mix.
//! Meets activations in `Q8_K`.

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
use crate::formats::levels::{join, signed};
use crate::grid::{IQ3XXS, PLUS_MINUS, SIGNS};
use crate::simd::Simd;

/// 256 weights of about 3 bits.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Iq3Xxs {
    /// The scale of the scales.
    pub d: F16,
    /// The codebook index of each 4 weights.
    pub qs: [u8; 64],
    /// Sign patterns and the scale of each 32 weights. (ggml has these at the end of `qs`.)
    pub scales_and_signs: [u8; 32],
}

impl Block for Iq3Xxs {
    const TYPE: GgmlType = GgmlType::IQ3_XXS;
    type Weights = [f32; 256];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, simd: S, out: &mut [f32; 256]) {
        let d = simd.widen(self.d);
        for (s, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let (grid, signs) = self.entries(s);
            let db = d * (0.5 + f32::from(self.sub_scale(s))) * 0.5;
            for (l, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                *out = signed(simd, db, join(grid[2 * l], grid[2 * l + 1]), signs.to_le_bytes()[l]);
            }
        }
    }

    fn is_finite(&self) -> bool {
        self.d.is_finite()
    }
}

impl Iq3Xxs {
    /// The codebook entries of weights `32s..32s + 32`, a magnitude in each byte, the first weight's lowest;
    /// bit `i` is set where weight `32s + i` is negative.
    ///
    /// # Panics
    /// If `s` is not below 8.
    #[must_use]
    #[inline(always)]
    pub fn entries(&self, s: usize) -> ([u32; 8], u32) {
        let rest = self.rest(s);
        let (mut grid, mut signs) = ([0; 8], [0; 4]);
        for i in 0..8 {
            grid[i] = IQ3XXS[usize::from(self.qs[8 * s + i])];
        }
        for l in 0..4 {
            signs[l] = SIGNS[(rest >> (7 * l) & 127) as usize];
        }
        (grid, u32::from_le_bytes(signs))
    }

    /// The signs of weights `32s..32s + 32`, eight to a number: -1 or 1 in a byte each, the first weight's lowest.
    ///
    /// # Panics
    /// If `s` is not below 8.
    #[must_use]
    #[inline(always)]
    pub fn signs(&self, s: usize) -> [u64; 4] {
        let rest = self.rest(s);
        let mut signs = [0; 4];
        for l in 0..4 {
            signs[l] = PLUS_MINUS[(rest >> (7 * l) & 127) as usize];
        }
        signs
    }

    /// The 4-bit scale of weights `32s..32s + 32`: the weights' is half of that plus a half.
    ///
    /// # Panics
    /// If `s` is not below 8.
    #[must_use]
    #[inline(always)]
    pub fn sub_scale(&self, s: usize) -> u8 {
        self.scales_and_signs[4 * s + 3] >> 4
    }

    /// Four sign patterns of seven bits, and the scale above them.
    #[inline(always)]
    fn rest(&self, s: usize) -> u32 {
        u32::from_le_bytes(self.scales_and_signs.as_chunks().0[s])
    }
}

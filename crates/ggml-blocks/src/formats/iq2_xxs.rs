//! `IQ2_XXS`: groups of 8 from a 256-entry codebook. 2.0625 bits per weight.
//!
//! ```text
//! byte  0  d       f16 scale
//!       2  qs[32]  u16, four per sub-block of 32 weights. The first two hold four codebook indices,
//!                  one per byte; the last two are a little-endian u32: bits 7l..7l+7 sign pattern of
//!                  group l, bits 28..32 the sub-block's scale
//! ```
//!
//! Used by the `IQ2_XXS` mix, with an importance matrix only.
//! Meets activations in `Q8_K`.

use gguf_format::GgmlType;
use zerocopy::little_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
use crate::formats::levels::signed;
use crate::grid::{IQ2XXS, PLUS_MINUS, SIGNS};
use crate::simd::Simd;

/// 256 weights of about 2 bits.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Iq2Xxs {
    /// The scale of the scales.
    pub d: F16,
    /// Indices, sign patterns and the scale of each 32 weights.
    pub qs: [U16; 32],
}

impl Block for Iq2Xxs {
    const TYPE: GgmlType = GgmlType::IQ2_XXS;
    type Weights = [f32; 256];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, simd: S, out: &mut [f32; 256]) {
        let d = simd.widen(self.d);
        for (s, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let (grid, signs) = self.entries(s);
            let db = d * (0.5 + f32::from(self.sub_scale(s))) * 0.25;
            for (l, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                *out = signed(simd, db, grid[l], signs.to_le_bytes()[l]);
            }
        }
    }

    fn is_finite(&self) -> bool {
        self.d.is_finite()
    }
}

impl Iq2Xxs {
    /// The codebook entries of weights `32s..32s + 32`, a magnitude in each byte, the first weight's lowest;
    /// bit `i` is set where weight `32s + i` is negative.
    ///
    /// # Panics
    /// If `s` is not below 8.
    #[must_use]
    #[inline(always)]
    pub fn entries(&self, s: usize) -> ([u64; 4], u32) {
        let qs = &self.qs.as_chunks::<4>().0[s];
        let index = [qs[0].get().to_le_bytes(), qs[1].get().to_le_bytes()];
        let rest = self.rest(s);
        let (mut grid, mut signs) = ([0; 4], [0; 4]);
        for l in 0..4 {
            grid[l] = IQ2XXS[usize::from(index[l / 2][l % 2])];
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

    /// The 4-bit scale of weights `32s..32s + 32`: the weights' is a quarter of that plus a half.
    ///
    /// # Panics
    /// If `s` is not below 8.
    #[must_use]
    #[inline(always)]
    pub fn sub_scale(&self, s: usize) -> u8 {
        (self.qs[4 * s + 3].get() >> 12) as u8
    }

    /// Four sign patterns of seven bits, and the scale above them.
    #[inline(always)]
    fn rest(&self, s: usize) -> u32 {
        let qs = &self.qs.as_chunks::<4>().0[s];
        u32::from(qs[2].get()) | u32::from(qs[3].get()) << 16
    }
}

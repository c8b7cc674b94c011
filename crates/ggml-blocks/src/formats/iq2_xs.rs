//! `IQ2_XS`: groups of 8 from a 512-entry codebook. 2.3125 bits per weight.
//!
//! ```text
//! byte  0  d          f16 scale of the scales
//!       2  qs[32]     u16 per group of 8: bits 0..9 codebook index, bits 9..16 sign pattern
//!      66  scales[8]  byte j: scale of weights 32j..32j+16 (low nibble) and 32j+16..32j+32
//! ```
//!
//! Used by the `IQ2_XS` and `IQ2_S` mixes, with an importance matrix only.
//! Meets activations in `Q8_K`.

use gguf_format::GgmlType;
use zerocopy::little_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
use crate::formats::levels::signed;
use crate::grid::{IQ2XS, PLUS_MINUS, SIGNS};
use crate::simd::Simd;

/// 256 weights of about 2.3 bits.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Iq2Xs {
    /// The scale of the scales.
    pub d: F16,
    /// Codebook index and sign pattern of each 8 weights.
    pub qs: [U16; 32],
    /// Two 4-bit scales per byte, one per 16 weights.
    pub scales: [u8; 8],
}

impl Block for Iq2Xs {
    const TYPE: GgmlType = GgmlType::IQ2_XS;
    type Weights = [f32; 256];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, simd: S, out: &mut [f32; 256]) {
        let d = simd.widen(self.d);
        for (s, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let (grid, signs) = self.entries(s);
            for (l, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                let scale = self.scales[s] >> (l / 2 * 4) & 15;
                let db = d * (0.5 + f32::from(scale)) * 0.25;
                *out = signed(simd, db, grid[l], signs.to_le_bytes()[l]);
            }
        }
    }

    fn is_finite(&self) -> bool {
        self.d.is_finite()
    }
}

impl Iq2Xs {
    /// The codebook entries of weights `32s..32s + 32`, a magnitude in each byte, the first weight's lowest;
    /// bit `i` is set where weight `32s + i` is negative.
    ///
    /// # Panics
    /// If `s` is not below 8.
    #[must_use]
    #[inline(always)]
    pub fn entries(&self, s: usize) -> ([u64; 4], u32) {
        let (mut grid, mut signs) = ([0; 4], [0; 4]);
        for l in 0..4 {
            let q = usize::from(self.qs[4 * s + l].get());
            (grid[l], signs[l]) = (IQ2XS[q & 511], SIGNS[q >> 9]);
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
        let mut signs = [0; 4];
        for l in 0..4 {
            signs[l] = PLUS_MINUS[usize::from(self.qs[4 * s + l].get() >> 9)];
        }
        signs
    }
}

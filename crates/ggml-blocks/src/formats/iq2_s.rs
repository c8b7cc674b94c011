//! `IQ2_S`: groups of 8 from a 1024-entry codebook, full signs. 2.5625 bits per weight.
//!
//! ```text
//! byte  0  d          f16 scale of the scales
//!       2  qs[32]     low 8 bits of the codebook index of each group of 8
//!      34  signs[32]  bit i of byte g: weight 8g + i is negative
//!      66  qh[8]      byte j, bits 2l..2l+2: bits 8..10 of the index of group 4j + l
//!      74  scales[8]  byte j: scale of weights 32j..32j+16 (low nibble) and 32j+16..32j+32
//! ```
//!
//! Used by the `IQ2_M` mix.
//! Meets activations in `Q8_K`.

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
use crate::formats::levels::signed;
use crate::grid::IQ2S;
use crate::simd::Simd;

/// 256 weights of about 2.6 bits.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Iq2S {
    /// The scale of the scales.
    pub d: F16,
    /// The low 8 bits of the codebook index of each 8 weights.
    pub qs: [u8; 32],
    /// One sign bit per weight, 1 is minus. (ggml has these as the second half of `qs`.)
    pub signs: [u8; 32],
    /// The high two bits of four indices per byte.
    pub qh: [u8; 8],
    /// Two 4-bit scales per byte, one per 16 weights.
    pub scales: [u8; 8],
}

impl Block for Iq2S {
    const TYPE: GgmlType = GgmlType::IQ2_S;
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

impl Iq2S {
    /// The codebook entries of weights `32s..32s + 32`, a magnitude in each byte, the first weight's lowest;
    /// bit `i` is set where weight `32s + i` is negative.
    ///
    /// # Panics
    /// If `s` is not below 8.
    #[must_use]
    #[inline(always)]
    pub fn entries(&self, s: usize) -> ([u64; 4], u32) {
        let high = usize::from(self.qh[s]) << 8;
        let mut grid = [0; 4];
        for l in 0..4 {
            grid[l] = IQ2S[usize::from(self.qs[4 * s + l]) | high >> (2 * l) & 0x300];
        }
        (grid, u32::from_le_bytes(self.signs.as_chunks().0[s]))
    }
}

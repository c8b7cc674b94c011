//! `IQ3_S`: groups of 4 from a 512-entry codebook, full signs. 3.4375 bits per weight.
//!
//! ```text
//! byte  0  d          f16 scale of the scales
//!       2  qs[64]     low 8 bits of the codebook index of each group of 4
//!      66  qh[8]      bit i of byte j: bit 8 of the index of group 8j + i
//!      74  signs[32]  bit i of byte g: weight 8g + i is negative
//!     106  scales[4]  byte j: scale of weights 64j..64j+32 (low nibble) and 64j+32..64j+64
//! ```
//!
//! Used by the `IQ3_XS`, `IQ3_S` and `IQ3_M` mixes.
//! Meets activations in `Q8_K`.
//!
//! ggml's encoder, and so this one, gives a sub-block of 32 zeros no place in `qs` and `signs`: where
//! other sub-blocks follow in the block, theirs move down, and the block decodes to other weights.

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
use crate::formats::levels::{join, signed};
use crate::grid::IQ3S;
use crate::simd::Simd;

/// 256 weights of about 3.4 bits.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Iq3S {
    /// The scale of the scales.
    pub d: F16,
    /// The low 8 bits of the codebook index of each 4 weights.
    pub qs: [u8; 64],
    /// The high bit of eight indices per byte.
    pub qh: [u8; 8],
    /// One sign bit per weight, 1 is minus.
    pub signs: [u8; 32],
    /// Two 4-bit scales per byte, one per 32 weights: the weights' is twice that plus 1.
    pub scales: [u8; 4],
}

impl Block for Iq3S {
    const TYPE: GgmlType = GgmlType::IQ3_S;
    type Weights = [f32; 256];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, simd: S, out: &mut [f32; 256]) {
        let d = simd.widen(self.d);
        for (s, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let scale = self.scales[s / 2] >> (s % 2 * 4) & 15;
            let db = d * (1 + 2 * i32::from(scale)) as f32;
            let (grid, signs) = self.entries(s);
            for (l, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                *out = signed(simd, db, join(grid[2 * l], grid[2 * l + 1]), signs.to_le_bytes()[l]);
            }
        }
    }

    fn is_finite(&self) -> bool {
        self.d.is_finite()
    }
}

impl Iq3S {
    /// The codebook entries of weights `32s..32s + 32`, a magnitude in each byte, the first weight's lowest;
    /// bit `i` is set where weight `32s + i` is negative.
    ///
    /// # Panics
    /// If `s` is not below 8.
    #[must_use]
    #[inline(always)]
    pub fn entries(&self, s: usize) -> ([u32; 8], u32) {
        let high = usize::from(self.qh[s]) << 8;
        let mut grid = [0; 8];
        for i in 0..8 {
            grid[i] = IQ3S[usize::from(self.qs[8 * s + i]) | high >> i & 0x100];
        }
        (grid, u32::from_le_bytes(self.signs.as_chunks().0[s]))
    }
}

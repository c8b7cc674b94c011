//! `IQ1_M`: groups of 8 ternary levels, scales per 16, no scale field. 1.75 bits per weight.
//!
//! ```text
//! byte  0  qs[32]     low 8 bits of the codebook index of each group of 8
//!      32  qh[16]     a nibble per group, low first: bits 0..3 are bits 8..11 of the index, bit 3
//!                     shifts the levels down by 1/8 instead of up
//!      48  scales[8]  four u16: bits 3k..3k+3 of number i are the scale of weights
//!                     64i + 16k..64i + 16k + 16; the four top nibbles, first one lowest, are the
//!                     f16 scale of the scales
//! ```
//!
//! Used by the `IQ1_M` mix.
//! Meets activations in `Q8_K`.

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
use crate::formats::levels::Bytes16;
use crate::grid::{IQ1_DELTA, IQ1S};
use crate::simd::Simd;

/// 256 weights of 1.75 bits.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Iq1M {
    /// The low 8 bits of the codebook index of each 8 weights.
    pub qs: [u8; 32],
    /// High index bits and shift of two groups per byte.
    pub qh: [u8; 16],
    /// Sixteen 3-bit scales, and the f16 scale of the scales in the top nibbles of four u16.
    pub scales: [u8; 8],
}

impl Block for Iq1M {
    const TYPE: GgmlType = GgmlType::IQ1_M;
    type Weights = [f32; 256];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, simd: S, out: &mut [f32; 256]) {
        let d = simd.widen(self.d());
        let mut scales = simd.floats16(self.sub_scales());
        for scale in &mut scales {
            *scale = d * (2.0 * *scale + 1.0);
        }
        for (s, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let (grid, down) = self.entries(s);
            for (l, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                let delta = f32::from_bits(IQ1_DELTA.to_bits() | down << (31 - 8 * l) & 0x8000_0000);
                let levels = simd.floats8(grid[l]);
                for i in 0..8 {
                    out[i] = scales[2 * s + l / 2] * (levels[i] + delta);
                }
            }
        }
    }

    fn is_finite(&self) -> bool {
        self.d().is_finite()
    }
}

impl Iq1M {
    /// The codebook entries of weights `32s..32s + 32`, a level of -1..=1 in each byte, the first weight's
    /// lowest; bit `i` is set where the level of weight `32s + i` is shifted down by 1/8 instead of up.
    ///
    /// # Panics
    /// If `s` is not below 8.
    #[must_use]
    #[inline(always)]
    pub fn entries(&self, s: usize) -> ([u64; 4], u32) {
        let qh = usize::from(u16::from_le_bytes(self.qh.as_chunks().0[s]));
        let (mut grid, mut down) = ([0; 4], 0);
        for l in 0..4 {
            let high = qh >> (4 * l);
            grid[l] = IQ1S[usize::from(self.qs[4 * s + l]) | (high & 7) << 8];
            down |= ((high & 8) as u32 >> 3) << (8 * l);
        }
        (grid, down * 255)
    }

    /// The scales as four little-endian numbers.
    #[inline(always)]
    fn packed(&self) -> [u16; 4] {
        core::array::from_fn(|i| u16::from_le_bytes([self.scales[2 * i], self.scales[2 * i + 1]]))
    }

    /// The sixteen 3-bit scales, a byte each.
    #[inline(always)]
    fn sub_scales(&self) -> Bytes16 {
        let [a, b, c, d] = self.packed().map(|s| {
            let s = u64::from(s);
            s & 7 | (s >> 3 & 7) << 8 | (s >> 6 & 7) << 16 | (s >> 9 & 7) << 24
        });
        [a | b << 32, c | d << 32]
    }

    /// The scale of each 16 weights, 1, 3, 5 to 15.
    #[must_use]
    #[inline(always)]
    pub fn odd_scales(&self) -> [i8; 16] {
        let codes: [[u8; 8]; 2] = self.sub_scales().map(u64::to_le_bytes);
        let mut scales = [0; 16];
        for i in 0..16 {
            scales[i] = 2 * codes[i / 8][i % 8] as i8 + 1;
        }
        scales
    }

    /// The scale of the scales, gathered from the top nibbles.
    #[must_use]
    #[inline(always)]
    pub fn d(&self) -> F16 {
        let s = self.packed();
        F16::from_bits(s[0] >> 12 | s[1] >> 8 & 0x00F0 | s[2] >> 4 & 0x0F00 | s[3] & 0xF000)
    }
}

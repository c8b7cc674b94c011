//! `IQ4_XS`: `IQ4_NL`'s levels, 8 sub-blocks of 32 with 6-bit scales. 4.25 bits per weight.
//!
//! ```text
//! byte  0  d            f16 scale of the scales
//!       2  scales_h     u16, bits 2j..2j+2: bits 4..6 of scale j
//!       4  scales_l[4]  byte i: low four bits of scale 2i (low nibble) and 2i+1; scale + 32
//!       8  qs[128]      sub-block s in bytes 16s..16s+16: low nibble of byte j is weight 32s + j,
//!                       high nibble weight 32s + 16 + j
//! ```
//!
//! Used by the `IQ4_XS` mix.
//! Meets activations in `Q8_K`.

use gguf_format::GgmlType;
use zerocopy::little_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
use crate::formats::levels::{bytes16, field, put};
use crate::grid::IQ4_LEVELS;
use crate::simd::Simd;

/// 256 weights of 4 bits with uneven levels.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Iq4Xs {
    /// The scale of the scales.
    pub d: F16,
    /// The high two bits of eight scales.
    pub scales_h: U16,
    /// The low four bits of two scales per byte; a scale is plus 32.
    pub scales_l: [u8; 4],
    /// Two level indices per byte.
    pub qs: [u8; 128],
}

impl Block for Iq4Xs {
    const TYPE: GgmlType = GgmlType::IQ4_XS;
    type Weights = [f32; 256];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, simd: S, out: &mut [f32; 256]) {
        let d = simd.widen(self.d);
        let scales_h = self.scales_h.get();
        for i in 0..16 {
            let (s, half) = (i / 2, i % 2);
            let low = self.scales_l[s / 2] >> (s % 2 * 4) & 15;
            let high = (scales_h >> (2 * s) & 3) as u8;
            let dl = d * (i32::from(low | high << 4) - 32) as f32;
            let qs = field(bytes16(&self.qs, s), 4 * half, 15);
            put(simd, out, i, simd.lookup16(&IQ4_LEVELS, qs), |q| dl * q);
        }
    }

    fn is_finite(&self) -> bool {
        self.d.is_finite()
    }
}

impl Iq4Xs {
    /// The scales of the eight sub-blocks, -32..=31 each.
    #[must_use]
    #[inline(always)]
    pub fn sub_scales(&self) -> [i8; 8] {
        let high = self.scales_h.get();
        let mut scales = [0; 8];
        for s in 0..8 {
            let low = self.scales_l[s / 2] >> (s % 2 * 4) & 15;
            scales[s] = (low | ((high >> (2 * s) & 3) as u8) << 4) as i8 - 32;
        }
        scales
    }
}

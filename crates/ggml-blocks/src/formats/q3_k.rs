//! `Q3_K`: 8 levels around zero, 16 sub-blocks of 16 with 6-bit scales. 3.4375 bits per weight.
//!
//! ```text
//! byte  0  hmask[32]   bit j of byte l: weight 32j + l, bit 2 of the level, inverted in sense: 0 is -4
//!      32  qs[64]      half h of 128 weights in bytes 32h..32h+32: bits 2k..2k+2 of byte l
//!                      are the low bits of weight 128h + 32k + l
//!      96  scales[12]  sub-block scale + 32: low nibbles of bytes 0..8 are the low four bits of
//!                      scales 0..8, high nibbles those of 8..16; bits 2k..2k+2 of byte 8+i are
//!                      the high bits of scale 4k + i
//!     108  d           f16 scale of the scales
//! ```
//!
//! Used by the `Q3_K_S`, `Q3_K_M` and `Q3_K_L` mixes.
//! Meets activations in `Q8_K`.

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
use crate::formats::levels::{Bytes16, bytes16, field, put, with_high};
use crate::simd::Simd;

/// 256 weights of 3 bits.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Q3K {
    /// The high bit of each level: 0 stands for minus 4.
    pub hmask: [u8; 32],
    /// The low two bits of four levels per byte, 32 weights apart.
    pub qs: [u8; 64],
    /// Sixteen 6-bit scales, each plus 32, in ggml's packing.
    pub scales: [u8; 12],
    /// The scale of the scales.
    pub d: F16,
}

impl Block for Q3K {
    const TYPE: GgmlType = GgmlType::Q3_K;
    type Weights = [f32; 256];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, simd: S, out: &mut [f32; 256]) {
        let d = simd.widen(self.d);
        let mut scales = simd.floats16(self.raised_scales());
        for scale in &mut scales {
            *scale = d * (*scale - 32.0);
        }
        for i in 0..16 {
            let low = field(bytes16(&self.qs, i / 8 * 2 + i % 2), i / 2 % 4 * 2, 3);
            let high = field(bytes16(&self.hmask, i % 2), i / 2, 1);
            put(simd, out, i, with_high(low, high, 2), |q| scales[i] * (q - 4.0));
        }
    }

    fn is_finite(&self) -> bool {
        self.d.is_finite()
    }
}

impl Q3K {
    /// The scales of the sixteen sub-blocks, -32..=31 each.
    #[must_use]
    #[inline(always)]
    pub fn sub_scales(&self) -> [i8; 16] {
        let raised: [[u8; 8]; 2] = self.raised_scales().map(u64::to_le_bytes);
        let mut scales = [0; 16];
        for i in 0..16 {
            scales[i] = raised[i / 8][i % 8] as i8 - 32;
        }
        scales
    }

    /// The sixteen sub-block scales, each plus 32.
    #[inline(always)]
    fn raised_scales(&self) -> Bytes16 {
        let low = u64::from_le_bytes(*self.scales.first_chunk().unwrap_or(&[0; 8]));
        let high = u64::from(u32::from_le_bytes(*self.scales.last_chunk().unwrap_or(&[0; 4])));
        // The four bytes of `high` serve scales i, 4 + i, 8 + i and 12 + i in turn.
        with_high(field([low, low >> 4], 0, 15), field([high | high << 30, high >> 4 | high << 26], 0, 3), 4)
    }
}

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

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
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
        let scales = self.unpacked_scales();
        let (qs, _) = self.qs.as_chunks::<32>();
        for (s, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let mut levels = [0i8; 32];
            for l in 0..32 {
                let low = qs[s / 4][l] >> (s % 4 * 2) & 3;
                let high = self.hmask[l] >> s & 1;
                levels[l] = (low | high << 2) as i8 - 4;
            }
            let (d0, d1) = (d * f32::from(scales[2 * s]), d * f32::from(scales[2 * s + 1]));
            for l in 0..16 {
                out[l] = d0 * f32::from(levels[l]);
            }
            for l in 16..32 {
                out[l] = d1 * f32::from(levels[l]);
            }
        }
    }

    fn is_finite(&self) -> bool {
        self.d.is_finite()
    }
}

impl Q3K {
    /// The sixteen sub-block scales, -32..=31.
    #[inline(always)]
    fn unpacked_scales(&self) -> [i8; 16] {
        let s = &self.scales;
        core::array::from_fn(|i| {
            let low = s[i % 8] >> (i / 8 * 4) & 15;
            let high = s[8 + i % 4] >> (i / 4 * 2) & 3;
            (low | high << 4) as i8 - 32
        })
    }
}

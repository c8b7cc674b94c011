//! NVFP4: 4-bit floats (E2M1), a UE4M3 scale for each 16. 4.5 bits per weight.
//!
//! ```text
//! byte  0  d[4]    scale of each 16 weights: 4 bits of exponent (bias 7), 3 of mantissa, bit 7 unused
//!       4  qs[32]  sub-block s in bytes 8s..8s+8: low nibble of byte j is weight 16s + j,
//!                  high nibble weight 16s + 8 + j
//! ```
//!
//! Used by models published in NVFP4.
//! Meets activations in `Q8_0`.

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::block::Block;
use crate::formats::levels::{field, put};
use crate::grid::E2M1_DOUBLED;
use crate::simd::Simd;

/// 64 weights in E2M1.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Nvfp4 {
    /// The scale of each 16 weights in UE4M3.
    pub d: [u8; 4],
    /// Two weights per byte: sign, 2 bits of exponent, 1 of mantissa.
    pub qs: [u8; 32],
}

impl Block for Nvfp4 {
    const TYPE: GgmlType = GgmlType::NVFP4;
    type Weights = [f32; 64];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, simd: S, out: &mut [f32; 64]) {
        for s in 0..4 {
            let d = half_scale(self.d[s]);
            let word = u64::from_le_bytes(self.qs.as_chunks::<8>().0[s]);
            let levels = simd.lookup16(&E2M1_DOUBLED, field([word, word >> 4], 0, 15));
            put(simd, out, s, levels, |q| q * d);
        }
    }

    fn is_finite(&self) -> bool {
        true // every byte is a finite scale
    }
}

impl Nvfp4 {
    /// Half of the scales of weights `32i..32i + 16` and `32i + 16..32i + 32`: what multiplies doubled
    /// levels.
    ///
    /// # Panics
    /// If `i` is not below 2.
    #[must_use]
    #[inline(always)]
    pub fn half_scales(&self, i: usize) -> [f32; 2] {
        let [first, second] = self.d.as_chunks().0[i];
        [half_scale(first), half_scale(second)]
    }
}

/// Half of a UE4M3 number; `0x7F` is 0 as in ggml, bit 7 counts only in that comparison.
#[inline(always)]
pub(crate) fn half_scale(x: u8) -> f32 {
    HALF_SCALES[usize::from(x)]
}

static HALF_SCALES: [f32; 256] = {
    let mut table = [0.0; 256];
    let mut x = 0;
    while x < 256 {
        let (exponent, mantissa) = (x as u32 >> 3 & 15, x as u32 & 7);
        if x != 0x7F {
            table[x] = match exponent {
                0 => mantissa as f32 * (1.0 / 1024.0),
                _ => f32::from_bits((exponent + 119) << 23 | mantissa << 20),
            };
        }
        x += 1;
    }
    table
};

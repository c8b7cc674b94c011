//! MXFP4: 4-bit floats (E2M1) with a power-of-two scale (E8M0). 4.25 bits per weight.
//!
//! ```text
//! byte  0  e       scale 2^(e - 127); the table of levels is doubled, so decoding halves it
//!       1  qs[16]  low nibble of byte j: weight j; high nibble: weight 16 + j
//! ```
//!
//! Used by the experts of models published in MXFP4 (gpt-oss), the `MXFP4_MOE` mix.
//! Meets activations in `Q8_0`.

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::block::Block;
use crate::formats::levels::{bytes16, field, put};
use crate::grid::E2M1_DOUBLED;
use crate::simd::Simd;

/// 32 weights in E2M1.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Mxfp4 {
    /// The exponent of the scale plus 127. 255 is 2 to the 128 here as in ggml, not NaN.
    pub e: u8,
    /// Two weights per byte: sign, 2 bits of exponent, 1 of mantissa.
    pub qs: [u8; 16],
}

impl Block for Mxfp4 {
    const TYPE: GgmlType = GgmlType::MXFP4;
    type Weights = [f32; 32];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, simd: S, out: &mut [f32; 32]) {
        let d = half_scale(self.e);
        let qs = bytes16(&self.qs, 0);
        put(simd, out, 0, simd.lookup16(&E2M1_DOUBLED, field(qs, 0, 15)), |q| q * d);
        put(simd, out, 1, simd.lookup16(&E2M1_DOUBLED, field(qs, 4, 15)), |q| q * d);
    }

    fn is_finite(&self) -> bool {
        self.e != 255
    }
}

impl Mxfp4 {
    /// Twice the value of each code, those of `NVFP4` too.
    #[must_use]
    pub fn doubled_levels() -> &'static [i8; 16] {
        &E2M1_DOUBLED
    }

    /// Half the scale: what multiplies doubled levels.
    #[must_use]
    #[inline(always)]
    pub fn half_scale(&self) -> f32 {
        half_scale(self.e)
    }
}

/// 2^(e - 128): half the scale.
#[inline(always)]
pub(crate) fn half_scale(e: u8) -> f32 {
    let e = u32::from(e);
    f32::from_bits(if e < 2 { 0x0020_0000 << e } else { (e - 1) << 23 })
}

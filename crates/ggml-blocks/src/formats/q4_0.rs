//! `Q4_0`: 16 levels around zero. 4.5 bits per weight.
//!
//! ```text
//! byte  0  d       f16 scale
//!       2  qs[16]  low nibble of byte j: weight j; high nibble: weight 16 + j; level + 8
//! ```
//!
//! Used by the `Q4_0` mix, the oldest one still made; embedding tables of `TQ` mixes;
//! quantization-aware-trained models.
//! Meets activations in `Q8_0`.

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
use crate::formats::levels::{bytes16, field, put};
use crate::simd::Simd;

/// 32 weights of 4 bits.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Q4_0 {
    /// The scale.
    pub d: F16,
    /// Two levels per byte, each plus 8.
    pub qs: [u8; 16],
}

impl Block for Q4_0 {
    const TYPE: GgmlType = GgmlType::Q4_0;
    type Weights = [f32; 32];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, simd: S, out: &mut [f32; 32]) {
        let d = simd.widen(self.d);
        let qs = bytes16(&self.qs, 0);
        put(simd, out, 0, field(qs, 0, 15), |q| (q - 8.0) * d);
        put(simd, out, 1, field(qs, 4, 15), |q| (q - 8.0) * d);
    }

    fn is_finite(&self) -> bool {
        self.d.is_finite()
    }
}

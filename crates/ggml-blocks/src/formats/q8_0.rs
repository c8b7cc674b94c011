//! `Q8_0`: signed bytes times a scale. 8.5 bits per weight.
//!
//! ```text
//! byte  0  d       f16 scale
//!       2  qs[32]  byte j: weight j, signed
//! ```
//!
//! Used by the `Q8_0` mix, nearly lossless; instead of `Q6_K` where 256 does not divide a row; as
//! activations of the formats with short blocks.
//! Meets activations in `Q8_0`.

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
use crate::simd::Simd;

/// 32 weights of 8 bits.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Q8_0 {
    /// The scale.
    pub d: F16,
    /// The levels.
    pub qs: [i8; 32],
}

impl Block for Q8_0 {
    const TYPE: GgmlType = GgmlType::Q8_0;
    type Weights = [f32; 32];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, simd: S, out: &mut [f32; 32]) {
        let d = simd.widen_apart(self.d);
        for j in 0..32 {
            out[j] = f32::from(self.qs[j]) * d;
        }
    }

    fn is_finite(&self) -> bool {
        self.d.is_finite()
    }
}

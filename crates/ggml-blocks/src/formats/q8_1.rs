//! `Q8_1`: `Q8_0` with the sum of its weights, for activations. 9 bits per weight.
//!
//! ```text
//! byte  0  d       f16 scale
//!       2  s       f16, d times the sum of the levels
//!       4  qs[32]  byte j: weight j, signed
//! ```
//!
//! Used by activations only: ggml makes them while it multiplies, files do not carry them. The sum
//! serves weight formats with a minimum.

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
use crate::simd::Simd;

/// 32 activations of 8 bits and their sum.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Q8_1 {
    /// The scale.
    pub d: F16,
    /// The scale times the sum of the levels; no part of a weight's value.
    pub s: F16,
    /// The levels.
    pub qs: [i8; 32],
}

impl Block for Q8_1 {
    const TYPE: GgmlType = GgmlType::Q8_1;
    type Weights = [f32; 32];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, simd: S, out: &mut [f32; 32]) {
        let d = simd.widen_apart(self.d);
        for j in 0..32 {
            out[j] = f32::from(self.qs[j]) * d;
        }
    }

    fn is_finite(&self) -> bool {
        self.d.is_finite() && self.s.is_finite()
    }
}

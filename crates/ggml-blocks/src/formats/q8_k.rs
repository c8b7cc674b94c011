//! `Q8_K`: signed bytes with an f32 scale and sums, for activations of K formats. 9.125 bits per weight.
//!
//! ```text
//! byte  0  d          f32 scale
//!       4  qs[256]    byte j: weight j, signed
//!     260  bsums[16]  i16, the sum of each 16 levels
//! ```
//!
//! Used by activations only: ggml makes them while it multiplies, files do not carry them. The
//! sums serve weight formats with a minimum.

use gguf_format::GgmlType;
use zerocopy::little_endian::{F32, I16};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::block::Block;
use crate::simd::Simd;

/// 256 activations of 8 bits and their sums.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Q8K {
    /// The scale.
    pub d: F32,
    /// The levels.
    pub qs: [i8; 256],
    /// The sum of each 16 levels; no part of a weight's value.
    pub bsums: [I16; 16],
}

impl Block for Q8K {
    const TYPE: GgmlType = GgmlType::Q8_K;
    type Weights = [f32; 256];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, _: S, out: &mut [f32; 256]) {
        let d = self.d.get();
        for j in 0..256 {
            out[j] = d * f32::from(self.qs[j]);
        }
    }

    fn is_finite(&self) -> bool {
        self.d.get().is_finite()
    }
}

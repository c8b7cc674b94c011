//! `Q2_0`: the levels -1, 0, 1, 2 times a scale. 2.25 bits per weight.
//!
//! ```text
//! byte  0  d       f16 scale
//!       2  qs[16]  bits 2i..2i+2 of byte j: weight 4j + i, level + 1
//! ```
//!
//! Used by models trained with ternary or 2-bit weights.
//! Meets activations in `Q8_0`.

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
use crate::simd::Simd;

/// 64 weights of 2 bits.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Q2_0 {
    /// The scale.
    pub d: F16,
    /// Four levels per byte, the first in the lowest bits, each plus 1.
    pub qs: [u8; 16],
}

impl Block for Q2_0 {
    const TYPE: GgmlType = GgmlType::Q2_0;
    type Weights = [f32; 64];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, simd: S, out: &mut [f32; 64]) {
        let d = simd.widen(self.d);
        for (out, bytes) in out.as_chunks_mut::<8>().0.iter_mut().zip(self.qs.as_chunks::<2>().0) {
            let packed = u16::from_le_bytes(*bytes);
            for i in 0..8 {
                out[i] = (i32::from(packed >> (2 * i) & 3) - 1) as f32 * d;
            }
        }
    }

    fn is_finite(&self) -> bool {
        self.d.is_finite()
    }
}

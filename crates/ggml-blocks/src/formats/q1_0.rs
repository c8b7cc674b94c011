//! `Q1_0`: signs. 1.125 bits per weight.
//!
//! ```text
//! byte  0  d       f16, the magnitude
//!       2  qs[16]  bit i of byte j: weight 8j + i; 1 is +d, 0 is -d
//! ```
//!
//! Used by models trained with binary weights.
//! Meets activations in `Q8_0`.

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
use crate::simd::Simd;

/// 128 weights of 1 bit.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Q1_0 {
    /// The magnitude of every weight.
    pub d: F16,
    /// One bit per weight, the first in the lowest bit; 1 is plus.
    pub qs: [u8; 16],
}

impl Block for Q1_0 {
    const TYPE: GgmlType = GgmlType::Q1_0;
    type Weights = [f32; 128];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, simd: S, out: &mut [f32; 128]) {
        let d = simd.widen(self.d);
        for (out, byte) in out.as_chunks_mut::<8>().0.iter_mut().zip(self.qs) {
            for i in 0..8 {
                out[i] = if byte & (1 << i) != 0 { d } else { -d };
            }
        }
    }

    fn is_finite(&self) -> bool {
        self.d.is_finite()
    }
}

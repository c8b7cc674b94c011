//! `Q4_1`: 16 levels above a minimum. 5 bits per weight.
//!
//! ```text
//! byte  0  d       f16 scale
//!       2  m       f16 minimum
//!       4  qs[16]  low nibble of byte j: weight j; high nibble: weight 16 + j
//! ```
//!
//! Used by the `Q4_1` mix.
//! Meets activations in `Q8_1`.

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
use crate::formats::levels::{bytes16, field, plus_nan, put};
use crate::simd::Simd;

/// 32 weights of 4 bits with a minimum.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Q4_1 {
    /// The scale.
    pub d: F16,
    /// The minimum, added.
    pub m: F16,
    /// Two levels per byte.
    pub qs: [u8; 16],
}

impl Block for Q4_1 {
    const TYPE: GgmlType = GgmlType::Q4_1;
    type Weights = [f32; 32];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, simd: S, out: &mut [f32; 32]) {
        let (d, m) = (simd.widen_apart(self.d), simd.widen_apart(self.m));
        let qs = bytes16(&self.qs, 0);
        for i in 0..2 {
            let levels = field(qs, 4 * i, 15);
            if m.is_nan() {
                put(simd, out, i, levels, |q| plus_nan(q * d, m));
            } else {
                put(simd, out, i, levels, |q| q * d + m);
            }
        }
    }

    fn is_finite(&self) -> bool {
        self.d.is_finite() && self.m.is_finite()
    }
}

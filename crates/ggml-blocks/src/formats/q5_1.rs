//! `Q5_1`: 32 levels above a minimum. 6 bits per weight.
//!
//! ```text
//! byte  0  d       f16 scale
//!       2  m       f16 minimum
//!       4  qh[4]   bit i of the little-endian u32: bit 4 of weight i
//!       8  qs[16]  low nibble of byte j: weight j; high nibble: weight 16 + j
//! ```
//!
//! Used by the `Q5_1` mix; instead of `Q5_K` where 256 does not divide a row.
//! Meets activations in `Q8_1`.

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
use crate::formats::levels::plus_nan;
use crate::simd::Simd;

/// 32 weights of 5 bits with a minimum.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Q5_1 {
    /// The scale.
    pub d: F16,
    /// The minimum, added.
    pub m: F16,
    /// The fifth bit of each level, the first weight's lowest.
    pub qh: [u8; 4],
    /// The low four bits of two levels per byte.
    pub qs: [u8; 16],
}

impl Block for Q5_1 {
    const TYPE: GgmlType = GgmlType::Q5_1;
    type Weights = [f32; 32];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, simd: S, out: &mut [f32; 32]) {
        let (d, m) = (simd.widen(self.d), simd.widen(self.m));
        if m.is_nan() {
            self.put_all(out, |q| plus_nan(q * d, m));
        } else {
            self.put_all(out, |q| q * d + m);
        }
    }

    fn is_finite(&self) -> bool {
        self.d.is_finite() && self.m.is_finite()
    }
}

impl Q5_1 {
    #[inline(always)]
    fn put_all(&self, out: &mut [f32; 32], weight: impl Fn(f32) -> f32) {
        let high = u32::from_le_bytes(self.qh);
        for j in 0..16 {
            let (h0, h1) = ((high >> j) << 4 & 16, high >> (j + 12) & 16);
            out[j] = weight((u32::from(self.qs[j] & 15) | h0) as i32 as f32);
            out[16 + j] = weight((u32::from(self.qs[j] >> 4) | h1) as i32 as f32);
        }
    }
}

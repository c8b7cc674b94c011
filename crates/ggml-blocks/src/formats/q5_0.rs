//! `Q5_0`: 32 levels around zero. 5.5 bits per weight.
//!
//! ```text
//! byte  0  d       f16 scale
//!       2  qh[4]   bit i of the little-endian u32: bit 4 of weight i
//!       6  qs[16]  low nibble of byte j: weight j; high nibble: weight 16 + j; level + 16
//! ```
//!
//! Used by the `Q5_0` mix; instead of `Q4_K` where 256 does not divide a row.
//! Meets activations in `Q8_0`.

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
use crate::simd::Simd;

/// 32 weights of 5 bits.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Q5_0 {
    /// The scale.
    pub d: F16,
    /// The fifth bit of each level, the first weight's lowest.
    pub qh: [u8; 4],
    /// The low four bits of two levels per byte; a level is plus 16.
    pub qs: [u8; 16],
}

impl Block for Q5_0 {
    const TYPE: GgmlType = GgmlType::Q5_0;
    type Weights = [f32; 32];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, simd: S, out: &mut [f32; 32]) {
        let d = simd.widen(self.d);
        let high = u32::from_le_bytes(self.qh);
        for j in 0..16 {
            let (h0, h1) = ((high >> j) << 4 & 16, high >> (j + 12) & 16);
            out[j] = ((u32::from(self.qs[j] & 15) | h0) as i32 - 16) as f32 * d;
            out[16 + j] = ((u32::from(self.qs[j] >> 4) | h1) as i32 - 16) as f32 * d;
        }
    }

    fn is_finite(&self) -> bool {
        self.d.is_finite()
    }
}

//! `Q6_K`: 64 levels around zero, 16 sub-blocks of 16 with 8-bit scales. 6.5625 bits per weight.
//!
//! ```text
//! byte  0  ql[128]     half h of 128 weights in bytes 64h..64h+64: low nibble of byte l (0..64)
//!                      is weight 128h + l, high nibble weight 128h + 64 + l; low four bits
//!     128  qh[64]      half h in bytes 32h..32h+32: bits 2k..2k+2 of byte l are bits 4..6 of
//!                      weight 128h + 32k + l; level + 32
//!     192  scales[16]  signed scale of each 16 weights
//!     208  d           f16 scale of the scales
//! ```
//!
//! Used by the `Q6_K` mix; output and attention-value tensors of most others.
//! Meets activations in `Q8_K`.

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
use crate::formats::levels::{bytes16, field, put, scaled, with_high};
use crate::simd::Simd;

/// 256 weights of 6 bits.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Q6K {
    /// The low four bits of two levels per byte, 64 weights apart.
    pub ql: [u8; 128],
    /// The high two bits of four levels per byte, 32 weights apart; a level is plus 32.
    pub qh: [u8; 64],
    /// The scale of each 16 weights.
    pub scales: [i8; 16],
    /// The scale of the scales.
    pub d: F16,
}

impl Block for Q6K {
    const TYPE: GgmlType = GgmlType::Q6_K;
    type Weights = [f32; 256];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, simd: S, out: &mut [f32; 256]) {
        let scales = bytes16(bytemuck::must_cast_ref::<_, [u8; 16]>(&self.scales), 0);
        let d = scaled(simd, simd.widen(self.d), scales);
        for i in 0..16 {
            let (half, k) = (i / 8, i % 8);
            let low = field(bytes16(&self.ql, 4 * half + k % 4), k / 4 * 4, 15);
            let high = field(bytes16(&self.qh, 2 * half + k % 2), k / 2 * 2, 3);
            put(simd, out, i, with_high(low, high, 4), |q| d[i] * (q - 32.0));
        }
    }

    fn is_finite(&self) -> bool {
        self.d.is_finite()
    }
}

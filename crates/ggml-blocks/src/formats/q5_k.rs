//! `Q5_K`: 32 levels, 8 sub-blocks of 32 with 6-bit scales and minimums. 5.5 bits per weight.
//!
//! ```text
//! byte  0  d           f16 scale of the scales
//!       2  dmin        f16 scale of the minimums
//!       4  scales[12]  as in Q4_K
//!      16  qh[32]      bit j of byte l: bit 4 of weight 32j + l
//!      48  qs[128]     group g of 64 weights in bytes 32g..32g+32: low nibble of byte l is
//!                      weight 64g + l, high nibble weight 64g + 32 + l
//! ```
//!
//! Used by the `Q5_K_S` and `Q5_K_M` mixes; the sensitive tensors of smaller ones.
//! Meets activations in `Q8_K`.

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
use crate::formats::levels::times;
use crate::formats::q4_k::scales_and_mins;
use crate::simd::Simd;

/// 256 weights of 5 bits.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Q5K {
    /// The scale of the scales.
    pub d: F16,
    /// The scale of the minimums, which are subtracted.
    pub dmin: F16,
    /// Eight 6-bit scales and eight 6-bit minimums, packed as in `Q4_K`.
    pub scales: [u8; 12],
    /// The fifth bit of eight levels per byte, 32 weights apart.
    pub qh: [u8; 32],
    /// The low four bits of two levels per byte, 32 weights apart.
    pub qs: [u8; 128],
}

impl Block for Q5K {
    const TYPE: GgmlType = GgmlType::Q5_K;
    type Weights = [f32; 256];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, simd: S, out: &mut [f32; 256]) {
        let [scales, mins] = scales_and_mins(&self.scales);
        let (d, min) = (simd.widen(self.d), simd.widen(self.dmin));
        let (d, m) = (times(d, simd.floats8(scales)), times(min, simd.floats8(mins)));
        for (g, (qs, out)) in self.qs.as_chunks::<32>().0.iter().zip(out.as_chunks_mut::<64>().0).enumerate()
        {
            let (s, t) = (2 * g, 2 * g + 1);
            for l in 0..32 {
                let (q, high) = (i32::from(qs[l]), i32::from(self.qh[l]) << 4);
                out[l] = d[s] * (q & 15 | high >> s & 16) as f32 - m[s];
                out[32 + l] = d[t] * (q >> 4 | high >> t & 16) as f32 - m[t];
            }
        }
    }

    fn is_finite(&self) -> bool {
        self.d.is_finite() && self.dmin.is_finite()
    }
}

impl Q5K {
    /// The scales and the minimums of the eight sub-blocks, 0..=63 each.
    #[must_use]
    #[inline(always)]
    pub fn sub_scales(&self) -> [[u8; 8]; 2] {
        let [scales, mins] = scales_and_mins(&self.scales);
        [scales.to_le_bytes(), mins.to_le_bytes()]
    }
}

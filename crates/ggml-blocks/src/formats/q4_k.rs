//! `Q4_K`: 16 levels, 8 sub-blocks of 32 with 6-bit scales and minimums. 4.5 bits per weight.
//!
//! ```text
//! byte  0  d           f16 scale of the scales
//!       2  dmin        f16 scale of the minimums
//!       4  scales[12]  low 6 bits of bytes 0..4: scales 0..4; of bytes 4..8: minimums 0..4;
//!                      byte 8+j: low nibble of scale 4+j and of minimum 4+j (above);
//!                      bits 6..8 of byte j: bits 4..6 of scale 4+j, of byte 4+j: of minimum 4+j
//!      16  qs[128]     group g of 64 weights in bytes 32g..32g+32: low nibble of byte l is
//!                      weight 64g + l, high nibble weight 64g + 32 + l
//! ```
//!
//! Used by the `Q4_K_S` and `Q4_K_M` mixes, the usual choice.
//! Meets activations in `Q8_K`.

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
use crate::formats::levels::times;
use crate::simd::Simd;

/// 256 weights of 4 bits.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Q4K {
    /// The scale of the scales.
    pub d: F16,
    /// The scale of the minimums, which are subtracted.
    pub dmin: F16,
    /// Eight 6-bit scales and eight 6-bit minimums in ggml's packing.
    pub scales: [u8; 12],
    /// Two levels per byte, 32 weights apart.
    pub qs: [u8; 128],
}

impl Block for Q4K {
    const TYPE: GgmlType = GgmlType::Q4_K;
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
                let q = i32::from(qs[l]);
                out[l] = d[s] * (q & 15) as f32 - m[s];
                out[32 + l] = d[t] * (q >> 4) as f32 - m[t];
            }
        }
    }

    fn is_finite(&self) -> bool {
        self.d.is_finite() && self.dmin.is_finite()
    }
}

impl Q4K {
    /// The scales and the minimums of the eight sub-blocks, 0..=63 each.
    #[must_use]
    #[inline(always)]
    pub fn sub_scales(&self) -> [[u8; 8]; 2] {
        let [scales, mins] = scales_and_mins(&self.scales);
        [scales.to_le_bytes(), mins.to_le_bytes()]
    }
}

/// The eight 6-bit scales and the eight 6-bit minimums of `Q4_K` and `Q5_K`, a byte each.
#[inline(always)]
pub(crate) fn scales_and_mins(packed: &[u8; 12]) -> [u64; 2] {
    let words = packed.as_chunks::<4>().0;
    let [a, b, c] = [0, 1, 2].map(|i| u32::from_le_bytes(words[i]));
    let join = |first: u32, low: u32, high: u32| {
        let second = low & 0x0F0F_0F0F | (high >> 6 & 0x0303_0303) << 4;
        u64::from(first & 0x3F3F_3F3F) | u64::from(second) << 32
    };
    [join(a, c, a), join(b, c >> 4, b)]
}

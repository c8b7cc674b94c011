//! `IQ2_XXS`: groups of 8 from a 256-entry codebook. 2.0625 bits per weight.
//!
//! ```text
//! byte  0  d       f16 scale
//!       2  qs[32]  u16, four per sub-block of 32 weights. The first two hold four codebook indices,
//!                  one per byte; the last two are a little-endian u32: bits 7l..7l+7 sign pattern of
//!                  group l, bits 28..32 the sub-block's scale
//! ```
//!
//! Used by the `IQ2_XXS` mix, with an importance matrix only.
//! Meets activations in `Q8_K`.

use gguf_format::GgmlType;
use zerocopy::little_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
use crate::formats::levels::signed;
use crate::grid::{IQ2XXS, SIGNS};
use crate::simd::Simd;

/// 256 weights of about 2 bits.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Iq2Xxs {
    /// The scale of the scales.
    pub d: F16,
    /// Indices, sign patterns and the scale of each 32 weights.
    pub qs: [U16; 32],
}

impl Block for Iq2Xxs {
    const TYPE: GgmlType = GgmlType::IQ2_XXS;
    type Weights = [f32; 256];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, simd: S, out: &mut [f32; 256]) {
        let d = simd.widen(self.d);
        let (qs, _) = self.qs.as_chunks::<4>();
        for (qs, out) in qs.iter().zip(out.as_chunks_mut::<32>().0) {
            let index = [qs[0].get().to_le_bytes(), qs[1].get().to_le_bytes()];
            let rest = u32::from(qs[2].get()) | u32::from(qs[3].get()) << 16;
            let db = d * (0.5 + (rest >> 28) as f32) * 0.25;
            for (l, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                let grid = IQ2XXS[usize::from(index[l / 2][l % 2])];
                *out = signed(simd, db, grid, SIGNS[(rest >> (7 * l) & 127) as usize]);
            }
        }
    }

    fn is_finite(&self) -> bool {
        self.d.is_finite()
    }
}

//! `IQ4_NL`: 16 unevenly spaced levels. 4.5 bits per weight.
//!
//! ```text
//! byte  0  d       f16 scale
//!       2  qs[16]  low nibble of byte j: weight j; high nibble: weight 16 + j; index of a level
//! ```
//!
//! Used by the `IQ4_NL` mix; instead of the other `IQ` formats where 256 does not divide a row.
//! Meets activations in `Q8_0`.

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
use crate::formats::levels::{bytes16, field, put};
use crate::grid::IQ4_LEVELS;
use crate::simd::Simd;

/// 32 weights of 4 bits with uneven levels.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Iq4Nl {
    /// The scale.
    pub d: F16,
    /// Two level indices per byte.
    pub qs: [u8; 16],
}

impl Block for Iq4Nl {
    const TYPE: GgmlType = GgmlType::IQ4_NL;
    type Weights = [f32; 32];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, simd: S, out: &mut [f32; 32]) {
        let d = simd.widen(self.d);
        let qs = bytes16(&self.qs, 0);
        put(simd, out, 0, simd.lookup16(&IQ4_LEVELS, field(qs, 0, 15)), |q| d * q);
        put(simd, out, 1, simd.lookup16(&IQ4_LEVELS, field(qs, 4, 15)), |q| d * q);
    }

    fn is_finite(&self) -> bool {
        self.d.is_finite()
    }
}

impl Iq4Nl {
    /// The sixteen levels, those of `IQ4_XS` too.
    #[must_use]
    pub fn levels() -> &'static [i8; 16] {
        &IQ4_LEVELS
    }
}

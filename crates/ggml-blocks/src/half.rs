//! Sixteen-bit floats as they stand in files: two little-endian bytes, alignment 1.
//!
//! The arithmetic is ggml's, so that NaN payloads and rounding have its bits; it is branch-free and
//! needs no CPU feature, unlike the `half` crate's, which detects features on each call.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// An IEEE binary16 number, little-endian: a block scale, or one element of an `F16` tensor.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(transparent)]
pub struct F16([u8; 2]);

impl F16 {
    /// The number with these bits.
    #[must_use]
    #[inline(always)]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits.to_le_bytes())
    }

    /// Sign, 5 bits of exponent, 10 of mantissa.
    #[must_use]
    #[inline(always)]
    pub const fn to_bits(self) -> u16 {
        u16::from_le_bytes(self.0)
    }

    /// Rounds to nearest, ties to even; overflow gives infinity, and every NaN becomes `0x7E00`
    /// with its sign, as in ggml.
    #[must_use]
    #[inline(always)]
    pub fn from_f32(x: f32) -> Self {
        const TO_INF: f32 = f32::from_bits(0x7780_0000);
        const TO_ZERO: f32 = f32::from_bits(0x0880_0000);
        let bits = x.to_bits();
        let shifted = bits << 1;
        // Adding a power of two that is 13 mantissa bits above the value makes the FPU round it.
        let bias = (shifted & 0xFF00_0000).max(0x7100_0000);
        let base = f32::from_bits((bias >> 1) + 0x0780_0000) + (x.abs() * TO_INF) * TO_ZERO;
        let rounded = base.to_bits();
        let finite = ((rounded >> 13) & 0x7C00) + (rounded & 0x0FFF);
        let magnitude = if shifted > 0xFF00_0000 { 0x7E00 } else { finite };
        Self::from_bits(((bits >> 16) & 0x8000 | magnitude) as u16)
    }

    /// Exact; a signalling NaN comes out quiet with its payload, as on x86 and in ggml.
    #[must_use]
    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        const SCALE: f32 = f32::from_bits(0x0780_0000);
        let wide = u32::from(self.to_bits()) << 16;
        let shifted = wide << 1;
        let normal = f32::from_bits((shifted >> 4) + (0xE0 << 23)) * SCALE;
        let subnormal = f32::from_bits((shifted >> 17) | (126 << 23)) - 0.5;
        let magnitude = if shifted < 1 << 27 { subnormal } else { normal };
        f32::from_bits((wide & 0x8000_0000) | magnitude.to_bits())
    }

    /// Neither infinite nor NaN.
    #[must_use]
    #[inline(always)]
    pub const fn is_finite(self) -> bool {
        self.to_bits() & 0x7C00 != 0x7C00
    }
}

impl From<::half::f16> for F16 {
    fn from(h: ::half::f16) -> Self {
        Self::from_bits(h.to_bits())
    }
}

impl From<F16> for ::half::f16 {
    fn from(h: F16) -> Self {
        Self::from_bits(h.to_bits())
    }
}

/// A bfloat16 number, little-endian: the upper half of an `f32`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(transparent)]
pub struct Bf16([u8; 2]);

impl Bf16 {
    /// The number with these bits.
    #[must_use]
    #[inline(always)]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits.to_le_bytes())
    }

    /// Sign, 8 bits of exponent, 7 of mantissa.
    #[must_use]
    #[inline(always)]
    pub const fn to_bits(self) -> u16 {
        u16::from_le_bytes(self.0)
    }

    /// Rounds to nearest, ties to even, subnormals kept; overflow gives infinity, a NaN keeps its
    /// upper bits and becomes quiet.
    #[must_use]
    #[inline(always)]
    pub fn from_f32(x: f32) -> Self {
        let bits = x.to_bits();
        let nan = (bits >> 16) | 0x40;
        // A NaN may wrap here; its result is discarded.
        let rounded = bits.wrapping_add(0x7FFF + ((bits >> 16) & 1)) >> 16;
        Self::from_bits(if bits & 0x7FFF_FFFF > 0x7F80_0000 { nan } else { rounded } as u16)
    }

    /// Exact, NaN bits included.
    #[must_use]
    #[inline(always)]
    pub const fn to_f32(self) -> f32 {
        f32::from_bits((self.to_bits() as u32) << 16)
    }
}

impl From<::half::bf16> for Bf16 {
    fn from(h: ::half::bf16) -> Self {
        Self::from_bits(h.to_bits())
    }
}

impl From<Bf16> for ::half::bf16 {
    fn from(h: Bf16) -> Self {
        Self::from_bits(h.to_bits())
    }
}

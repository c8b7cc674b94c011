//! The element types of the format: one row per tag, in upstream's order (by alignment), which is also the order
//! its writer sorts by. Values are never interpreted here.

use std::fmt;

macro_rules! dtypes {
    ($($(#[$doc:meta])+ $variant:ident $tag:literal $bits:literal)+) => {
        /// An element type, as its tag in the header names it. Ordered as upstream orders its tags: a writer puts
        /// the greatest first.
        #[non_exhaustive]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Dtype { $($(#[$doc])+ $variant,)+ }

        /// Every element type, in ascending order.
        pub const DTYPES: &[Dtype] = &[$(Dtype::$variant,)+];

        impl Dtype {
            /// The tag the header spells this type with, such as `BF16`.
            pub const fn tag(self) -> &'static str {
                match self { $(Self::$variant => $tag,)+ }
            }

            /// Bits in one element. The sub-byte types take 4 or 6.
            pub const fn bits(self) -> u64 {
                match self { $(Self::$variant => $bits,)+ }
            }

            /// The type of this tag; `None` for any other text. Tags are upper case.
            pub fn from_tag(tag: &str) -> Option<Self> {
                match tag { $($tag => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

dtypes! {
    /// Booleans, one byte each.
    Bool "BOOL" 8
    /// OCP MX 4-bit floats (E2M1), two in a byte.
    F4 "F4" 4
    /// OCP MX 6-bit floats with 2 exponent bits.
    F6E2M3 "F6_E2M3" 6
    /// OCP MX 6-bit floats with 3 exponent bits.
    F6E3M2 "F6_E3M2" 6
    /// Unsigned bytes.
    U8 "U8" 8
    /// Signed bytes.
    I8 "I8" 8
    /// 8-bit floats with 5 exponent bits.
    F8E5M2 "F8_E5M2" 8
    /// 8-bit floats with 4 exponent bits.
    F8E4M3 "F8_E4M3" 8
    /// Powers of two: 8 exponent bits, no sign, no mantissa.
    F8E8M0 "F8_E8M0" 8
    /// E4M3 with one NaN, no infinities and no negative zero.
    F8E4M3Fnuz "F8_E4M3FNUZ" 8
    /// E5M2 with one NaN, no infinities and no negative zero.
    F8E5M2Fnuz "F8_E5M2FNUZ" 8
    /// Signed 16-bit integers.
    I16 "I16" 16
    /// Unsigned 16-bit integers.
    U16 "U16" 16
    /// IEEE half precision.
    F16 "F16" 16
    /// The upper half of an `f32`.
    BF16 "BF16" 16
    /// Signed 32-bit integers.
    I32 "I32" 32
    /// Unsigned 32-bit integers.
    U32 "U32" 32
    /// IEEE single precision.
    F32 "F32" 32
    /// Complex numbers of two `f32`.
    C64 "C64" 64
    /// IEEE double precision.
    F64 "F64" 64
    /// Signed 64-bit integers.
    I64 "I64" 64
    /// Unsigned 64-bit integers.
    U64 "U64" 64
}

impl Dtype {
    /// Bytes of a tensor of this type and shape; why not, if there is no such number.
    pub(crate) fn byte_len(self, shape: &[u64]) -> Result<u64, SizeFault> {
        let elements =
            shape.iter().try_fold(1u64, |n, &dim| n.checked_mul(dim)).ok_or(SizeFault::Overflow)?;
        let bits = elements.checked_mul(self.bits()).ok_or(SizeFault::Overflow)?;
        if bits.is_multiple_of(8) { Ok(bits >> 3) } else { Err(SizeFault::SubByte { bits }) }
    }
}

/// Why a dtype and a shape have no size in bytes.
pub(crate) enum SizeFault {
    /// The product does not fit 64 bits.
    Overflow,
    /// The elements do not end on a byte boundary.
    SubByte {
        /// Their size.
        bits: u64,
    },
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.tag())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tag_reads_back() {
        for &dtype in DTYPES {
            assert_eq!(Dtype::from_tag(dtype.tag()), Some(dtype));
            assert_eq!(Dtype::from_tag(&dtype.tag().to_lowercase()), None);
        }
        assert!(DTYPES.is_sorted());
    }
}

//! The thirteen wire types of a metadata value.

use core::fmt;

macro_rules! value_types {
    ($($id:literal $variant:ident $name:literal $size:expr, $doc:literal;)+) => {
        /// The wire type of a metadata value or of an array's elements.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ValueType {
            $(#[doc = $doc] $variant,)+
        }

        impl ValueType {
            /// All wire types, by ascending id.
            pub const ALL: [Self; 13] = [$(Self::$variant),+];

            /// The type of this id on the wire, `None` for an id that GGUF does not define.
            #[must_use]
            pub const fn from_id(id: u32) -> Option<Self> {
                match id {
                    $($id => Some(Self::$variant),)+
                    _ => None,
                }
            }

            /// The id on the wire.
            #[must_use]
            pub const fn id(self) -> u32 {
                match self {
                    $(Self::$variant => $id,)+
                }
            }

            /// The short name, such as `u32` or `string`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Bytes of one value, `None` for strings and arrays, whose length is in the file.
            #[must_use]
            pub const fn size(self) -> Option<u8> {
                match self {
                    $(Self::$variant => $size,)+
                }
            }
        }
    };
}

value_types! {
    0 U8 "u8" Some(1), "Unsigned 8-bit integer.";
    1 I8 "i8" Some(1), "Signed 8-bit integer.";
    2 U16 "u16" Some(2), "Unsigned 16-bit integer.";
    3 I16 "i16" Some(2), "Signed 16-bit integer.";
    4 U32 "u32" Some(4), "Unsigned 32-bit integer.";
    5 I32 "i32" Some(4), "Signed 32-bit integer.";
    6 F32 "f32" Some(4), "32-bit float.";
    7 Bool "bool" Some(1), "One byte; anything but 0 is true.";
    8 String "string" None, "A `u64` length and that many bytes, by convention UTF-8.";
    9 Array "array" None, "An element type, a `u64` count, and the elements.";
    10 U64 "u64" Some(8), "Unsigned 64-bit integer.";
    11 I64 "i64" Some(8), "Signed 64-bit integer.";
    12 F64 "f64" Some(8), "64-bit float.";
}

/// The short name.
impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_positions_in_the_list() {
        for (id, ty) in (0..).zip(ValueType::ALL) {
            assert_eq!((ty.id(), ValueType::from_id(id)), (id, Some(ty)), "{ty}");
        }
        assert_eq!(ValueType::from_id(13), None);
        assert_eq!(ValueType::from_id(u32::MAX), None);
    }
}

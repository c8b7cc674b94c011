//! Metadata values as views into the file.

use core::fmt;

use crate::{Array, FromWire, ValueType};

/// A string value: any bytes, by convention UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Str<'a>(&'a [u8]);

impl<'a> Str<'a> {
    /// Takes bytes as a string value.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The bytes, without the length before them.
    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The text, `None` if the bytes are not UTF-8.
    #[must_use]
    pub fn as_str(self) -> Option<&'a str> {
        str::from_utf8(self.0).ok()
    }
}

/// Quoted and escaped.
impl fmt::Debug for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for chunk in self.0.utf8_chunks() {
            write!(f, "{}{}", chunk.valid().escape_debug(), chunk.invalid().escape_ascii())?;
        }
        f.write_str("\"")
    }
}

/// The text, with U+FFFD for what is not UTF-8. Control characters are passed through.
impl fmt::Display for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            f.write_str(chunk.valid())?;
            if !chunk.invalid().is_empty() {
                f.write_str("\u{fffd}")?;
            }
        }
        Ok(())
    }
}

/// A metadata value in its exact wire type.
///
/// The `as_` accessors widen and never wrap or round: they answer `None` if the value has no exact
/// counterpart in the asked-for type.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// `u8`.
    U8(u8),
    /// `i8`.
    I8(i8),
    /// `u16`.
    U16(u16),
    /// `i16`.
    I16(i16),
    /// `u32`.
    U32(u32),
    /// `i32`.
    I32(i32),
    /// `f32`.
    F32(f32),
    /// One byte, true unless 0.
    Bool(bool),
    /// A string.
    String(Str<'a>),
    /// An array, not decoded.
    Array(Array<'a>),
    /// `u64`; 2^63 and more are legal.
    U64(u64),
    /// `i64`.
    I64(i64),
    /// `f64`.
    F64(f64),
}

impl<'a> Value<'a> {
    /// Takes a value off `rest`, the bytes after its wire type; `None` if they are too few. An array
    /// takes all of them, undecoded.
    pub(crate) fn decode(ty: ValueType, rest: &mut &'a [u8]) -> Option<Self> {
        fn read<'a, T: FromWire<'a>>(rest: &mut &'a [u8]) -> Option<Value<'a>> {
            T::take(rest).map(T::into_value)
        }
        match ty {
            ValueType::U8 => read::<u8>(rest),
            ValueType::I8 => read::<i8>(rest),
            ValueType::U16 => read::<u16>(rest),
            ValueType::I16 => read::<i16>(rest),
            ValueType::U32 => read::<u32>(rest),
            ValueType::I32 => read::<i32>(rest),
            ValueType::F32 => read::<f32>(rest),
            ValueType::Bool => read::<bool>(rest),
            ValueType::String => read::<Str<'_>>(rest),
            ValueType::U64 => read::<u64>(rest),
            ValueType::I64 => read::<i64>(rest),
            ValueType::F64 => read::<f64>(rest),
            ValueType::Array => Array::decode(rest).map(Self::Array),
        }
    }

    /// The wire type.
    #[must_use]
    pub const fn ty(&self) -> ValueType {
        match self {
            Self::U8(_) => ValueType::U8,
            Self::I8(_) => ValueType::I8,
            Self::U16(_) => ValueType::U16,
            Self::I16(_) => ValueType::I16,
            Self::U32(_) => ValueType::U32,
            Self::I32(_) => ValueType::I32,
            Self::F32(_) => ValueType::F32,
            Self::Bool(_) => ValueType::Bool,
            Self::String(_) => ValueType::String,
            Self::Array(_) => ValueType::Array,
            Self::U64(_) => ValueType::U64,
            Self::I64(_) => ValueType::I64,
            Self::F64(_) => ValueType::F64,
        }
    }

    /// Any integer that fits an `i64`.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        Some(match *self {
            Self::U8(v) => v.into(),
            Self::I8(v) => v.into(),
            Self::U16(v) => v.into(),
            Self::I16(v) => v.into(),
            Self::U32(v) => v.into(),
            Self::I32(v) => v.into(),
            Self::I64(v) => v,
            Self::U64(v) => i64::try_from(v).ok()?,
            _ => return None,
        })
    }

    /// Any integer that is not negative.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Self::U64(v) => Some(v),
            _ => u64::try_from(self.as_i64()?).ok(),
        }
    }

    /// A float, or an integer of magnitude up to 2^53: all of them are exact in an `f64`.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            Self::F32(v) => Some(v.into()),
            Self::F64(v) => Some(v),
            // No magnitude up to 2^53 is rounded.
            _ => self.as_i64().filter(|v| v.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS).map(|v| v as f64),
        }
    }

    /// A bool; integers are not taken for one.
    #[must_use]
    pub const fn as_bool(&self) -> Option<bool> {
        match *self {
            Self::Bool(v) => Some(v),
            _ => None,
        }
    }

    /// A string that is UTF-8. The bytes of any string are in [`Self::String`].
    #[must_use]
    pub fn as_str(&self) -> Option<&'a str> {
        match *self {
            Self::String(s) => s.as_str(),
            _ => None,
        }
    }

    /// An array.
    #[must_use]
    pub const fn as_array(&self) -> Option<Array<'a>> {
        match *self {
            Self::Array(a) => Some(a),
            _ => None,
        }
    }
}

/// One metadata entry.
#[derive(Clone, Copy)]
pub struct KeyValue<'a> {
    pub(crate) key: &'a str,
    pub(crate) raw: &'a [u8],
    pub(crate) payload: &'a [u8],
    pub(crate) ty: ValueType,
}

impl<'a> KeyValue<'a> {
    /// The key.
    #[must_use]
    pub const fn key(&self) -> &'a str {
        self.key
    }

    /// The wire type of the value.
    #[must_use]
    pub const fn value_type(&self) -> ValueType {
        self.ty
    }

    /// The value; an array stays undecoded.
    #[must_use]
    pub fn value(&self) -> Value<'a> {
        // Bytes that are no value are possible only for an index over bytes it was not made from.
        Value::decode(self.ty, &mut { self.payload }).unwrap_or(Value::String(Str::new(&[])))
    }

    /// The whole entry verbatim: key length, key, value type, value.
    #[must_use]
    pub const fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// The value's bytes verbatim, without its wire type: a string begins with its length, an array
    /// with element type and count.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// Key and value; arrays by type and length only.
impl fmt::Debug for KeyValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' = {:?}", self.key.escape_debug(), self.value())
    }
}

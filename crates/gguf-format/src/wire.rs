//! The Rust types that have a wire form: what each reads from and writes to.

use alloc::{string::String, vec::Vec};

use crate::{Str, Value, ValueType, cursor::widen};

pub(crate) mod sealed {
    #[expect(unnameable_types, reason = "nobody else shall implement what it seals")]
    pub trait Sealed {}
}

/// A Rust type that an array's elements can be read as without conversion: the eight integers, `f32`,
/// `f64`, `bool` and [`Str`]. Sealed.
pub trait FromWire<'a>: sealed::Sealed + Copy {
    /// The element type it reads.
    const TYPE: ValueType;

    #[doc(hidden)]
    fn take(rest: &mut &'a [u8]) -> Option<Self>;

    #[doc(hidden)]
    fn into_value(self) -> Value<'a>;
}

/// A Rust type that one array element or one value can be written from: those of [`FromWire`], and
/// `&str` and `String`. Sealed.
pub trait Element: sealed::Sealed {
    /// The wire type it is written as.
    const TYPE: ValueType;

    #[doc(hidden)]
    fn put(&self, out: &mut Vec<u8>);
}

macro_rules! numbers {
    ($($ty:ty: $variant:ident;)+) => {$(
        impl sealed::Sealed for $ty {}

        impl<'a> FromWire<'a> for $ty {
            const TYPE: ValueType = ValueType::$variant;

            #[inline]
            fn take(rest: &mut &'a [u8]) -> Option<Self> {
                let (head, tail) = rest.split_first_chunk()?;
                *rest = tail;
                Some(Self::from_le_bytes(*head))
            }

            fn into_value(self) -> Value<'a> {
                Value::$variant(self)
            }
        }

        impl Element for $ty {
            const TYPE: ValueType = ValueType::$variant;

            #[inline]
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }
    )+};
}

numbers! {
    u8: U8;
    i8: I8;
    u16: U16;
    i16: I16;
    u32: U32;
    i32: I32;
    u64: U64;
    i64: I64;
    f32: F32;
    f64: F64;
}

impl sealed::Sealed for bool {}

impl<'a> FromWire<'a> for bool {
    const TYPE: ValueType = ValueType::Bool;

    fn take(rest: &mut &'a [u8]) -> Option<Self> {
        u8::take(rest).map(|byte| byte != 0)
    }

    fn into_value(self) -> Value<'a> {
        Value::Bool(self)
    }
}

impl Element for bool {
    const TYPE: ValueType = ValueType::Bool;

    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
}

impl sealed::Sealed for Str<'_> {}

impl<'a> FromWire<'a> for Str<'a> {
    const TYPE: ValueType = ValueType::String;

    #[inline]
    fn take(rest: &mut &'a [u8]) -> Option<Self> {
        let len = usize::try_from(u64::take(rest)?).ok()?;
        let (head, tail) = rest.split_at_checked(len)?;
        *rest = tail;
        Some(Self::new(head))
    }

    fn into_value(self) -> Value<'a> {
        Value::String(self)
    }
}

/// Writes a string: length, then bytes.
pub(crate) fn put_string(bytes: &[u8], out: &mut Vec<u8>) {
    widen(bytes.len()).put(out);
    out.extend_from_slice(bytes);
}

macro_rules! strings {
    ($($ty:ty;)+) => {$(
        impl Element for $ty {
            const TYPE: ValueType = ValueType::String;

            fn put(&self, out: &mut Vec<u8>) {
                put_string(self.as_bytes(), out);
            }
        }
    )+};
}

impl sealed::Sealed for &str {}
impl sealed::Sealed for String {}
impl sealed::Sealed for &String {}

strings! {
    Str<'_>;
    &str;
    String;
    &String;
}

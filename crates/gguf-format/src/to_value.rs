//! The Rust types that a metadata value can be written from.

use alloc::{string::String, vec::Vec};

use crate::{Array, Element, Str, Value, ValueType, cursor::widen, wire::sealed};

/// A Rust type with a wire form: the type picks the wire type.
///
/// These are the eight integers with a fixed width, `f32`, `f64`, `bool`, strings (`&str`,
/// `String`, [`Str`]), slices, arrays and vectors of those, and [`Value`] and [`Array`] as they were
/// read. Sealed.
///
/// A type without a wire form does not compile, so that no value changes its width by accident:
///
/// ```compile_fail
/// let mut builder = gguf_format::Builder::new();
/// builder.set("llama.block_count", 32_usize);
/// ```
///
/// With the width written down it does:
///
/// ```
/// let mut builder = gguf_format::Builder::new();
/// builder.set("llama.block_count", 32_u32);
/// ```
pub trait ToValue: sealed::Sealed {
    /// The wire type.
    #[doc(hidden)]
    fn value_type(&self) -> ValueType;

    /// Appends the value's bytes as they stand after its wire type.
    #[doc(hidden)]
    fn put_value(&self, out: &mut Vec<u8>);
}

macro_rules! single {
    ($($ty:ty)+) => {$(
        impl ToValue for $ty {
            fn value_type(&self) -> ValueType {
                <Self as Element>::TYPE
            }

            fn put_value(&self, out: &mut Vec<u8>) {
                self.put(out);
            }
        }
    )+};
}

single!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 bool &str String &String Str<'_>);

impl<T: Element> sealed::Sealed for &[T] {}

impl<T: Element> ToValue for &[T] {
    fn value_type(&self) -> ValueType {
        ValueType::Array
    }

    fn put_value(&self, out: &mut Vec<u8>) {
        put_array_head(T::TYPE, self.len(), out);
        for element in *self {
            element.put(out);
        }
    }
}

macro_rules! array {
    ($([$($generics:tt)*] $ty:ty;)+) => {$(
        impl<$($generics)*> sealed::Sealed for $ty {}

        impl<$($generics)*> ToValue for $ty {
            fn value_type(&self) -> ValueType {
                ValueType::Array
            }

            fn put_value(&self, out: &mut Vec<u8>) {
                let slice: &[T] = self.as_ref();
                slice.put_value(out);
            }
        }
    )+};
}

array! {
    [T: Element] Vec<T>;
    [T: Element] &Vec<T>;
    [T: Element, const N: usize] [T; N];
    [T: Element, const N: usize] &[T; N];
}

impl sealed::Sealed for Array<'_> {}

/// Verbatim: a bool keeps its byte.
impl ToValue for Array<'_> {
    fn value_type(&self) -> ValueType {
        ValueType::Array
    }

    fn put_value(&self, out: &mut Vec<u8>) {
        put_array_head(self.element_type(), self.len(), out);
        out.extend_from_slice(self.raw());
    }
}

impl sealed::Sealed for Value<'_> {}

impl ToValue for Value<'_> {
    fn value_type(&self) -> ValueType {
        self.ty()
    }

    fn put_value(&self, out: &mut Vec<u8>) {
        match self {
            Self::U8(v) => v.put(out),
            Self::I8(v) => v.put(out),
            Self::U16(v) => v.put(out),
            Self::I16(v) => v.put(out),
            Self::U32(v) => v.put(out),
            Self::I32(v) => v.put(out),
            Self::F32(v) => v.put(out),
            Self::Bool(v) => v.put(out),
            Self::String(v) => v.put(out),
            Self::Array(v) => v.put_value(out),
            Self::U64(v) => v.put(out),
            Self::I64(v) => v.put(out),
            Self::F64(v) => v.put(out),
        }
    }
}

fn put_array_head(element: ValueType, len: usize, out: &mut Vec<u8>) {
    element.id().put(out);
    widen(len).put(out);
}

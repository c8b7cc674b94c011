//! Arrays that stay undecoded until asked.

use alloc::vec::Vec;
use core::{fmt, iter::FusedIterator, marker::PhantomData, mem};

use crate::{FromWire, Str, Value, ValueType};

/// An array value: its elements are decoded as they are iterated over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Array<'a> {
    element: ValueType,
    len: usize,
    bytes: &'a [u8],
}

impl<'a> Array<'a> {
    /// Takes element type and count off the payload of an array value; the rest are the elements.
    /// `None` if the elements cannot be so many.
    pub(crate) fn decode(payload: &mut &'a [u8]) -> Option<Self> {
        let element = ValueType::from_id(u32::take(payload)?).filter(|e| *e != ValueType::Array)?;
        let len = usize::try_from(u64::take(payload)?).ok()?;
        let least = len.checked_mul(element.size().unwrap_or(8).into())?;
        (least <= payload.len()).then_some(Self { element, len, bytes: mem::take(payload) })
    }

    /// Takes the first element off. Bytes that are none end the array: that is possible only over
    /// bytes that were not parsed.
    #[inline]
    fn step<T>(&mut self, take: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.len = self.len.checked_sub(1)?;
        let taken = take(self);
        if taken.is_none() {
            self.len = 0;
        }
        taken
    }

    /// The wire type of the elements, which an empty array has too. Never [`ValueType::Array`].
    #[must_use]
    pub const fn element_type(&self) -> ValueType {
        self.element
    }

    /// The number of elements.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True without elements.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements verbatim as they are in the file, without element type and count.
    #[must_use]
    pub const fn raw(&self) -> &'a [u8] {
        self.bytes
    }

    /// The elements one by one, each in its wire type.
    #[must_use]
    pub const fn iter(&self) -> Values<'a> {
        Values(*self)
    }

    /// The elements as `T`, `None` if they have another wire type: nothing is converted.
    #[must_use]
    pub fn iter_as<T: FromWire<'a>>(&self) -> Option<Elements<'a, T>> {
        (self.element == T::TYPE).then_some(Elements(*self, PhantomData))
    }

    /// The strings of a string array, `None` for another element type.
    #[must_use]
    pub fn strings(&self) -> Option<Elements<'a, Str<'a>>> {
        self.iter_as()
    }

    /// The elements collected, `None` if they have another wire type than `T`.
    #[must_use]
    pub fn to_vec<T: FromWire<'a>>(&self) -> Option<Vec<T>> {
        self.iter_as().map(Iterator::collect)
    }

    /// Element `index`: at once for numbers, by walking for strings.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Value<'a>> {
        if index >= self.len {
            return None;
        }
        match self.element.size() {
            Some(size) => {
                let at = index.checked_mul(usize::from(size))?;
                Value::decode(self.element, &mut self.bytes.get(at..)?)
            }
            None => self.iter().nth(index),
        }
    }
}

/// Element type and count only; an array may be long.
impl fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}; {}]", self.element, self.len)
    }
}

impl<'a> IntoIterator for Array<'a> {
    type Item = Value<'a>;
    type IntoIter = Values<'a>;

    fn into_iter(self) -> Values<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &Array<'a> {
    type Item = Value<'a>;
    type IntoIter = Values<'a>;

    fn into_iter(self) -> Values<'a> {
        self.iter()
    }
}

/// The elements of an array in their wire type; see [`Array::iter`].
#[derive(Debug, Clone)]
pub struct Values<'a>(Array<'a>);

impl<'a> Iterator for Values<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        self.0.step(|array| Value::decode(array.element, &mut array.bytes))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.len, Some(self.0.len))
    }
}

impl ExactSizeIterator for Values<'_> {}
impl FusedIterator for Values<'_> {}

/// The elements of an array as `T`; see [`Array::iter_as`].
#[derive(Debug, Clone)]
pub struct Elements<'a, T>(Array<'a>, PhantomData<T>);

impl<'a, T: FromWire<'a>> Iterator for Elements<'a, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.0.step(|array| T::take(&mut array.bytes))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.len, Some(self.0.len))
    }
}

impl<'a, T: FromWire<'a>> ExactSizeIterator for Elements<'a, T> {}
impl<'a, T: FromWire<'a>> FusedIterator for Elements<'a, T> {}

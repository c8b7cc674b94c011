//! A parsed file: the bytes and their directory.

use alloc::borrow::Cow;
use core::fmt;

use crate::{
    Error, Finding, Index, KeyValue, TensorInfo, Value,
    index::{find, key_name, tensor_name},
    parse,
};

/// Which bytes a parse has at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bounds {
    /// The whole file: every tensor must lie within the bytes.
    #[default]
    Whole,
    /// At least the header; tensors are checked against the file's length, if that is known.
    HeaderOnly {
        /// The length of the file in bytes.
        file_len: Option<u64>,
    },
}

/// How to parse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ParseOptions {
    /// Also read gaps between tensors, data in another order than the infos, offsets off the
    /// alignment, and tensors of unknown or removed type. Bounds and overlaps are checked as ever.
    pub lenient: bool,
    /// Which bytes are at hand.
    pub bounds: Bounds,
}

/// A parsed GGUF file: a view of its bytes.
#[derive(Clone)]
pub struct Gguf<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) index: Cow<'a, Index>,
}

impl<'a> Gguf<'a> {
    /// Parses a whole file, strictly.
    ///
    /// # Errors
    /// The first fault found, with its place: see [`ErrorKind`](crate::ErrorKind).
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::parse_with(bytes, &ParseOptions::default())
    }

    /// Parses as `options` say.
    ///
    /// # Errors
    /// The first fault found, with its place: see [`ErrorKind`](crate::ErrorKind).
    pub fn parse_with(bytes: &'a [u8], options: &ParseOptions) -> Result<Self, Error> {
        Ok(Self { bytes, index: Cow::Owned(parse::parse(bytes, options)?) })
    }

    /// The format version, 2 or 3.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.index.version
    }

    /// The alignment of tensor data in bytes, a power of two.
    #[must_use]
    pub fn alignment(&self) -> u64 {
        self.index.alignment.into()
    }

    /// Bytes from the start of the file to the end of the tensor infos, before the padding.
    #[must_use]
    pub fn header_len(&self) -> u64 {
        self.index.header_len()
    }

    /// The file offset at which the data section starts.
    #[must_use]
    pub fn data_offset(&self) -> u64 {
        self.index.data_offset
    }

    /// The metadata in file order.
    pub fn metadata(&self) -> impl ExactSizeIterator<Item = KeyValue<'a>> + DoubleEndedIterator + '_ {
        self.index.keys.iter().map(|record| Index::key_value(self.bytes, record))
    }

    /// The metadata entry of `key`, found by binary search.
    #[must_use]
    pub fn key_value(&self, key: &str) -> Option<KeyValue<'a>> {
        let Index { keys, keys_by_name, .. } = &*self.index;
        let found = find(keys_by_name, key, |i| key_name(self.bytes, keys, i))?;
        Some(Index::key_value(self.bytes, keys.get(found)?))
    }

    /// The value of `key`, found by binary search.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Value<'a>> {
        self.key_value(key).map(|kv| kv.value())
    }

    /// The tensors in the order of their infos.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = TensorInfo<'a>> + DoubleEndedIterator + '_ {
        self.index.tensors.iter().map(|record| self.index.tensor_info(self.bytes, record))
    }

    /// The tensor of this name, found by binary search.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<TensorInfo<'a>> {
        let Index { tensors, tensors_by_name, .. } = &*self.index;
        let found = find(tensors_by_name, name, |i| tensor_name(self.bytes, tensors, i))?;
        Some(self.index.tensor_info(self.bytes, tensors.get(found)?))
    }

    /// The bytes of a tensor. `None` if they are not among the bytes at hand: after a parse of
    /// [`Bounds::HeaderOnly`], or over a copy of the header.
    #[must_use]
    pub fn data(&self, tensor: &TensorInfo<'_>) -> Option<&'a [u8]> {
        let len = usize::try_from(tensor.byte_len()).ok()?;
        if len == 0 {
            return Some(&[]);
        }
        let start = usize::try_from(tensor.file_offset()).ok()?;
        self.bytes.get(start..start.checked_add(len)?)
    }

    /// What is odd about the file.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        self.index.findings()
    }

    /// The bytes this looks at.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The first [`Self::header_len`] bytes: all that [`Index::view`] needs.
    #[must_use]
    pub fn header_bytes(&self) -> &'a [u8] {
        self.bytes.get(..self.index.header_len).unwrap_or(self.bytes)
    }

    /// The directory without the bytes.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The directory without the bytes, owned.
    #[must_use]
    pub fn into_index(self) -> Index {
        self.index.into_owned()
    }
}

/// Numbers only; the bytes may be many.
impl fmt::Debug for Gguf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gguf")
            .field("version", &self.version())
            .field("alignment", &self.alignment())
            .field("data_offset", &self.data_offset())
            .field("keys", &self.index.keys.len())
            .field("tensors", &self.index.tensors.len())
            .field("findings", &self.findings())
            .finish_non_exhaustive()
    }
}

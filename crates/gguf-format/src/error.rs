//! What is wrong with a file, and where.

use core::fmt;

use crate::{Name, ValueType, shape::ShapeError, sniff::Foreign};

/// Why bytes are not a readable GGUF file.
///
/// Its text carries what is wrong with the values involved, what was being read (key or tensor by
/// name), and the byte offset in hex.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    at: u64,
    place: Place,
    kind: ErrorKind,
}

impl Error {
    pub(crate) const fn new(at: u64, kind: ErrorKind) -> Self {
        Self { at, place: Place::Header, kind }
    }

    /// Names what was being read.
    pub(crate) fn within(mut self, place: Place) -> Self {
        self.place = place;
        self
    }

    /// The offset in the file of the field at fault, in bytes.
    #[must_use]
    pub const fn at(&self) -> u64 {
        self.at
    }

    /// What was being read.
    #[must_use]
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// What is wrong.
    #[must_use]
    pub const fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// True if more bytes could mend it: the header ends early, or a tensor's data does.
    #[must_use]
    pub const fn is_truncated(&self) -> bool {
        matches!(self.kind, ErrorKind::Empty | ErrorKind::Truncated { .. } | ErrorKind::DataTruncated { .. })
    }
}

/// The part of the file that was being read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// The fixed header: magic, version and the two counts.
    Header,
    /// The key of the metadata entry of this position, counted from 0.
    Key(u64),
    /// The value of this key.
    Value(Name),
    /// The name of the tensor info of this position, counted from 0.
    TensorName(u64),
    /// The info or the data of this tensor.
    Tensor(Name),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => f.write_str("the file header"),
            Self::Key(index) => write!(f, "the key of metadata entry {index}"),
            Self::Value(key) => write!(f, "the value of key {key}"),
            Self::TensorName(index) => write!(f, "the name of tensor info {index}"),
            Self::Tensor(name) => write!(f, "tensor {name}"),
        }
    }
}

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There are no bytes at all.
    Empty,
    /// The file does not start with `GGUF`.
    NotGguf(Foreign),
    /// A version other than 2 and 3.
    Version(u32),
    /// Every number of the file is stored big-endian.
    BigEndian {
        /// The version, read big-endian.
        version: u32,
    },
    /// The bytes end inside a field of the header.
    Truncated {
        /// The field.
        what: &'static str,
        /// Its bytes.
        need: u64,
        /// The bytes left.
        have: u64,
    },
    /// A count in the fixed header that the file has no room for.
    Count {
        /// What is counted.
        what: &'static str,
        /// The count.
        count: u64,
        /// The bytes left.
        have: u64,
    },
    /// A length above a fixed limit.
    Length {
        /// What has the length.
        what: &'static str,
        /// The length in bytes, for an array in elements.
        len: u64,
        /// The largest length that is read.
        max: u64,
    },
    /// A key of no bytes.
    EmptyKey,
    /// A tensor name of no bytes.
    EmptyName,
    /// A key or tensor name that is not UTF-8, shown with U+FFFD for what is not.
    NotUtf8(Name),
    /// A key that an earlier entry has.
    DuplicateKey {
        /// The key.
        key: Name,
        /// The position of the earlier entry.
        first: u64,
    },
    /// A tensor name that an earlier tensor has.
    DuplicateTensor {
        /// The position of the earlier tensor.
        first: u64,
    },
    /// A value type that GGUF does not define.
    ValueType(u32),
    /// An array element type that GGUF does not define.
    ElementType(u32),
    /// An array whose elements are arrays.
    NestedArray,
    /// `general.alignment` has another wire type than `u32`.
    AlignmentType(ValueType),
    /// `general.alignment` is not a power of two.
    Alignment(u32),
    /// A tensor's dimensions or type give no size.
    Shape(ShapeError),
    /// A tensor's offset is not a multiple of the alignment.
    Unaligned {
        /// The offset, counted from the start of the data.
        offset: u64,
        /// The alignment.
        alignment: u32,
    },
    /// A tensor does not start where the one before it ends.
    Offset {
        /// The offset, counted from the start of the data.
        offset: u64,
        /// The offset that follows from the tensors before it.
        expected: u64,
    },
    /// A tensor shares bytes with another.
    Overlap {
        /// The offset, counted from the start of the data.
        offset: u64,
        /// The other tensor.
        other: Name,
        /// The offset where the other tensor ends.
        end: u64,
    },
    /// A tensor's place in the file exceeds the range of `u64`.
    Place {
        /// The offset, counted from the start of the data.
        offset: u64,
        /// The tensor's bytes.
        len: u64,
    },
    /// The file ends inside or before a tensor's data.
    DataTruncated {
        /// Where the data starts in the file.
        start: u64,
        /// The tensor's bytes.
        len: u64,
        /// The length of the file.
        file_len: u64,
        /// How many bytes of all tensors lie beyond the end of the file.
        missing: u64,
    },
}

impl ErrorKind {
    /// How many bytes of the tensor lie beyond the end of the file, for [`Self::DataTruncated`].
    #[must_use]
    pub fn tensor_missing(&self) -> Option<u64> {
        match *self {
            Self::DataTruncated { start, len, file_len, .. } => {
                Some(len.saturating_sub(file_len.saturating_sub(start)))
            }
            _ => None,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("file is empty (0 bytes)"),
            Self::NotGguf(what) => write!(f, "not a GGUF file but {what}"),
            Self::Version(v) => write!(f, "GGUF version {v} is not supported (only 2 and 3)"),
            Self::BigEndian { version } => {
                write!(f, "big-endian GGUF (version {version}) is not supported")
            }
            Self::Truncated { what, need, have } => {
                write!(f, "file is truncated: {what} needs {need} bytes, {have} left")
            }
            Self::Count { what, count, have } => {
                write!(f, "{what} count {count} exceeds the {have} bytes left")
            }
            Self::Length { what, len, max } => write!(f, "{what} length {len} exceeds the limit of {max}"),
            Self::EmptyKey => f.write_str("key is empty"),
            Self::EmptyName => f.write_str("tensor name is empty"),
            Self::NotUtf8(name) => write!(f, "{name} is not UTF-8"),
            Self::DuplicateKey { key, first } => {
                write!(f, "duplicate key {key}, first seen as entry {first}")
            }
            Self::DuplicateTensor { first } => {
                write!(f, "duplicate tensor name, first seen as tensor {first}")
            }
            Self::ValueType(id) => write!(f, "unknown value type {id} (0 to 12 exist)"),
            Self::ElementType(id) => write!(f, "unknown array element type {id} (0 to 12 exist)"),
            Self::NestedArray => f.write_str("nested array (an array of arrays) is not supported"),
            Self::AlignmentType(ty) => write!(f, "general.alignment has type {ty}, must be u32"),
            Self::Alignment(value) => write!(f, "general.alignment {value} is not a power of two"),
            Self::Shape(shape) => shape.fmt(f),
            Self::Unaligned { offset, alignment } => {
                write!(f, "offset {offset} is not a multiple of the alignment {alignment}")
            }
            Self::Offset { offset, expected } => {
                let fault = if offset < expected { "overlap or wrong order" } else { "gap or wrong order" };
                write!(f, "offset {offset}, expected {expected} ({fault})")
            }
            Self::Overlap { offset, other, end } => {
                write!(f, "offset {offset} overlaps tensor {other}, which ends at offset {end}")
            }
            Self::Place { offset, len } => {
                write!(f, "offset {offset} and size {len} overflow the file's 64-bit range")
            }
            Self::DataTruncated { start, len, file_len, .. } => {
                let cut = self.tensor_missing().unwrap_or_default();
                write!(
                    f,
                    "file is truncated: {len} bytes of data from byte {start:#x} exceed the end of the file \
                     ({file_len} bytes) by {cut}"
                )
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, place, kind } = self;
        match (kind, place) {
            (ErrorKind::Empty, _) => write!(f, "{kind}")?,
            (_, Place::Header) => write!(f, "{kind} at byte {at:#x}")?,
            _ => write!(f, "{kind}, in {place} at byte {at:#x}")?,
        }
        match kind {
            ErrorKind::NotGguf(foreign) => match foreign.hint() {
                Some(hint) => write!(f, ": {hint}"),
                None => Ok(()),
            },
            ErrorKind::Count { .. } => f.write_str(": the count is wrong or the file is truncated"),
            ErrorKind::Version(1) => f.write_str(": convert the model again"),
            ErrorKind::BigEndian { .. } => f.write_str(": convert it to little-endian"),
            ErrorKind::DataTruncated { missing, .. } => {
                write!(f, ": the download is incomplete, {missing} bytes are missing in all")
            }
            _ => Ok(()),
        }
    }
}

impl core::error::Error for Error {}

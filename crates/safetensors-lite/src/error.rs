//! What can be wrong with a file, one variant per rule, with the values that broke it.

use crate::{Dtype, header::MAX_HEADER_LEN};
use std::fmt;

/// Why bytes are not a safetensors file, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    at: u64,
    kind: ErrorKind,
}

/// The rule that was broken. `tensor` is always the name as the header has it, unescaped.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq)]
pub enum ErrorKind {
    /// Fewer than the 8 bytes of the header length.
    LengthMissing {
        /// Bytes there are.
        have: u64,
    },
    /// The announced header is longer than [`MAX_HEADER_LEN`].
    HeaderTooLarge {
        /// Announced length in bytes.
        announced: u64,
        /// What the first bytes look like instead, where they are known.
        looks_like: Option<&'static str>,
    },
    /// The announced header is longer than what follows.
    HeaderPastEnd {
        /// Announced length in bytes.
        need: u64,
        /// Bytes there are after the length.
        have: u64,
    },
    /// The header is not UTF-8.
    NotUtf8,
    /// The header does not begin with `{`.
    NoBrace {
        /// Its first byte; `None` for an empty header.
        found: Option<u8>,
    },
    /// The header, or the index of a sharded checkpoint, is not JSON.
    Json {
        /// What the JSON reader says.
        message: Box<str>,
    },
    /// A key stands twice in one object, whatever its values.
    DuplicateKey {
        /// The key.
        key: Box<str>,
        /// The top-level key it stands under; `None` for a top-level key.
        inside: Option<Box<str>>,
    },
    /// A value of the wrong JSON type.
    WrongType {
        /// The top-level key it stands under.
        inside: Box<str>,
        /// The field, or the metadata key; empty for the whole entry.
        field: Box<str>,
        /// What must stand here.
        expected: &'static str,
        /// What does.
        found: Found,
    },
    /// `data_offsets` is not a pair.
    OffsetCount {
        /// Tensor name.
        tensor: Box<str>,
        /// How many numbers there are.
        count: u64,
    },
    /// A tensor without one of its three fields.
    MissingField {
        /// Tensor name.
        tensor: Box<str>,
        /// `dtype`, `shape` or `data_offsets`.
        field: &'static str,
    },
    /// A dtype tag that is none of [`DTYPES`](crate::DTYPES).
    UnknownDtype {
        /// Tensor name.
        tensor: Box<str>,
        /// The tag.
        tag: Box<str>,
    },
    /// A tensor that ends before it begins.
    ReversedOffsets {
        /// Tensor name.
        tensor: Box<str>,
        /// First byte in the data.
        begin: u64,
        /// Byte after the last.
        end: u64,
    },
    /// Bytes between two tensors that no tensor covers.
    Hole {
        /// The tensor after the hole.
        tensor: Box<str>,
        /// Where it begins.
        begin: u64,
        /// Where it had to begin.
        expected: u64,
    },
    /// A tensor that begins inside the one before.
    Overlap {
        /// The later tensor.
        tensor: Box<str>,
        /// Where it begins.
        begin: u64,
        /// Where it had to begin.
        expected: u64,
    },
    /// The tensors reach past the end of the data.
    DataTruncated {
        /// The first tensor that is not whole.
        tensor: Box<str>,
        /// Bytes of data the header announces.
        need: u64,
        /// Bytes there are.
        have: u64,
    },
    /// Bytes after the last tensor.
    TrailingBytes {
        /// How many.
        extra: u64,
    },
    /// The size of a tensor does not fit 64 bits.
    SizeOverflow {
        /// Tensor name.
        tensor: Box<str>,
        /// Its dtype.
        dtype: Dtype,
        /// Its shape.
        shape: Box<[u64]>,
    },
    /// The elements of a sub-byte dtype do not fill whole bytes.
    SubByte {
        /// Tensor name.
        tensor: Box<str>,
        /// Its dtype.
        dtype: Dtype,
        /// Its shape.
        shape: Box<[u64]>,
        /// Its size in bits.
        bits: u64,
    },
    /// Dtype and shape take another number of bytes than the offsets span.
    SizeMismatch {
        /// Tensor name.
        tensor: Box<str>,
        /// Its dtype.
        dtype: Dtype,
        /// Its shape.
        shape: Box<[u64]>,
        /// Bytes that dtype and shape take.
        need: u64,
        /// Bytes that the offsets span.
        have: u64,
    },
}

/// A JSON value that stands where another type must.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A non-negative integer of at most 64 bits.
    Unsigned(u64),
    /// A negative integer.
    Negative(i64),
    /// Any other number, integers beyond 64 bits included.
    Float(f64),
    /// A string.
    Text(Box<str>),
    /// An array.
    Array,
    /// An object.
    Object,
}

impl Error {
    pub(crate) fn new(at: u64, kind: ErrorKind) -> Self {
        Self { at, kind }
    }

    /// Where in the file: the byte that is wrong, or the name in the header of the tensor that is.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The rule and the values.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {:#x}", self.kind, self.at)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LengthMissing { have } => {
                write!(f, "file too short: the header length needs 8 bytes, {have} left")
            }
            Self::HeaderTooLarge { announced, looks_like: None } => {
                write!(f, "header too large: {announced} bytes announced, at most {MAX_HEADER_LEN} allowed")
            }
            Self::HeaderTooLarge { announced, looks_like: Some(what) } => write!(
                f,
                "not a safetensors file but {what}: header too large, {announced} bytes announced, \
                 at most {MAX_HEADER_LEN} allowed"
            ),
            Self::HeaderPastEnd { need, have } => {
                write!(f, "header truncated: {need} bytes announced, {have} left")
            }
            Self::NotUtf8 => f.write_str("header is not UTF-8"),
            Self::NoBrace { found: None } => f.write_str("header is empty, JSON must begin with '{'"),
            Self::NoBrace { found: Some(byte) } => {
                write!(f, "header begins with byte {byte:#04x}, JSON must begin with '{{'")
            }
            Self::Json { message } => write!(f, "invalid JSON: {message}"),
            Self::DuplicateKey { key, inside: None } => write!(f, "duplicate key {}", Quoted(key)),
            Self::DuplicateKey { key, inside: Some(inside) } => {
                write!(f, "duplicate key {} in {}", Quoted(key), Quoted(inside))
            }
            Self::WrongType { inside, field, expected, found } => {
                match &**inside {
                    "__metadata__" => f.write_str("__metadata__: ")?,
                    tensor => write!(f, "tensor {}: ", Quoted(tensor))?,
                }
                match &**field {
                    "" => write!(f, "must be {expected}, found {found}"),
                    field => write!(f, "{} must be {expected}, found {found}", Quoted(field)),
                }
            }
            Self::OffsetCount { tensor, count } => {
                write!(f, "tensor {}: data_offsets has {count} numbers, must have 2", Quoted(tensor))
            }
            Self::MissingField { tensor, field } => {
                write!(f, "tensor {}: {field} is missing", Quoted(tensor))
            }
            Self::UnknownDtype { tensor, tag } => {
                write!(f, "tensor {}: unknown dtype {}", Quoted(tensor), Quoted(tag))
            }
            Self::ReversedOffsets { tensor, begin, end } => {
                write!(f, "tensor {} begins at offset {begin}, after its end {end}", Quoted(tensor))
            }
            Self::Hole { tensor, begin, expected } => write!(
                f,
                "tensor {} begins at offset {begin}, expected {expected}: it leaves a hole",
                Quoted(tensor)
            ),
            Self::Overlap { tensor, begin, expected } => write!(
                f,
                "tensor {} begins at offset {begin}, expected {expected}: it overlaps the tensor before",
                Quoted(tensor)
            ),
            Self::DataTruncated { tensor, need, have } => write!(
                f,
                "data truncated: {need} bytes announced, {have} left, tensor {} is out of bounds",
                Quoted(tensor)
            ),
            Self::TrailingBytes { extra } => write!(f, "{extra} trailing bytes after the last tensor"),
            Self::SizeOverflow { tensor, dtype, shape } => {
                write!(f, "tensor {}: size of {dtype} {} overflows 64 bits", Quoted(tensor), Dims(shape))
            }
            Self::SubByte { tensor, dtype, shape, bits } => write!(
                f,
                "tensor {}: {dtype} {} takes {bits} bits, not whole bytes",
                Quoted(tensor),
                Dims(shape)
            ),
            Self::SizeMismatch { tensor, dtype, shape, need, have } => write!(
                f,
                "tensor {}: size of {dtype} {} is {need} bytes, data_offsets span {have}",
                Quoted(tensor),
                Dims(shape)
            ),
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Unsigned(value) => write!(f, "{value}"),
            Self::Negative(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Text(text) => write!(f, "string {}", Quoted(text)),
            Self::Array => f.write_str("an array"),
            Self::Object => f.write_str("an object"),
        }
    }
}

/// A name in an error: quoted, control characters escaped, and cut where it would swamp the line.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 120;
        match self.0.char_indices().nth(SHOWN) {
            None => write!(f, "{:?}", self.0),
            Some((cut, _)) => {
                write!(f, "{:?}... ({} bytes)", self.0.get(..cut).unwrap_or_default(), self.0.len())
            }
        }
    }
}

/// A shape in an error, cut after eight axes.
pub(crate) struct Dims<'a>(pub(crate) &'a [u64]);

impl fmt::Display for Dims<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        f.write_str("[")?;
        for (i, dim) in self.0.iter().take(SHOWN).enumerate() {
            write!(f, "{}{dim}", if i == 0 { "" } else { ", " })?;
        }
        if self.0.len() > SHOWN {
            write!(f, ", ... {} axes", self.0.len())?;
        }
        f.write_str("]")
    }
}

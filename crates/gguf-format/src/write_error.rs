//! Why a file cannot be written as asked.

use core::fmt;

use crate::{ALIGNMENT_KEY, MAX_GGML_NAME, MAX_NAME, Name, ShapeError, ValueType};

/// Why a file cannot be laid out or its data not be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError {
    /// A key of no bytes.
    EmptyKey,
    /// A key of more than [`MAX_NAME`] bytes.
    KeyTooLong {
        /// The key.
        key: Name,
        /// Its bytes.
        len: u64,
    },
    /// `general.alignment` set to another type than `u32`.
    AlignmentType(ValueType),
    /// An alignment that is not a power of two.
    Alignment(u32),
    /// A copied entry whose bytes are not one: they changed since the file was parsed.
    Copied(Name),
    /// A tensor name of more than [`MAX_GGML_NAME`] bytes, or of more than [`MAX_NAME`] where long
    /// names were allowed.
    NameTooLong {
        /// The tensor.
        name: Name,
        /// The bytes of its name.
        len: u64,
        /// The limit.
        max: u64,
    },
    /// A tensor without a name.
    EmptyName,
    /// A tensor name declared twice.
    DuplicateTensor(Name),
    /// A tensor's dimensions or type give no size.
    Shape {
        /// The tensor.
        name: Name,
        /// What is wrong.
        error: ShapeError,
    },
    /// A tensor in the 128-element layout of type id 42, copied to where a reader would take it for
    /// ggml's 64-element one: nothing but sizes and offsets tells them apart.
    ForkQ2_0(Name),
    /// The file would be longer than the range of `u64`, or a header longer than memory can hold.
    TooLarge,
    /// Another number of tensors given than declared.
    TensorCount {
        /// The number given.
        given: u64,
        /// The number declared.
        declared: u64,
    },
    /// A tensor with another number of bytes than declared.
    DataLen {
        /// The tensor.
        name: Name,
        /// The bytes given.
        given: u64,
        /// The bytes declared.
        declared: u64,
    },
    /// Data beyond the last tensor.
    TooMuch {
        /// The bytes for which there is no tensor.
        bytes: u64,
    },
    /// The stream was finished inside or before a tensor.
    Incomplete {
        /// The first tensor whose bytes are not all there.
        name: Name,
        /// The bytes of it that were written.
        written: u64,
        /// The bytes declared.
        declared: u64,
    },
    /// The sink failed before: what it has is not a file.
    Broken,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyKey => f.write_str("key is empty"),
            Self::KeyTooLong { key, len } => {
                write!(f, "key length {len} exceeds the limit of {MAX_NAME}, in key {key}")
            }
            Self::AlignmentType(ty) => write!(f, "{ALIGNMENT_KEY} set as {ty}, must be u32"),
            Self::Alignment(value) => write!(f, "{ALIGNMENT_KEY} {value} is not a power of two"),
            Self::Copied(key) => write!(f, "copied bytes are no longer an entry, in key {key}"),
            Self::NameTooLong { name, len, max } => {
                write!(f, "tensor name length {len} exceeds the limit of {max}")?;
                if *max == MAX_GGML_NAME {
                    f.write_str(" that llama.cpp sets")?;
                }
                write!(f, ", in tensor {name}")
            }
            Self::EmptyName => f.write_str("tensor name is empty"),
            Self::DuplicateTensor(name) => write!(f, "duplicate tensor name {name}"),
            Self::Shape { name, error } => write!(f, "{error}, in tensor {name}"),
            Self::ForkQ2_0(name) => write!(
                f,
                "type Q2_0 (id 42) in a fork's 128-element layout would read back as ggml's, in tensor {name}"
            ),
            Self::TooLarge => f.write_str("file size overflow: it exceeds the range of 64 bits"),
            Self::TensorCount { given, declared } => {
                write!(f, "{given} tensors given, {declared} declared")
            }
            Self::DataLen { name, given, declared } => {
                write!(f, "{given} bytes given, {declared} declared, in tensor {name}")
            }
            Self::TooMuch { bytes } => write!(f, "{bytes} bytes given beyond the last tensor"),
            Self::Incomplete { name, written, declared } => {
                write!(f, "incomplete: {written} of {declared} bytes written, in tensor {name}")
            }
            Self::Broken => f.write_str("an earlier write failed, the output is incomplete"),
        }
    }
}

impl core::error::Error for WriteError {}

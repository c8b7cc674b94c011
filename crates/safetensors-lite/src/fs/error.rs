//! What can go wrong with files: which file, what was done, and why not.

use crate::{WriteError, error::Quoted};
use std::{
    fmt, io,
    path::{Path, PathBuf},
};

/// Why a file or a stream could not be read or written.
#[derive(Debug)]
pub struct Error {
    path: Option<PathBuf>,
    kind: ErrorKind,
}

/// The reason.
#[non_exhaustive]
#[derive(Debug)]
pub enum ErrorKind {
    /// The system refused.
    Io {
        /// What was being done, such as `open`.
        op: &'static str,
        /// Its answer.
        source: io::Error,
    },
    /// A folder, a pipe or a device where a file must be.
    NotAFile,
    /// The content breaks a rule of the format.
    Format(crate::Error),
    /// The tensors cannot be written.
    Write(WriteError),
    /// Data beyond what was declared.
    DataTooLong {
        /// The tensor it was for; empty after the last.
        tensor: String,
        /// Bytes declared.
        need: u64,
        /// Bytes given, this piece included.
        have: u64,
    },
    /// Less data than was declared.
    DataTooShort {
        /// The tensor that is not whole.
        tensor: String,
        /// Bytes declared.
        need: u64,
        /// Bytes given.
        have: u64,
    },
    /// An index larger than the longest header.
    IndexTooLarge {
        /// Its length in bytes.
        len: u64,
    },
    /// An index that is JSON but not of the right form.
    IndexSchema {
        /// What the JSON reader says.
        message: Box<str>,
    },
    /// A shard name that is more than a plain file name: it could lead outside the folder of the index.
    ShardName {
        /// The name.
        shard: String,
    },
    /// A shard that is not there.
    ShardMissing {
        /// Its name in the index.
        shard: String,
    },
    /// A tensor that the index places in a shard that lacks it.
    TensorMissing {
        /// Tensor name.
        tensor: String,
        /// Shard name.
        shard: String,
    },
    /// A tensor that is in two shards.
    TensorTwice {
        /// Tensor name.
        tensor: String,
        /// One shard.
        first: String,
        /// The other.
        second: String,
    },
}

impl Error {
    pub(crate) fn at(path: &Path, kind: impl Into<ErrorKind>) -> Self {
        Self { path: Some(path.into()), kind: kind.into() }
    }

    pub(crate) fn io(path: &Path, op: &'static str, source: io::Error) -> Self {
        Self::at(path, ErrorKind::Io { op, source })
    }

    /// The same, about this file unless it already names one.
    pub(crate) fn or_path(mut self, path: &Path) -> Self {
        self.path.get_or_insert_with(|| path.into());
        self
    }

    /// The file; `None` for a stream.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The reason.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self { path: None, kind }
    }
}

impl From<crate::Error> for ErrorKind {
    fn from(error: crate::Error) -> Self {
        Self::Format(error)
    }
}

impl From<WriteError> for ErrorKind {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{}: {}", path.display(), self.kind),
            None => self.kind.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            ErrorKind::Io { source, .. } => Some(source),
            ErrorKind::Format(error) => Some(error),
            ErrorKind::Write(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { op, source } => write!(f, "cannot {op}: {source}"),
            Self::NotAFile => f.write_str("not a regular file"),
            Self::Format(error) => error.fmt(f),
            Self::Write(error) => error.fmt(f),
            Self::DataTooLong { tensor, need, have } if tensor.is_empty() => {
                write!(f, "data is {need} bytes by its header, {have} given")
            }
            Self::DataTooLong { tensor, need, have } | Self::DataTooShort { tensor, need, have } => {
                write!(f, "tensor {}: data needs {need} bytes, {have} given", Quoted(tensor))
            }
            Self::IndexTooLarge { len } => {
                write!(f, "index too large: {len} bytes, at most {} allowed", crate::MAX_HEADER_LEN)
            }
            Self::IndexSchema { message } => {
                write!(f, "index with a wrong weight_map or metadata: {message}")
            }
            Self::ShardName { shard } => {
                write!(f, "shard name {} is not a plain file name but a path", Quoted(shard))
            }
            Self::ShardMissing { shard } => write!(f, "shard {} is missing", Quoted(shard)),
            Self::TensorMissing { tensor, shard } => {
                write!(
                    f,
                    "tensor {} not found in shard {}, where the index places it",
                    Quoted(tensor),
                    Quoted(shard)
                )
            }
            Self::TensorTwice { tensor, first, second } => {
                write!(
                    f,
                    "tensor {} is in two shards: {} and {}",
                    Quoted(tensor),
                    Quoted(first),
                    Quoted(second)
                )
            }
        }
    }
}

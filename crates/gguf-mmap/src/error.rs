//! What can go wrong when a file is opened: the path, and the reason.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::SplitError;

/// A file that could not be opened as asked.
#[derive(Debug)]
pub struct Error {
    path: Option<PathBuf>,
    kind: ErrorKind,
}

/// The reason of an [`Error`].
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused to open or to describe the file.
    Open(io::Error),
    /// The file could not be mapped.
    Map(io::Error),
    /// The file, or a pipe, could not be read into memory.
    Read(io::Error),
    /// A directory, a device or a socket: neither a regular file nor a pipe.
    NotAFile,
    /// The bytes are no GGUF file, or a broken one.
    Format(gguf_format::Error),
    /// The file is part of a split set that is incomplete or contradicts itself.
    Split(SplitError),
}

impl Error {
    pub(crate) fn new(path: Option<&Path>, kind: ErrorKind) -> Self {
        Self { path: path.map(Path::to_path_buf), kind }
    }

    /// The file the error is about; `None` for bytes that came without a name.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The reason.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// The reason, by value.
    #[must_use]
    pub fn into_kind(self) -> ErrorKind {
        self.kind
    }
}

/// Path and reason on one line: `m.gguf: cannot open: No such file or directory (os error 2)`.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}: ", path.display())?;
        }
        self.kind.fmt(f)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(e) => write!(f, "cannot open: {e}"),
            Self::Map(e) => write!(f, "cannot map: {e}"),
            Self::Read(e) => write!(f, "cannot read: {e}"),
            Self::NotAFile => f.write_str("neither a regular file nor a pipe"),
            Self::Format(e) => e.fmt(f),
            Self::Split(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.kind.source()
    }
}

/// The reason alone is an error too, for those who name the path themselves.
impl std::error::Error for ErrorKind {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Open(e) | Self::Map(e) | Self::Read(e) => Some(e),
            Self::Format(e) => Some(e),
            Self::Split(e) => Some(e),
            Self::NotAFile => None,
        }
    }
}

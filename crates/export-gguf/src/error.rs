//! What can go wrong, and which exit code it becomes.
//!
//! Every message is one line: what happened, where (file, tensor), and what to do about it.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// How a command that did its work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing to object to: exit code 0.
    Ok,
    /// The work was done and faults were found and printed: exit code 1.
    Faults,
}

/// Why a command did not do its work.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The command line asks for something that makes no sense: exit code 2.
    Usage(String),
    /// A signal asked us to stop; the number is the signal's. Exit code 128 + the number.
    Interrupted(i32),
    /// Standard output failed. A closed pipe is not an error to the user: exit code 0.
    Stdout(io::Error),
    /// The operating system refused something on this path.
    Io {
        /// What was being attempted, such as `create`.
        doing: &'static str,
        /// On which path.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// A model could not be opened; the message names the file.
    Model(gguf_mmap::Error),
    /// A file is not what it should be; the source says where and why.
    File {
        /// The file as the user named it.
        path: PathBuf,
        /// The parser's or mapper's error.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// One tensor cannot be handled as asked.
    Tensor {
        /// The file it is in, once that is known.
        path: Option<PathBuf>,
        /// The tensor's name.
        tensor: String,
        /// What is wrong with it and what to do.
        problem: String,
    },
    /// The request as a whole is refused; says why and what to do.
    Refused(String),
    /// The output is in place, and something after that failed.
    Written {
        /// The output.
        path: PathBuf,
        /// What failed.
        source: Box<Self>,
    },
}

impl Error {
    /// For `map_err`: an input/output error while `doing` something to `path`.
    pub fn io(doing: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        move |source| Self::Io { doing, path, source }
    }

    /// For `map_err`: `path` is not what it should be.
    pub fn file<E>(path: impl AsRef<Path>) -> impl FnOnce(E) -> Self
    where
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        let path = path.as_ref().to_path_buf();
        move |source| Self::File { path, source: source.into() }
    }

    /// A refusal that concerns one tensor.
    pub fn tensor(tensor: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Tensor { path: None, tensor: tensor.into(), problem: problem.into() }
    }

    /// Adds the file to an error about a tensor that does not say it.
    #[must_use]
    pub fn in_file(self, file: &Path) -> Self {
        match self {
            Self::Tensor { path: None, tensor, problem } => {
                Self::Tensor { path: Some(file.to_path_buf()), tensor, problem }
            }
            other => other,
        }
    }

    /// The process exit code that this error becomes.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Stdout(e) if e.kind() == io::ErrorKind::BrokenPipe => 0,
            Self::Usage(_) => 2,
            Self::Interrupted(signal) => u8::try_from(128 + signal).unwrap_or(1),
            Self::Written { source, .. } => source.exit_code(),
            _ => 1,
        }
    }
}

/// Errors of writing to a command's output stream; paths get [`Error::io`] instead.
impl From<io::Error> for Error {
    fn from(e: io::Error) -> Self {
        Self::Stdout(e)
    }
}

/// Opening errors name their file once: the part at fault, of a split set.
impl From<gguf_mmap::Error> for Error {
    fn from(e: gguf_mmap::Error) -> Self {
        let path = e.path().unwrap_or(Path::new("-")).to_path_buf();
        Self::File { path, source: e.into_kind().into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(what) | Self::Refused(what) => f.write_str(what),
            Self::Interrupted(signal) => {
                write!(f, "stopped by signal {signal}; nothing was left behind")
            }
            Self::Stdout(e) => write!(f, "cannot write the output: {e}"),
            Self::Io { doing, path, source } => {
                write!(f, "cannot {doing} {}: {source}", path.display())
            }
            Self::Model(e) => e.fmt(f),
            Self::File { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Written { path, source } => write!(f, "{} is written, but: {source}", path.display()),
            Self::Tensor { path, tensor, problem } => {
                if let Some(path) = path {
                    write!(f, "{}: ", path.display())?;
                }
                write!(f, "tensor {tensor}: {problem}")
            }
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Stdout(e) | Self::Io { source: e, .. } => Some(e),
            Self::Model(e) => Some(e),
            Self::File { source, .. } => Some(&**source),
            Self::Written { source, .. } => Some(&**source),
            _ => None,
        }
    }
}

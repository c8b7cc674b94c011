//! Why an importance matrix cannot be used.

use std::fmt;
use std::path::{Path, PathBuf};

/// A [`Problem`] with the file it was found in.
#[derive(Debug)]
pub struct ImatrixError {
    path: PathBuf,
    problem: Problem,
}

impl ImatrixError {
    pub(super) fn new(path: &Path, problem: Problem) -> Self {
        Self { path: path.to_path_buf(), problem }
    }

    /// What is wrong.
    #[must_use]
    pub const fn problem(&self) -> &Problem {
        &self.problem
    }
}

impl fmt::Display for ImatrixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            // The mapper's error names the path itself.
            Problem::Open(e) => write!(f, "importance matrix: {e}"),
            problem => write!(f, "importance matrix {}: {problem}", self.path.display()),
        }
    }
}

impl std::error::Error for ImatrixError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.problem {
            Problem::Open(e) => Some(e.as_ref()),
            Problem::Gguf(e) => Some(e.as_ref()),
            _ => None,
        }
    }
}

/// What is wrong with an importance matrix.
#[derive(Debug)]
#[non_exhaustive]
pub enum Problem {
    /// The file cannot be opened.
    Open(Box<gguf_mmap::Error>),
    /// It begins like a GGUF file and is none.
    Gguf(Box<gguf_format::Error>),
    /// A GGUF file without a key that every importance matrix has.
    MissingKey(&'static str),
    /// The sums or the counts of a tensor are missing, of the wrong type, or do not fit each other.
    Mismatch {
        /// The tensor.
        tensor: String,
        /// What does not fit.
        what: &'static str,
    },
    /// A `.dat` file ends early, or is something else.
    Truncated {
        /// Where.
        at: usize,
        /// What was being read.
        what: &'static str,
        /// How many bytes it takes.
        need: u64,
        /// How many are left.
        have: usize,
    },
    /// A count or length in a `.dat` file makes no sense.
    Count {
        /// Where.
        at: usize,
        /// What it counts.
        what: &'static str,
        /// The value.
        value: i32,
    },
    /// A name in a `.dat` file is not UTF-8.
    Name {
        /// Where.
        at: usize,
    },
    /// Two entries for one tensor.
    Duplicate(String),
    /// No entry at all.
    Empty,
    /// A value, or a count, is NaN or infinite.
    NotFinite {
        /// The tensor.
        tensor: String,
        /// Which of its values.
        index: usize,
    },
    /// The values do not fit the tensor they are for.
    Size {
        /// The tensor.
        tensor: String,
        /// How many values the file has.
        have: u64,
        /// The tensor's row length.
        row_len: u64,
        /// Its number of matrices.
        experts: u64,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(e) => e.fmt(f),
            Self::Gguf(e) => e.fmt(f),
            Self::MissingKey(key) => write!(f, "key `{key}` is missing, so this is not an importance matrix"),
            Self::Mismatch { tensor, what } => write!(f, "tensor `{}`: {what}", tensor.escape_debug()),
            Self::Truncated { at, what, need, have } => {
                write!(
                    f,
                    "{what} needs {need} bytes, {have} left at byte {at:#x}: truncated, or not an importance matrix"
                )
            }
            Self::Count { at, what, value } => write!(f, "{what} is {value} at byte {at:#x}"),
            Self::Name { at } => write!(f, "name at byte {at:#x} is not UTF-8"),
            Self::Duplicate(tensor) => write!(f, "duplicate entry for tensor `{}`", tensor.escape_debug()),
            Self::Empty => f.write_str("no entries"),
            Self::NotFinite { tensor, index } => {
                write!(f, "tensor `{}`: value {index} is not finite", tensor.escape_debug())
            }
            Self::Size { tensor, have, row_len, experts } => {
                write!(f, "tensor `{}`: {have} values for rows of {row_len}", tensor.escape_debug())?;
                if *experts != 1 {
                    write!(f, " and {experts} experts")?;
                }
                Ok(())
            }
        }
    }
}

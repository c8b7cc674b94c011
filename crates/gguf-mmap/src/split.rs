//! The rules of split sets: how parts are named, and what their `split.*` keys must say.
//!
//! `llama-gguf-split` names parts `NAME-00001-of-00003.gguf`, counting from 1, and writes into each
//! `split.no` (counting from 0), `split.count` and `split.tensors.count`. A merged file keeps
//! `split.count` as 0. A name of that shape without the keys is a coincidence: a whole file.

use gguf_format::{Gguf, Value};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What is wrong with a split set. The path of the [`Error`](crate::Error) around it is the part
/// at fault.
#[derive(Debug)]
#[non_exhaustive]
pub enum SplitError {
    /// A `split.*` key holds no non-negative integer.
    KeyType {
        /// The key.
        key: &'static str,
        /// What it holds instead, as text.
        found: String,
    },
    /// A part lacks a `split.*` key.
    KeyMissing {
        /// The key.
        key: &'static str,
    },
    /// `split.count` says that there are other parts, but the file's name does not tell theirs.
    Name {
        /// The value of `split.count`.
        count: u64,
    },
    /// A set is opened from its first part, and this is another one.
    NotFirst {
        /// The number of the part in its name, from 1.
        no: u64,
        /// How many parts there are.
        count: u64,
        /// The file to open.
        first: PathBuf,
    },
    /// A `split.*` key and the file's name contradict each other.
    Mismatch {
        /// The key.
        key: &'static str,
        /// Its value.
        value: u64,
        /// The value that the name calls for.
        expected: u64,
    },
    /// A part is not there, or cannot be opened.
    MissingPart {
        /// The number of the part in its name, from 1.
        no: u64,
        /// How many parts there are.
        count: u64,
        /// Why it cannot be opened.
        source: io::Error,
    },
    /// `split.tensors.count` is not the number of tensors in the parts together.
    TensorCount {
        /// What the key says.
        declared: u64,
        /// How many there are.
        found: u64,
    },
    /// A tensor that an earlier part has already.
    Duplicate {
        /// Its name.
        name: String,
        /// The earlier part.
        first: PathBuf,
    },
}

const NO: &str = "split.no";
const COUNT: &str = "split.count";
const TENSORS: &str = "split.tensors.count";

/// The value of an integer key of any width; `None` if it is absent.
fn integer(gguf: &Gguf<'_>, key: &'static str) -> Result<Option<u64>, SplitError> {
    let Some(value) = gguf.get(key) else { return Ok(None) };
    match (&value, value.as_u64()) {
        (Value::Bool(_), _) | (_, None) => Err(SplitError::KeyType { key, found: describe(&value) }),
        (_, Some(n)) => Ok(Some(n)),
    }
}

fn describe(value: &Value<'_>) -> String {
    match value.as_i64() {
        Some(n) if !matches!(value, Value::Bool(_)) => n.to_string(),
        _ => value.ty().name().to_string(),
    }
}

/// The name of a part of a split set: `NAME-00001-of-00003.gguf`, in any folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartName {
    prefix: PathBuf,
    no: u64,
    count: u64,
}

impl PartName {
    /// Takes a path apart; `None` if its last component has another form.
    #[must_use]
    pub fn parse(path: &Path) -> Option<Self> {
        let name = path.file_name()?;
        // Only the end of the name is text for sure.
        let text = name.to_string_lossy();
        let stem = text.strip_suffix(".gguf")?;
        let (rest, count) = stem.rsplit_once("-of-")?;
        let (before, no) = rest.rsplit_once('-')?;
        let cut = text.len() - before.len();
        let (no, count) = (number(no)?, number(count)?);
        let prefix = path.with_file_name(without_end(name, cut)?);
        (no >= 1 && no <= count).then_some(Self { prefix, no, count })
    }

    /// The number of this part, from 1.
    #[must_use]
    pub const fn no(&self) -> u64 {
        self.no
    }

    /// How many parts the set has.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Judges a file by its `split.*` keys: `None` for a whole file, its place in the set for a part.
    ///
    /// # Errors
    ///
    /// [`SplitError::KeyType`] if `split.count` is no count, [`SplitError::Name`] if it is above 1
    /// while the file's name is not that of a part.
    pub fn of(path: &Path, gguf: &Gguf<'_>) -> Result<Option<Self>, SplitError> {
        match integer(gguf, COUNT)? {
            None | Some(0 | 1) => Ok(None),
            Some(count) => Self::parse(path).map(Some).ok_or(SplitError::Name { count }),
        }
    }

    /// Compares `split.count` and `split.no` of the file of this name with it. Gives every contradiction.
    #[must_use]
    pub fn check(&self, gguf: &Gguf<'_>) -> Vec<SplitError> {
        let is = |key, expected| match integer(gguf, key)? {
            None => Err(SplitError::KeyMissing { key }),
            Some(value) if value != expected => Err(SplitError::Mismatch { key, value, expected }),
            Some(_) => Ok(()),
        };
        [is(COUNT, self.count), is(NO, self.no - 1)].into_iter().filter_map(Result::err).collect()
    }

    /// Part `no` of the same set.
    #[must_use]
    pub fn part(&self, no: u64) -> Self {
        Self { no, ..self.clone() }
    }

    /// The path of this part.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        let mut path = self.prefix.clone().into_os_string();
        path.push(format!("-{:05}-of-{:05}.gguf", self.no, self.count));
        path.into()
    }
}

/// What can be told only with all parts at hand: the tensor count, and names in two parts. Gives every
/// fault with the position of the part it is in.
#[must_use]
pub fn check_set(parts: &[(&Path, Gguf<'_>)]) -> Vec<(usize, SplitError)> {
    let found: u64 = parts.iter().map(|(_, gguf)| gguf.tensors().len() as u64).sum();
    let mut owner: HashMap<&str, &Path> = HashMap::new();
    let mut faults = Vec::new();
    for (i, (path, gguf)) in parts.iter().enumerate() {
        match integer(gguf, TENSORS) {
            Ok(Some(declared)) if declared != found => {
                faults.push((i, SplitError::TensorCount { declared, found }));
            }
            Ok(_) => {}
            Err(e) => faults.push((i, e)),
        }
        for tensor in gguf.tensors() {
            if let Some(first) = owner.insert(tensor.name(), path) {
                let (name, first) = (tensor.name().to_owned(), first.to_path_buf());
                faults.push((i, SplitError::Duplicate { name, first }));
            }
        }
    }
    faults
}

/// A file name without its last `cut` bytes, which are ASCII.
fn without_end(name: &OsStr, cut: usize) -> Option<&OsStr> {
    let len = name.len().checked_sub(cut)?;
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        Some(OsStr::from_bytes(name.as_bytes().get(..len)?))
    }
    #[cfg(not(unix))]
    {
        Some(OsStr::new(name.to_str()?.get(..len)?))
    }
}

/// A number as `%05d` prints it.
fn number(text: &str) -> Option<u64> {
    let n = text.parse().ok()?;
    (format!("{n:05}") == text).then_some(n)
}

impl fmt::Display for SplitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeyType { key, found } => write!(f, "{key} is {found}, not a count"),
            Self::KeyMissing { key } => write!(f, "no key {key} in a part of a split model"),
            Self::Name { count } => write!(
                f,
                "split.count is {count}, but the file's name is not of the form NAME-00001-of-{count:05}.gguf, \
                 so the other parts cannot be found"
            ),
            Self::NotFirst { no, count, first } => {
                write!(f, "part {no} of {count} of a split model, open the first part, {}", first.display())
            }
            Self::Mismatch { key, value, expected } => {
                write!(f, "{key} is {value}, the file's name calls for {expected}")
            }
            Self::MissingPart { no, count, source } => {
                write!(f, "part {no} of {count} of a split model is missing: {source}")
            }
            Self::TensorCount { declared, found } => {
                write!(f, "split.tensors.count is {declared}, the parts hold {found} tensors")
            }
            Self::Duplicate { name, first } => {
                write!(f, "duplicate tensor '{}', already in {}", name.escape_debug(), first.display())
            }
        }
    }
}

impl std::error::Error for SplitError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::MissingPart { source, .. } => Some(source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_names_are_recognised() {
        let n = PartName::parse(Path::new("d/a-b-00002-of-00013.gguf")).unwrap();
        assert_eq!((n.no, n.count), (2, 13));
        assert_eq!(n.part(1).path(), Path::new("d/a-b-00001-of-00013.gguf"));
        assert_eq!(n.path(), Path::new("d/a-b-00002-of-00013.gguf"));
        let big = PartName::parse(Path::new("a-123456-of-123457.gguf")).unwrap();
        assert_eq!(big.part(7).path(), Path::new("a-00007-of-123457.gguf"));
    }

    #[test]
    fn other_names_are_not() {
        for name in [
            "a.gguf",
            "a-1-of-3.gguf",
            "a-00001-of-00003.bin",
            "a-00000-of-00003.gguf",
            "a-00004-of-00003.gguf",
            "a-000001-of-00003.gguf",
            "a-+0001-of-00003.gguf",
            "00001-of-00003.gguf",
            "a-00001-of-99999999999999999999.gguf",
        ] {
            assert_eq!(PartName::parse(Path::new(name)), None, "{name}");
        }
    }
}

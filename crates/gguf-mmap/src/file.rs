//! One opened GGUF file: a mapping and the directory of what is in it.

use crate::{Bytes, Error, ErrorKind, MapOptions, Mapping};
use gguf_format::{Gguf, Index, ParseOptions, TensorInfo};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// How a GGUF file, or a split set of them, is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Also read files with gaps, reordered or unpadded data, and list tensors of unknown type.
    pub lenient: bool,
    /// Read into the heap instead of mapping: see [`MapOptions::heap`].
    pub heap: bool,
}

impl OpenOptions {
    /// These options with [`lenient`](Self::lenient) set so.
    #[must_use]
    pub fn lenient(mut self, lenient: bool) -> Self {
        self.lenient = lenient;
        self
    }

    /// These options with [`heap`](Self::heap) set so.
    #[must_use]
    pub fn heap(mut self, heap: bool) -> Self {
        self.heap = heap;
        self
    }
}

/// An opened GGUF file.
///
/// Opening reads the header only, so it takes the same time for a file of any size. Tensor bytes are
/// borrowed from the mapping, or held by owned [`Bytes`] handles. The mapping can be taken out
/// with [`take_mapping`](Self::take_mapping); the directory stays usable without it.
pub struct GgufFile {
    path: Option<PathBuf>,
    index: Index,
    body: Body,
    len: u64,
}

/// Where the header's bytes are.
enum Body {
    /// In the mapping, with all the rest.
    Mapped(Mapping),
    /// In a copy of their own: the mapping was taken.
    Taken(Vec<u8>),
}

impl GgufFile {
    /// Opens the file at `path` and checks its structure, strictly.
    ///
    /// # Errors
    ///
    /// If the file cannot be mapped, or is no valid GGUF file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, OpenOptions::default())
    }

    /// Opens the file at `path` as `options` say.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self, Error> {
        let mapping = Mapping::open_with(path, MapOptions { heap: options.heap })?;
        Self::from_mapping(mapping, options.lenient)
    }

    /// Reads the directory of a file that is mapped, or in memory, already.
    ///
    /// # Errors
    ///
    /// If the bytes are no valid GGUF file.
    pub fn from_mapping(mapping: Mapping, lenient: bool) -> Result<Self, Error> {
        let options = ParseOptions { lenient, ..ParseOptions::default() };
        let path = mapping.path().map(Path::to_path_buf);
        let len = mapping.len() as u64;
        match Gguf::parse_with(mapping.bytes(), &options).map(Gguf::into_index) {
            Ok(index) => Ok(Self { path, index, body: Body::Mapped(mapping), len }),
            Err(e) => Err(Error::new(path.as_deref(), ErrorKind::Format(e))),
        }
    }

    /// The path the file was opened from.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Bytes in the file, also after the mapping was taken.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.len
    }

    /// The directory: metadata, tensor infos, findings. Its own `data()` reaches tensor bytes only
    /// while the mapping is here; use [`data`](Self::data).
    ///
    /// # Panics
    ///
    /// If another process has overwritten the beginning of the mapped file since it was opened,
    /// against the contract of [`Mapping`]: better loud than a directory of something else.
    #[must_use]
    pub fn gguf(&self) -> Gguf<'_> {
        let header = match &self.body {
            Body::Mapped(mapping) => mapping.bytes(),
            Body::Taken(header) => header,
        };
        self.index.view(header).expect("a mapped file does not change")
    }

    /// The tensor of this name.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<TensorInfo<'_>> {
        self.gguf().tensor(name)
    }

    /// The mapping, `None` once it was taken.
    #[must_use]
    pub fn mapping(&self) -> Option<&Mapping> {
        match &self.body {
            Body::Mapped(mapping) => Some(mapping),
            Body::Taken(_) => None,
        }
    }

    /// The bytes of a tensor of this file; `None` once the mapping was taken.
    #[must_use]
    pub fn data(&self, tensor: &TensorInfo<'_>) -> Option<&[u8]> {
        let range = extent(tensor)?;
        let range = usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?;
        self.mapping()?.bytes().get(range)
    }

    /// The bytes of the tensor of this name; `None` without such a tensor, or once the mapping was
    /// taken.
    #[must_use]
    pub fn tensor_data(&self, name: &str) -> Option<&[u8]> {
        self.data(&self.tensor(name)?)
    }

    /// An owned handle to the bytes of a tensor of this file, which outlives it. `None` once the
    /// mapping was taken.
    #[must_use]
    pub fn bytes(&self, tensor: &TensorInfo<'_>) -> Option<Bytes> {
        self.mapping()?.range(extent(tensor)?)
    }

    /// An owned handle to the bytes of the tensor of this name; see [`bytes`](Self::bytes).
    #[must_use]
    pub fn tensor_bytes(&self, name: &str) -> Option<Bytes> {
        self.bytes(&self.tensor(name)?)
    }

    /// Asks the system to read a tensor ahead.
    pub fn prefetch(&self, tensor: &TensorInfo<'_>) {
        if let (Some(mapping), Some(range)) = (self.mapping(), extent(tensor)) {
            mapping.prefetch(range);
        }
    }

    /// Drops the pages wholly inside a tensor from memory; see [`Mapping::release`].
    pub fn release(&self, tensor: &TensorInfo<'_>) {
        if let (Some(mapping), Some(range)) = (self.mapping(), extent(tensor)) {
            mapping.release(range);
        }
    }

    /// Takes the mapping out. It lives on its own from then on; this file keeps a copy of the header
    /// alone, so that the directory stays usable, while tensor data is `None`. The second call
    /// gives `None`.
    pub fn take_mapping(&mut self) -> Option<Mapping> {
        let header_len = usize::try_from(self.gguf().header_len()).ok()?;
        let header = self.mapping()?.bytes().get(..header_len)?.to_vec();
        match std::mem::replace(&mut self.body, Body::Taken(header)) {
            Body::Mapped(mapping) => Some(mapping),
            Body::Taken(_) => None,
        }
    }
}

/// Where a tensor's bytes are in its file.
pub(crate) fn extent(tensor: &TensorInfo<'_>) -> Option<Range<u64>> {
    let start = tensor.file_offset();
    Some(start..start.checked_add(tensor.byte_len())?)
}

impl fmt::Debug for GgufFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GgufFile")
            .field("path", &self.path)
            .field("len", &self.len)
            .field("mapping", &self.mapping())
            .finish_non_exhaustive()
    }
}

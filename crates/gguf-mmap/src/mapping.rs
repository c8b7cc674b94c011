//! A file's bytes as memory, whatever they mean: mapped, or read into the heap.

use crate::hint::{self, Advice};
use crate::{Bytes, Error, ErrorKind};
use memmap2::Mmap;
use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::ops::{Range, RangeBounds};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How [`Mapping::open_with`] brings a file into memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MapOptions {
    /// Read the file into the heap instead of mapping it: immune to a file that shrinks, at the
    /// price of its whole size in memory.
    pub heap: bool,
}

impl MapOptions {
    /// These options with [`heap`](Self::heap) set so.
    #[must_use]
    pub fn heap(self, heap: bool) -> Self {
        Self { heap }
    }
}

/// The bytes of one file, read-only.
///
/// Opening maps the file: nothing is read until bytes are touched. Pipes and other files without a
/// length are read into the heap, where the hints do nothing.
///
/// **The file must stay as it is while it is mapped.** If another process truncates it, touching a
/// page past the new end kills this process with SIGBUS (an access violation on Windows); if it is
/// overwritten in place, the bytes change under their reader. Where that is not in your hands, use
/// [`MapOptions::heap`], or read ranges of the file yourself and parse those.
pub struct Mapping {
    pub(crate) memory: Arc<Memory>,
}

/// What a [`Mapping`] and its [`Bytes`] handles share; the last one to go unmaps.
pub(crate) struct Memory {
    source: Source,
    path: Option<PathBuf>,
}

enum Source {
    Mapped(Mmap),
    Heap(Vec<u8>),
}

impl Mapping {
    /// Maps the file at `path`.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened or mapped, or is a directory or a device. An empty file is no
    /// error here: it has no bytes.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, MapOptions::default())
    }

    /// Maps the file at `path`, or reads it into the heap if `options` say so.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and if reading fails or the heap cannot hold the file.
    pub fn open_with(path: impl AsRef<Path>, options: MapOptions) -> Result<Self, Error> {
        let path = path.as_ref();
        match Source::open(path, options) {
            Ok(source) => Ok(Self::new(source, Some(path.to_path_buf()))),
            Err(kind) => Err(Error::new(Some(path), kind)),
        }
    }

    /// The heap twin over bytes that are in memory already.
    #[must_use]
    pub fn from_vec(bytes: Vec<u8>) -> Self {
        Self::new(Source::Heap(bytes), None)
    }

    /// The heap twin of everything that `reader` gives, such as standard input.
    ///
    /// # Errors
    ///
    /// If reading fails or the heap cannot hold the bytes.
    pub fn from_reader(mut reader: impl Read) -> Result<Self, Error> {
        let mut bytes = Vec::new();
        match reader.read_to_end(&mut bytes) {
            Ok(_) => Ok(Self::from_vec(bytes)),
            Err(e) => Err(Error::new(None, ErrorKind::Read(e))),
        }
    }

    fn new(source: Source, path: Option<PathBuf>) -> Self {
        Self { memory: Arc::new(Memory { source, path }) }
    }

    /// All bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.memory.bytes()
    }

    /// How many bytes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes().len()
    }

    /// Whether there is no byte at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// The path the bytes came from; `None` for [`from_vec`](Self::from_vec) and
    /// [`from_reader`](Self::from_reader).
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.memory.path.as_deref()
    }

    /// Whether the bytes are mapped from a file, `false` for the heap twin.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        self.memory.mapped().is_some()
    }

    /// An owned handle to the bytes in `range`, which keeps the memory alive on its own. `None` if
    /// the range is not within the bytes.
    #[must_use]
    pub fn range(&self, range: Range<u64>) -> Option<Bytes> {
        Bytes::new(&self.memory, range)
    }

    /// Asks the system to read `range` ahead. Bytes outside the mapping are ignored, as in every
    /// hint.
    pub fn prefetch(&self, range: impl RangeBounds<u64>) {
        self.memory.prefetch(hint::clamp(&range, self.len()));
    }

    /// Drops the pages wholly inside `range` from this process's memory; touching them again reads
    /// them from the file again. The bytes stay valid. A streaming reader keeps its resident size
    /// bounded by releasing what is behind it.
    pub fn release(&self, range: impl RangeBounds<u64>) {
        self.memory.release(hint::clamp(&range, self.len()));
    }

    /// Tells the system how `range` is going to be read (`..` for all of it).
    pub fn advise(&self, range: impl RangeBounds<u64>, advice: Advice) {
        if let Some(map) = self.memory.mapped() {
            hint::advise(map, hint::clamp(&range, map.len()), advice);
        }
    }

    /// Gives the bytes the lifetime of the program: the memory is never unmapped or freed.
    #[must_use]
    pub fn leak(self) -> &'static [u8] {
        let memory: &'static Arc<Memory> = Box::leak(Box::new(self.memory));
        memory.bytes()
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapping")
            .field("path", &self.path())
            .field("len", &self.len())
            .field("mapped", &self.is_mapped())
            .finish()
    }
}

impl Memory {
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.source {
            Source::Mapped(map) => map,
            Source::Heap(bytes) => bytes,
        }
    }

    fn mapped(&self) -> Option<&Mmap> {
        match &self.source {
            Source::Mapped(map) => Some(map),
            Source::Heap(_) => None,
        }
    }

    pub(crate) fn prefetch(&self, range: Range<usize>) {
        if let Some(map) = self.mapped() {
            hint::prefetch(map, range);
        }
    }

    pub(crate) fn release(&self, range: Range<usize>) {
        if let Some(map) = self.mapped() {
            hint::discard(map, range);
        }
    }
}

impl Source {
    fn open(path: &Path, options: MapOptions) -> Result<Self, ErrorKind> {
        // Asked before opening: opening a device can have effects of its own.
        let before = std::fs::metadata(path).map_err(ErrorKind::Open)?;
        if !before.is_file() && !is_pipe(&before) {
            return Err(ErrorKind::NotAFile);
        }
        let file = File::open(path).map_err(ErrorKind::Open)?;
        let metadata = file.metadata().map_err(ErrorKind::Open)?;
        // Length 0 also stands for a file whose length is unknown, as those of /proc, and a
        // mapping of no bytes is refused by the system.
        if options.heap || !metadata.is_file() || metadata.len() == 0 {
            Self::read(file).map_err(ErrorKind::Read)
        } else {
            Self::map_file(&file, metadata.len()).map_err(ErrorKind::Map)
        }
    }

    fn read(mut file: File) -> io::Result<Self> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(Self::Heap(bytes))
    }

    /// Maps `len` bytes of a regular file: read-only, shared with the page cache.
    fn map_file(file: &File, len: u64) -> io::Result<Self> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut options = memmap2::MmapOptions::new();
        options.len(len);
        #[expect(unsafe_code, reason = "one of this crate's two: the map itself")]
        // SAFETY: the mapping is read-only and never handed out for writing, so this process does
        // not change the bytes beneath a `&[u8]`. That no other process truncates or rewrites the
        // file cannot be enforced here; it is the contract stated at `Mapping` and in the README,
        // with the heap twin for files it cannot be promised of. A truncated file raises SIGBUS on
        // access: the process ends, no byte past the end is ever read.
        let map = unsafe { options.map(file) };
        Ok(Self::Mapped(map?))
    }
}

#[cfg(unix)]
fn is_pipe(metadata: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    metadata.file_type().is_fifo()
}

#[cfg(not(unix))]
fn is_pipe(_: &Metadata) -> bool {
    false
}

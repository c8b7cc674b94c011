//! A checkpoint on disk: one file or a sharded set, mapped, its headers checked.

use std::collections::HashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use gguf_mmap::Mapping;
use safetensors_lite::fs::Shards;
use safetensors_lite::{Header, TensorInfo};

use super::{format_of, is_index};
use crate::Error;

/// As large as any page: releases reach this far back, to the page that the release before could not take.
const PAGE: u64 = 64 << 10;

/// A safetensors file or sharded set, mapped.
#[derive(Debug)]
pub struct Checkpoint {
    parts: Vec<Part>,
    /// Tensors that lie in a shard without being in the index.
    unlisted: HashSet<String>,
}

/// One file of a checkpoint.
#[derive(Debug)]
pub struct Part {
    path: PathBuf,
    header: Header,
    mapping: Mapping,
}

/// A tensor of a checkpoint, and which file it is in.
#[derive(Debug, Clone, Copy)]
pub struct StTensor<'a> {
    /// Position in [`Checkpoint::parts`].
    pub part: usize,
    /// What the header says.
    pub info: TensorInfo<'a>,
}

impl Part {
    /// Maps a file and checks its header against the mapped length.
    fn open(path: &Path) -> Result<Self, Error> {
        let mapping = Mapping::open(path)?;
        let header = Header::parse(mapping.bytes(), mapping.len() as u64).map_err(Error::file(path))?;
        Ok(Self { path: path.to_path_buf(), header, mapping })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Its length in bytes.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.mapping.len() as u64
    }
}

impl Checkpoint {
    /// Opens a file, or the index of a sharded checkpoint with all its shards.
    ///
    /// # Errors
    /// When a file cannot be mapped or breaks a rule of the format; for an index also when a shard is missing
    /// or elsewhere, or a tensor not where the index places it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        if !is_index(path) {
            return Ok(Self { parts: vec![Part::open(path)?], unlisted: HashSet::new() });
        }
        let shards = Shards::open(path).map_err(|e| {
            let at = e.path().unwrap_or(path).to_path_buf();
            Error::File { path: at, source: e.kind().to_string().into() }
        })?;
        let unlisted = shards.unlisted().map(|t| t.info().name().to_owned()).collect();
        let parts = shards.shards().iter().map(|s| Part::open(s.path())).collect::<Result<_, _>>()?;
        let opened = Self { parts, unlisted };
        // The files may have changed since the index was held against them.
        match shards.tensors().find(|t| opened.tensor(t.info().name()).is_none()) {
            Some(lost) => Err(Error::tensor(lost.info().name(), "vanished while the shards were opened")),
            None => Ok(opened),
        }
    }

    /// The files.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The tensors, file by file, in the order of their data. Of a sharded checkpoint those that its index maps.
    pub fn tensors(&self) -> impl Iterator<Item = StTensor<'_>> {
        self.all().filter(|t| !self.unlisted.contains(t.info.name()))
    }

    /// The tensor of this name.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<StTensor<'_>> {
        if self.unlisted.contains(name) {
            return None;
        }
        let found = self.parts.iter().enumerate().map(|(part, p)| (part, p.header.tensor(name)));
        found.filter_map(|(part, info)| Some(StTensor { part, info: info? })).next()
    }

    /// What is odd about the checkpoint: tensors that the index does not list.
    pub fn findings(&self) -> impl Iterator<Item = String> {
        let unlisted = self.all().filter(|t| self.unlisted.contains(t.info.name()));
        unlisted.map(|t| {
            let file = self.parts[t.part].path.file_name().unwrap_or_default().to_string_lossy();
            format!("tensor {:?} is unlisted: in {file:?}, but not in the index", t.info.name())
        })
    }

    fn all(&self) -> impl Iterator<Item = StTensor<'_>> {
        let of = |(part, p)| {
            let p: &Part = p;
            p.header.tensors().map(move |info| StTensor { part, info })
        };
        self.parts.iter().enumerate().flat_map(of)
    }

    /// The data of a tensor of this checkpoint, mapped.
    #[must_use]
    pub fn data(&self, tensor: &StTensor<'_>) -> Option<&[u8]> {
        Some(tensor.info.view(self.parts.get(tensor.part)?.mapping.bytes())?.data())
    }

    /// Tells the system that these bytes of a tensor's data will not be read again.
    pub fn release(&self, tensor: &StTensor<'_>, range: Range<u64>) {
        let Some(part) = self.parts.get(tensor.part) else { return };
        let start = tensor.info.file_range().start;
        part.mapping.release((start + range.start).saturating_sub(PAGE)..start + range.end);
    }

    /// The values of a tensor from element `start` on, as many as `out` holds.
    ///
    /// # Errors
    /// [`UnsupportedDtype`](super::UnsupportedDtype) by the tensor's name, or elements that it does not have.
    pub fn values(&self, tensor: &StTensor<'_>, start: u64, out: &mut [f32]) -> Result<(), Error> {
        let name = tensor.info.name().escape_debug();
        let name = || name.to_string();
        let format = format_of(tensor.info.dtype()).map_err(|e| Error::tensor(name(), e.to_string()))?;
        let missing = || Error::tensor(name(), format!("has no {} elements from {start} on", out.len()));
        let data = self.data(tensor).ok_or_else(missing)?;
        let first = usize::try_from(start).map_err(|_| missing())?;
        let end = first.checked_add(out.len()).ok_or_else(missing)?;
        format.decode_range(data, first..end, out).map_err(|e| Error::tensor(name(), e.to_string()))
    }
}

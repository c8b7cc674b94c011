//! A GGUF file or split set as a [`Source`].

use std::ops::Range;
use std::path::{Path, PathBuf};

use ggml_blocks::Format;
use gguf_format::{Builder, Kind, WriteError};
use gguf_mmap::{Mapping, Model, OpenOptions};

use super::{Source, Tensor};
use crate::Error;

/// What a part of a split set says of the set; a whole file does not carry these.
pub(crate) const SPLIT_KEYS: [&str; 3] = ["split.no", "split.count", "split.tensors.count"];

/// Releases reach this many bytes past both ends: the kernel maps the neighbours of each page that
/// is touched, in windows of this size, and what it maps must go as well. A neighbour that another
/// thread still reads comes back by itself.
const WINDOW: u64 = 64 * 1024;

/// A GGUF model on disk, mapped.
#[derive(Debug)]
pub struct GgufSource {
    model: Model,
    path: PathBuf,
    tensors: Vec<Tensor>,
    places: Vec<Place>,
}

/// Where a tensor's bytes are.
#[derive(Debug, Clone)]
struct Place {
    part: usize,
    start: u64,
}

impl GgufSource {
    /// Opens a file, or a split set by its first part.
    ///
    /// # Errors
    /// When it is no model; the message says where and why.
    pub fn open(path: impl AsRef<Path>, lenient: bool) -> Result<Self, Error> {
        let path = path.as_ref();
        let options = OpenOptions::default().lenient(lenient);
        let model = Model::open_with(path, options).map_err(Error::Model)?;
        let mut tensors = Vec::new();
        let mut places = Vec::new();
        for t in model.tensors() {
            let info = t.info;
            tensors.push(Tensor {
                name: info.name().to_owned(),
                dims: info.dims().to_vec(),
                ty: info.ty(),
                bytes: info.byte_len(),
                decodable: info.decodable(),
            });
            places.push(Place { part: t.part, start: info.file_offset() });
        }
        Ok(Self { model, path: path.to_path_buf(), tensors, places })
    }

    /// The opened model.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    fn file_range(&self, index: usize, range: &Range<u64>) -> Option<(usize, Range<u64>)> {
        let place = self.places.get(index)?;
        Some((place.part, place.start.checked_add(range.start)?..place.start.checked_add(range.end)?))
    }

    fn mapped(&self, index: usize, range: &Range<u64>) -> Option<(&Mapping, Range<u64>)> {
        let (part, range) = self.file_range(index, range)?;
        Some((self.model.parts().get(part)?.mapping()?, range))
    }
}

impl Source for GgufSource {
    fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    fn metadata(&self) -> Builder {
        let mut builder = Builder::from_gguf(&self.model.gguf());
        if self.model.is_split() {
            for key in SPLIT_KEYS {
                builder.remove(key);
            }
        }
        builder
    }

    fn alignment(&self) -> u32 {
        u32::try_from(self.model.gguf().alignment()).unwrap_or(gguf_format::DEFAULT_ALIGNMENT)
    }

    fn part(&self, index: usize) -> usize {
        self.places[index].part
    }

    fn inputs(&self) -> Vec<PathBuf> {
        let parts = self.model.parts().iter().filter_map(|p| p.path().map(Path::to_path_buf));
        std::iter::once(self.path.clone()).chain(parts).collect()
    }

    fn declare(&self, index: usize, builder: &mut Builder) -> Result<(), WriteError> {
        let place = &self.places[index];
        if let Some(info) = self.model.parts()[place.part].tensor(&self.tensors[index].name) {
            builder.copy_tensor(&info)?;
        }
        Ok(())
    }

    fn bytes(&self, index: usize, range: Range<u64>) -> Option<&[u8]> {
        let (mapping, range) = self.mapped(index, &range)?;
        mapping.bytes().get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
    }

    fn values(&self, index: usize, start: u64, out: &mut [f32]) -> Result<(), Error> {
        let tensor = &self.tensors[index];
        let undecodable = || Error::tensor(&tensor.name, format!("{} has no decoder", tensor.ty));
        let format = Format::of(tensor.ty).filter(|_| tensor.decodable).ok_or_else(undecodable)?;
        let (len, size) = (format.block_len() as u64, format.block_bytes() as u64);
        let range = start / len * size..(start + out.len() as u64) / len * size;
        let bytes = self.bytes(index, range).ok_or_else(undecodable)?;
        if format.info().kind == Kind::Block
            && let Err(bad) = format.check_finite(bytes)
        {
            let block = start / len + bad.block as u64;
            return Err(Error::tensor(
                &tensor.name,
                format!(
                    "the {} scale of block {block} (elements {}..{}) is not finite, so its values cannot \
                     be quantized again; copy it verbatim",
                    tensor.ty,
                    block * len,
                    (block + 1) * len
                ),
            ));
        }
        format
            .decode_rows(bytes, out.len(), out)
            .map_err(|e| Error::tensor(&tensor.name, format!("cannot decode {}: {e}", tensor.ty)))
    }

    fn prefetch(&self, index: usize, range: Range<u64>) {
        if let Some((mapping, range)) = self.mapped(index, &range) {
            mapping.prefetch(range);
        }
    }

    fn release(&self, index: usize, range: Range<u64>) {
        if let Some((mapping, range)) = self.mapped(index, &range) {
            mapping.release(range.start.saturating_sub(WINDOW)..range.end.saturating_add(WINDOW));
        }
    }
}

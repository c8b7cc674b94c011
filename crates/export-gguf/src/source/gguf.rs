//! A GGUF file or split set as a [`Source`].

use std::ops::Range;
use std::path::{Path, PathBuf};

use ggml_blocks::Format;
use gguf_format::{Builder, Kind, WriteError};
use gguf_mmap::{Model, OpenOptions};

use super::{Source, Tensor};
use crate::Error;

/// What a part of a split set says of the set; a whole file does not carry these.
pub(crate) const SPLIT_KEYS: [&str; 3] = ["split.no", "split.count", "split.tensors.count"];

/// Hints are widened to windows of this many bytes: the kernel maps neighbouring pages around each
/// fault in windows of this size, and what it maps must also be released.
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
        let model = Model::open_with(path, options).map_err(Error::model(path))?;
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

    fn hint(&self, index: usize, range: &Range<u64>, give: impl Fn(&gguf_mmap::Mapping, Range<u64>)) {
        let Some((part, range)) = self.file_range(index, range) else { return };
        if let Some(mapping) = self.model.parts().get(part).and_then(|p| p.mapping()) {
            let end = range.end.checked_next_multiple_of(WINDOW).unwrap_or(range.end);
            give(mapping, range.start / WINDOW * WINDOW..end);
        }
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

    fn inputs(&self) -> Vec<PathBuf> {
        let parts = self.model.parts().iter().filter_map(|p| p.path().map(Path::to_path_buf));
        std::iter::once(self.path.clone()).chain(parts).collect()
    }

    fn declare(&self, index: usize, builder: &mut Builder) -> Result<(), WriteError> {
        if let Some(t) = self.model.tensors().nth(index) {
            builder.copy_tensor(&t.info)?;
        }
        Ok(())
    }

    fn bytes(&self, index: usize, range: Range<u64>) -> Option<&[u8]> {
        let (part, range) = self.file_range(index, &range)?;
        let bytes = self.model.parts().get(part)?.mapping()?.bytes();
        bytes.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
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
        self.hint(index, &range, |mapping, range| mapping.prefetch(range));
    }

    fn release(&self, index: usize, range: Range<u64>) {
        self.hint(index, &range, |mapping, range| mapping.release(range));
    }
}

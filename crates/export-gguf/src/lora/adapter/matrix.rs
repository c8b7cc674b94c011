//! The tensors of an adapter: mapped, decoded when they are needed.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use ggml_blocks::Format;
use gguf_mmap::Mapping;
use safetensors_lite::Header;

use super::super::problems::Problems;
use crate::Error;
use crate::st::format_of;

/// A tensor of an adapter.
#[derive(Clone)]
pub struct Matrix {
    name: String,
    /// The outermost dimension first, as `PyTorch` counts them.
    shape: Vec<u64>,
    format: &'static Format,
    file: Arc<Mapping>,
    /// In bytes of the file.
    range: Range<u64>,
}

impl fmt::Debug for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ty = self.format.name();
        f.debug_struct("Matrix")
            .field("name", &self.name)
            .field("shape", &self.shape)
            .field("type", &ty)
            .finish()
    }
}

impl Matrix {
    /// A tensor whose bytes stand in `range` of `file`. The parser has checked that they are there, and as
    /// many as the shape needs.
    pub(super) fn new(
        name: &str,
        shape: Vec<u64>,
        format: &'static Format,
        file: &Arc<Mapping>,
        range: Range<u64>,
    ) -> Self {
        Self { name: name.to_owned(), shape, format, file: file.clone(), range }
    }

    /// Its name in the adapter.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its shape, the row length last.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Rows and row length, for a tensor of two dimensions.
    pub(in super::super) fn sides(&self) -> Option<(u64, u64)> {
        match self.shape[..] {
            [rows, row] => Some((rows, row)),
            _ => None,
        }
    }

    /// Whether it has no values.
    pub(in super::super) fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// The matrices that a tensor of three dimensions is made of, or the tensor itself. There are as many as
    /// the shape says, which the bytes back up unless the tensor is empty.
    pub(in super::super) fn layers(&self) -> Vec<Self> {
        let [count, rows, row] = self.shape[..] else { return vec![self.clone()] };
        let size = (self.range.end - self.range.start).checked_div(count).unwrap_or(0);
        let layer = |i| {
            let start = self.range.start + i * size;
            Self { shape: vec![rows, row], range: start..start + size, ..self.clone() }
        };
        (0..count).map(layer).collect()
    }

    /// `2 x 8`
    pub(in super::super) fn shown(&self) -> String {
        let dims: Vec<String> = self.shape.iter().map(u64::to_string).collect();
        format!("[{}]", dims.join(", "))
    }

    fn bytes(&self) -> Option<&[u8]> {
        let (start, end) = (usize::try_from(self.range.start).ok()?, usize::try_from(self.range.end).ok()?);
        self.file.bytes().get(start..end)
    }

    /// All values. They take at most 32 times the memory of the bytes that are there.
    pub(in super::super) fn read(&self) -> Result<Vec<f32>, Error> {
        let bytes = self.bytes().unwrap_or_default();
        let blocks = bytes.len() / self.format.block_bytes();
        let mut out = vec![0.0; blocks * self.format.block_len()];
        self.decode(bytes, 0..blocks, &mut out)?;
        Ok(out)
    }

    /// The values from element `start` on, as many as `out` holds.
    pub(in super::super) fn read_at(&self, start: usize, out: &mut [f32]) -> Result<(), String> {
        let (bytes, block) = (self.bytes().unwrap_or_default(), self.format.block_len());
        let end = start + out.len();
        let blocks = start / block..end.div_ceil(block);
        let decode = |blocks: Range<usize>, out: &mut [f32]| {
            self.format.decode_range(bytes, blocks, out).map_err(|e| e.to_string())
        };
        if start.is_multiple_of(block) && end.is_multiple_of(block) {
            return decode(blocks, out);
        }
        let mut whole = vec![0.0; blocks.len() * block];
        decode(blocks, &mut whole)?;
        let from = start % block;
        out.copy_from_slice(&whole[from..from + out.len()]);
        Ok(())
    }

    fn decode(&self, bytes: &[u8], blocks: Range<usize>, out: &mut [f32]) -> Result<(), Error> {
        self.format
            .decode_range(bytes, blocks, out)
            .map_err(|e| Error::tensor(self.name.escape_debug().to_string(), e.to_string()))
    }

    /// Looks for values that are no numbers.
    pub(super) fn check_finite(&self, adapter: &Path, problems: &mut Problems) -> Result<(), Error> {
        const BLOCKS: usize = 4096;
        let bytes = self.bytes().unwrap_or_default();
        let all = bytes.len() / self.format.block_bytes();
        let mut values = vec![0.0; BLOCKS.min(all) * self.format.block_len()];
        let mut start = 0;
        while start < all {
            let end = all.min(start + BLOCKS);
            let values = &mut values[..(end - start) * self.format.block_len()];
            self.decode(bytes, start..end, values)?;
            if let Some(at) = values.iter().position(|v| !v.is_finite()) {
                let (value, at) = (values[at], start * self.format.block_len() + at);
                problems.add(adapter, &self.name, format_args!("{value} at element {at} is not finite"));
                break;
            }
            start = end;
        }
        self.file.release(self.range.clone());
        Ok(())
    }
}

/// The tensors of a safetensors file, or of the first frame of one that holds several.
pub(super) fn open_safetensors(path: &Path) -> Result<Vec<Found>, Error> {
    let mapping = Mapping::open(path)?;
    let header = Header::parse_frame(mapping.bytes()).map_err(Error::file(path))?;
    if header.total_len() > mapping.len() as u64 {
        // The strict rules say what is missing where.
        Header::parse(mapping.bytes(), mapping.len() as u64).map_err(Error::file(path))?;
    }
    let frame = header.total_len();
    let file = Arc::new(mapping);
    let found = |t: safetensors_lite::TensorInfo<'_>| Found {
        name: t.name().to_owned(),
        matrix: format_of(t.dtype())
            .map(|format| Matrix::new(t.name(), t.shape().to_vec(), format, &file, t.file_range()))
            .map_err(|e| e.to_string()),
        more: file.len() as u64 > frame,
    };
    Ok(header.tensors().map(found).collect())
}

/// A tensor of a file, or why its values cannot be had.
pub(super) struct Found {
    pub(super) name: String,
    pub(super) matrix: Result<Matrix, String>,
    /// Whether the file goes on after the tensors.
    pub(super) more: bool,
}

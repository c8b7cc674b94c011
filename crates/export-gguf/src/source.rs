//! Where tensors come from.
//!
//! The pipeline knows a model only through [`Source`]: names, shapes and types to plan with, bytes
//! to copy, values to encode.

mod gguf;

use std::ops::Range;
use std::path::PathBuf;

use gguf_format::{Builder, GgmlType, WriteError};

use crate::Error;

pub use gguf::GgufSource;
pub(crate) use gguf::SPLIT_KEYS;

/// What a plan needs to know of one tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// The name.
    pub name: String,
    /// The dimensions in ggml's order, the row length first.
    pub dims: Vec<u64>,
    /// The stored type.
    pub ty: GgmlType,
    /// The length of the stored data in bytes.
    pub bytes: u64,
    /// Whether values can be had of it, not only bytes.
    pub decodable: bool,
}

impl Tensor {
    /// The product of the dimensions.
    #[must_use]
    pub fn elements(&self) -> u64 {
        // Sources hand out only shapes whose product was checked.
        self.dims.iter().product()
    }

    /// Elements per row, 1 for a single number.
    #[must_use]
    pub fn row_len(&self) -> u64 {
        self.dims.first().copied().unwrap_or(1)
    }
}

/// A model that can be read tensor by tensor, in any order, from any thread.
pub trait Source: Sync {
    /// The tensors, in the order in which they are to be written.
    fn tensors(&self) -> &[Tensor];

    /// The metadata, ready to have tensors declared: every key in its order, byte for byte.
    fn metadata(&self) -> Builder;

    /// What each tensor's data is aligned to, in bytes.
    fn alignment(&self) -> u32;

    /// Which file of a split set tensor `index` stands in, counted from 0.
    fn part(&self, _index: usize) -> usize {
        0
    }

    /// The files that this source reads, none of which may be written to.
    fn inputs(&self) -> Vec<PathBuf>;

    /// Declares tensor `index` as it stands, for a copy.
    ///
    /// # Errors
    /// When a file with this tensor could not be read back.
    fn declare(&self, index: usize, builder: &mut Builder) -> Result<(), WriteError>;

    /// Stored bytes of tensor `index`, the range counted from its start. `None` when its values
    /// are computed.
    fn bytes(&self, index: usize, range: Range<u64>) -> Option<&[u8]>;

    /// The `out.len()` values of tensor `index` that start at element `start`, which is the first
    /// of a block, as is `start + out.len()`.
    ///
    /// # Errors
    /// When the stored values cannot be decoded or are no numbers.
    fn values(&self, index: usize, start: u64, out: &mut [f32]) -> Result<(), Error>;

    /// Whether the values of tensor `index` are a model's with adapters merged into them.
    fn is_merged(&self, _index: usize) -> bool {
        false
    }

    /// Announces that a range of tensor `index`, in bytes, will be read soon.
    fn prefetch(&self, _index: usize, _range: Range<u64>) {}

    /// Announces that a range of tensor `index`, in bytes, will not be read again.
    fn release(&self, _index: usize, _range: Range<u64>) {}
}

//! One tensor of the directory.

use core::fmt;

use crate::{GgmlType, shape::MAX_DIMS};

/// What the directory says of one tensor: name, shape, type, and where its bytes are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TensorInfo<'a> {
    pub(crate) name: &'a str,
    pub(crate) record: TensorRecord,
    pub(crate) data_offset: u64,
}

/// A tensor without its name: numbers only, all checked by the parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TensorRecord {
    /// Where the name's bytes start in the file, and how many they are.
    pub(crate) name_start: usize,
    pub(crate) name_len: u16,
    pub(crate) n_dims: u8,
    /// Unused dimensions are 1.
    pub(crate) dims: [u64; MAX_DIMS],
    pub(crate) ty: GgmlType,
    /// Both 0 for an unknown or removed type.
    pub(crate) block_len: u32,
    pub(crate) block_bytes: u32,
    pub(crate) offset: u64,
    pub(crate) byte_len: u64,
}

impl TensorRecord {
    /// The name's bytes as `(start, len)`.
    pub(crate) fn name(&self) -> (usize, usize) {
        (self.name_start, self.name_len.into())
    }

    /// The product of the dimensions, which the parser has found to fit.
    pub(crate) const fn elements(&self) -> u64 {
        let [a, b, c, d] = self.dims;
        a.saturating_mul(b).saturating_mul(c).saturating_mul(d)
    }

    pub(crate) fn dims(&self) -> &[u64] {
        self.dims.get(..usize::from(self.n_dims)).unwrap_or(&self.dims)
    }

    pub(crate) const fn row(&self) -> u64 {
        let [row, ..] = self.dims;
        row
    }
}

impl<'a> TensorInfo<'a> {
    /// The name.
    #[must_use]
    pub const fn name(&self) -> &'a str {
        self.name
    }

    /// The dimensions as written in the file, in ggml's `ne` order: the row length comes first.
    /// Empty for a single number.
    #[must_use]
    pub fn dims(&self) -> &[u64] {
        self.record.dims()
    }

    /// The dimensions in the order of `NumPy` and `PyTorch`: the row length comes last.
    pub fn logical_shape(&self) -> impl ExactSizeIterator<Item = u64> + DoubleEndedIterator + '_ {
        self.dims().iter().rev().copied()
    }

    /// The element type.
    #[must_use]
    pub const fn ty(&self) -> GgmlType {
        self.record.ty
    }

    /// Elements per block, 0 for an unknown or removed type. For [`GgmlType::Q2_0`] this is what
    /// the file uses, 64 or 128.
    #[must_use]
    pub const fn block_len(&self) -> u32 {
        self.record.block_len
    }

    /// Bytes per block, 0 for an unknown or removed type.
    #[must_use]
    pub const fn block_bytes(&self) -> u32 {
        self.record.block_bytes
    }

    /// True if the blocks are those of the type table, so that a codec for [`Self::ty`] applies.
    /// False for unknown and removed types, and for `Q2_0` in its 128-element layout.
    #[must_use]
    pub fn decodable(&self) -> bool {
        self.block_len() != 0
            && self
                .ty()
                .info()
                .is_some_and(|i| (i.block_len, i.block_bytes) == (self.block_len(), self.block_bytes()))
    }

    /// Where the bytes start, counted from the start of the data section.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.record.offset
    }

    /// Where the bytes start in the file.
    #[must_use]
    pub const fn file_offset(&self) -> u64 {
        // The parser has refused what would overflow.
        self.data_offset.saturating_add(self.record.offset)
    }

    /// The number of bytes, without padding. For an unknown or removed type the extent: up to the
    /// next tensor or the end of the file.
    #[must_use]
    pub const fn byte_len(&self) -> u64 {
        self.record.byte_len
    }

    /// The number of elements, the product of the dimensions.
    #[must_use]
    pub const fn elements(&self) -> u64 {
        self.record.elements()
    }

    /// Elements per row, the first dimension; 1 for a single number.
    #[must_use]
    pub const fn row_len(&self) -> u64 {
        self.record.row()
    }

    /// The number of rows, 0 if rows are empty.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        match self.record.elements().checked_div(self.record.row()) {
            Some(rows) => rows,
            None => 0,
        }
    }
}

/// Name, dimensions and type, such as `'a.weight' [32, 4] F32`.
impl fmt::Debug for TensorInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' {:?} {}", self.name.escape_debug(), self.dims(), self.ty())
    }
}

//! From dimensions and type to a number of bytes, with every product checked.

use core::fmt;

use crate::{GgmlType, Kind};

/// Dimensions per tensor that ggml knows.
pub const MAX_DIMS: usize = 4;

/// Why dimensions and a type give no size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShapeError {
    /// More than [`MAX_DIMS`] dimensions.
    Dimensions(u32),
    /// A dimension above `i64::MAX`: ggml reads it as negative.
    Dimension {
        /// The position of the dimension, counted from 0.
        axis: usize,
        /// Its value.
        value: u64,
    },
    /// The product of the dimensions exceeds `i64::MAX`.
    Elements([u64; MAX_DIMS]),
    /// A type that ggml never assigned or has removed.
    Type(GgmlType),
    /// A row length that the type's block length does not divide.
    Row {
        /// The type.
        ty: GgmlType,
        /// The row length, which is the first dimension.
        row: u64,
        /// The block length.
        block: u32,
    },
    /// The size exceeds the range of `u64`.
    Bytes {
        /// The type.
        ty: GgmlType,
        /// The number of elements.
        elements: u64,
    },
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dimensions(n) => write!(f, "{n} dimensions, at most {MAX_DIMS} exist"),
            Self::Dimension { axis, value } => {
                write!(f, "dimension {axis} is too large: {value} exceeds {}", i64::MAX)
            }
            Self::Elements(dims) => {
                write!(f, "dimensions {dims:?} overflow: number of elements exceeds {}", i64::MAX)
            }
            Self::Type(ty) => match ty.name() {
                Some(name) => write!(f, "removed tensor type {name} (id {})", ty.0),
                None => write!(f, "unknown tensor type {}", ty.0),
            },
            Self::Row { ty, row, block } => {
                write!(f, "row length {row} is not a multiple of the block length {block} of type {ty}")
            }
            Self::Bytes { ty, elements } => {
                write!(f, "size overflow: {elements} elements of type {ty} exceed the range of 64 bits")
            }
        }
    }
}

impl core::error::Error for ShapeError {}

/// Elements per block and bytes per block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) len: u32,
    pub(crate) bytes: u32,
}

impl Geometry {
    /// The layout of id 42 in files of the `PrismML` fork: 128 elements behind one scale.
    pub(crate) const FORK_Q2_0: Self = Self { len: 128, bytes: 34 };

    /// The type table's geometry; an error for unknown and removed types.
    pub(crate) fn of(ty: GgmlType) -> Result<Self, ShapeError> {
        match ty.info() {
            Some(info) if info.kind != Kind::Removed => {
                Ok(Self { len: info.block_len, bytes: info.block_bytes })
            }
            _ => Err(ShapeError::Type(ty)),
        }
    }

    /// Bytes of a tensor with `elements` elements in rows of `row`.
    pub(crate) fn byte_len(self, ty: GgmlType, row: u64, elements: u64) -> Result<u64, ShapeError> {
        let len = u64::from(self.len);
        if row.checked_rem(len) != Some(0) {
            return Err(ShapeError::Row { ty, row, block: self.len });
        }
        elements
            .checked_div(len)
            .and_then(|blocks| blocks.checked_mul(u64::from(self.bytes)))
            .ok_or(ShapeError::Bytes { ty, elements })
    }
}

/// The number of elements of `dims`, which is 1 without any; the limits are ggml's.
pub(crate) fn elements(dims: &[u64]) -> Result<u64, ShapeError> {
    if dims.len() > MAX_DIMS {
        return Err(ShapeError::Dimensions(u32::try_from(dims.len()).unwrap_or(u32::MAX)));
    }
    if let Some((axis, value)) = dims.iter().enumerate().find(|(_, d)| **d > i64::MAX.unsigned_abs()) {
        return Err(ShapeError::Dimension { axis, value: *value });
    }
    // A zero anywhere makes the product zero, but ggml multiplies from the left and refuses a
    // product that overflows before it meets the zero. So does this.
    let mut product = 1_u64;
    for dim in dims {
        product = match product.checked_mul(*dim) {
            Some(p) if p <= i64::MAX.unsigned_abs() => p,
            _ => {
                let mut shown = [1; MAX_DIMS];
                for (to, from) in shown.iter_mut().zip(dims) {
                    *to = *from;
                }
                return Err(ShapeError::Elements(shown));
            }
        };
    }
    Ok(product)
}

/// `value` rounded up to a multiple of `alignment`, a power of two; `None` on overflow.
pub(crate) fn pad(value: u64, alignment: u32) -> Option<u64> {
    value.checked_next_multiple_of(u64::from(alignment))
}

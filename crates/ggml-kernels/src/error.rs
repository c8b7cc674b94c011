//! Why a product was refused.

use std::error::Error as StdError;
use std::fmt;

use ggml_blocks::{DecodeError, EncodeError, GgmlType};

/// Input that does not fit. Unless said otherwise nothing was written.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The type cannot be a weight matrix, or not in this operation.
    Type {
        /// The type as given.
        ty: GgmlType,
        /// What it was asked for: `a weight matrix`, `packing`, `activations`.
        what: &'static str,
    },
    /// A row length that is zero or that the block length does not divide.
    RowLength {
        /// The format.
        name: &'static str,
        /// Weights per row, as given.
        row_len: usize,
        /// Weights per block.
        block_len: usize,
    },
    /// A buffer has another length than the rest of the call implies.
    Length {
        /// Which buffer.
        what: &'static str,
        /// The length that was needed.
        need: usize,
        /// The length that was given.
        have: usize,
    },
    /// Numbers that are no whole number of rows.
    Rows {
        /// Which buffer.
        what: &'static str,
        /// How much a row has.
        row: usize,
        /// How much was given.
        have: usize,
    },
    /// A matrix that no memory holds: packed, or as f32, some of its rows have more bytes than can be counted.
    Size {
        /// Rows.
        n: usize,
        /// Weights per row.
        k: usize,
    },
    /// A row that does not exist.
    Row {
        /// The row asked for.
        row: usize,
        /// How many there are.
        rows: usize,
    },
    /// Activations in another format than the weights meet.
    Activations {
        /// The format that the weights meet.
        need: GgmlType,
        /// The format that was given.
        have: GgmlType,
    },
    /// A level of -128 in quantized activations: no encoder writes one.
    Level {
        /// The block, counted from the first row's start.
        block: usize,
    },
    /// Matrices that do not join: another type or row length than the first has.
    Concat {
        /// Which of the matrices, counted from 0.
        index: usize,
    },
    /// A plane set of no planes, or of more than three.
    Planes {
        /// How many were given.
        count: usize,
    },
    /// A plane of another type than `TQ2_0`.
    PlaneType {
        /// Which plane, counted from 0.
        plane: usize,
        /// Its type.
        ty: GgmlType,
    },
    /// A plane of another shape than the first has.
    PlaneShape {
        /// Which plane, counted from 0.
        plane: usize,
        /// Its rows and row length.
        have: [usize; 2],
        /// Those of plane 0.
        need: [usize; 2],
    },
    /// Planes to be folded whose scales are not tied: the coarse plane's is not, but for the rounding to
    /// f16, three times the fine one's.
    Untied {
        /// The coarse plane's scale.
        coarse: f32,
        /// The fine plane's scale.
        fine: f32,
        /// The block within its row.
        block: usize,
        /// The row.
        row: usize,
    },
    /// The activations cannot be quantized: NaN, infinite, or too large for an f16 scale.
    Quantize(EncodeError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type { ty, what } => write!(f, "type {ty} is not for {what}"),
            Self::RowLength { name, row_len, block_len } => {
                write!(f, "row length {row_len} is not a positive multiple of {name}'s {block_len}")
            }
            Self::Length { what, need, have } => write!(f, "{what}: {need} needed, {have} given"),
            Self::Rows { what, row, have } => {
                write!(f, "{what}: {have} given, not a multiple of {row} per row")
            }
            Self::Size { n, k } => write!(f, "{n} rows of {k} are more than memory can hold"),
            Self::Row { row, rows } => write!(f, "row {row} asked for, there are {rows}"),
            Self::Activations { need, have } => {
                write!(f, "activations in {have}, the weights meet {need}")
            }
            Self::Level { block } => write!(f, "level -128 in activation block {block}"),
            Self::Concat { index } => {
                write!(f, "matrix {index} has another type or row length than matrix 0")
            }
            Self::Planes { count } => write!(f, "a plane set has 1 to 3 planes, {count} given"),
            Self::PlaneType { plane, ty } => write!(f, "plane {plane} is {ty}, must be TQ2_0"),
            Self::PlaneShape { plane, have, need } => {
                let ([n, k], [n0, k0]) = (have, need);
                write!(f, "plane {plane} has {n} rows of {k}, plane 0 has {n0} of {k0}")
            }
            Self::Untied { coarse, fine, block, row } => {
                write!(f, "scales {coarse} and {fine} are not tied, in block {block} of row {row}")
            }
            Self::Quantize(e) => write!(f, "activations: {e}"),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Quantize(e) => Some(e),
            _ => None,
        }
    }
}

impl From<EncodeError> for Error {
    fn from(e: EncodeError) -> Self {
        Self::Quantize(e)
    }
}

impl From<DecodeError> for Error {
    fn from(e: DecodeError) -> Self {
        match e {
            DecodeError::RowLength { name, row_len, block_len } => {
                Self::RowLength { name, row_len, block_len }
            }
            DecodeError::Length { what, need, have } => Self::Length { what, need, have },
            DecodeError::Row { row, rows } => Self::Row { row, rows },
            // The one left is of block ranges, which no caller of this crate names.
            _ => Self::Length { what: "blocks", need: 0, have: 0 },
        }
    }
}

/// How many rows a buffer has.
pub(crate) fn whole_rows(what: &'static str, row: usize, have: usize) -> Result<usize, Error> {
    if have.is_multiple_of(row) { Ok(have / row) } else { Err(Error::Rows { what, row, have }) }
}

/// Checks one length.
pub(crate) fn expect(what: &'static str, need: usize, have: usize) -> Result<(), Error> {
    if need == have { Ok(()) } else { Err(Error::Length { what, need, have }) }
}

//! Why a decode or an encode was refused.

use std::error::Error;
use std::fmt;

use crate::Block;

/// Bytes that are not a whole number of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LengthError {
    name: &'static str,
    block_bytes: usize,
    len: usize,
}

impl LengthError {
    pub(crate) fn of<B: Block>(len: usize) -> Self {
        Self { name: B::TYPE.name().unwrap_or("block"), block_bytes: size_of::<B>(), len }
    }
}

impl fmt::Display for LengthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, block_bytes, len } = self;
        write!(f, "{len} bytes are not a whole number of {name} blocks of {block_bytes}")
    }
}

impl Error for LengthError {}

/// Lengths that do not fit together. Nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The row length is zero or not a multiple of the block length.
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
        /// Which buffer: `bytes` or `weights`.
        what: &'static str,
        /// The length that was needed.
        need: usize,
        /// The length that was given.
        have: usize,
    },
    /// A block range that is reversed or ends behind the last block.
    Range {
        /// First block asked for.
        start: usize,
        /// One behind the last block asked for.
        end: usize,
        /// How many blocks there are.
        blocks: usize,
    },
    /// A row number that does not exist.
    Row {
        /// The row asked for.
        row: usize,
        /// How many rows there are.
        rows: usize,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RowLength { name, row_len, block_len } => {
                write!(f, "row of {row_len} weights is not a whole number of {name} blocks of {block_len}")
            }
            Self::Length { what, need, have } => write!(f, "{need} {what} needed, {have} given"),
            Self::Range { start, end, blocks } => {
                write!(f, "blocks {start}..{end} asked for, {blocks} there")
            }
            Self::Row { row, rows } => write!(f, "row {row} asked for, {rows} there"),
        }
    }
}

impl Error for DecodeError {}

/// Why rows could not be encoded. The output buffer's content is unspecified.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum EncodeError {
    /// The format has no encoder here.
    EncoderUnavailable {
        /// The format.
        name: &'static str,
    },
    /// A value is NaN or infinite, which no block can hold.
    NonFinite {
        /// Its index in the values given.
        index: usize,
        /// The value.
        value: f32,
    },
    /// The format cannot be encoded without an importance vector.
    ImportanceRequired {
        /// The format.
        name: &'static str,
    },
    /// The importance vector has another length than a row.
    ImportanceLength {
        /// Weights per row.
        need: usize,
        /// The length given.
        have: usize,
    },
    /// An importance is NaN or infinite.
    ImportanceNonFinite {
        /// Its index in the importance vector.
        index: usize,
        /// The value.
        value: f32,
    },
    /// The values of one block are too large for the format's scale.
    Unrepresentable {
        /// The format.
        name: &'static str,
        /// Index of the block's first value in the values given.
        index: usize,
    },
    /// The lengths do not fit together.
    Lengths(DecodeError),
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EncoderUnavailable { name } => write!(f, "no encoder for {name}"),
            Self::NonFinite { index, value } => write!(f, "value {value} at element {index} is not finite"),
            Self::ImportanceRequired { name } => write!(f, "{name} needs an importance matrix"),
            Self::ImportanceLength { need, have } => {
                write!(f, "{need} importance values needed, {have} given")
            }
            Self::ImportanceNonFinite { index, value } => {
                write!(f, "importance {value} at column {index} is not finite")
            }
            Self::Unrepresentable { name, index } => {
                write!(f, "values too large for a {name} scale in the block at element {index}")
            }
            Self::Lengths(e) => e.fmt(f),
        }
    }
}

impl Error for EncodeError {}

impl From<DecodeError> for EncodeError {
    fn from(e: DecodeError) -> Self {
        Self::Lengths(e)
    }
}

/// A block whose scale is NaN or infinite: its weights are garbage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NonFiniteScale {
    /// The format.
    pub name: &'static str,
    /// The number of the first such block in the bytes given.
    pub block: usize,
}

impl fmt::Display for NonFiniteScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "scale of {} block {} is not finite", self.name, self.block)
    }
}

impl Error for NonFiniteScale {}

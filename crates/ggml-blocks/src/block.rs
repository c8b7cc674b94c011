//! What a quantization block is, and what encoding one takes.

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::{EncodeError, LengthError};
use crate::scan::Limit;
use crate::simd::{Portable, Simd};

/// An array of weights: `[f32; N]` for the block lengths that exist.
pub trait Weights: bytemuck::Pod + AsRef<[f32]> + AsMut<[f32]> + Send + Sync {
    /// How many weights the array holds.
    const LEN: usize;
}

macro_rules! weights {
    ($($n:literal)+) => { $(
        impl Weights for [f32; $n] {
            const LEN: usize = $n;
        }
    )+ };
}
weights! { 1 32 64 128 256 }

/// A fixed number of weights in a fixed number of bytes.
///
/// Blocks have alignment 1, so bytes of a file become `&[Self]` by [`cast_blocks`] with no copy
/// wherever they start.
pub trait Block:
    FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned + Copy + Send + Sync + 'static
{
    /// The type id that files carry.
    const TYPE: GgmlType;
    /// `[f32; LEN]`.
    type Weights: Weights;
    /// Weights per block.
    const LEN: usize = Self::Weights::LEN;

    /// Decodes the block with ggml's arithmetic, whatever the bytes are: a NaN or infinite scale
    /// gives NaN or infinite weights.
    fn decode_on<S: Simd>(&self, simd: S, out: &mut Self::Weights);

    /// Whether the scales that ggml's validation looks at are neither NaN nor infinite.
    fn is_finite(&self) -> bool;

    /// [`Block::decode_on`] without a CPU-feature token: for single blocks. Rows decode faster
    /// through [`Format::decode_rows`](crate::Format::decode_rows).
    fn decode(&self, out: &mut Self::Weights) {
        self.decode_on(Portable, out);
    }

    /// Decodes `blocks.len()` blocks into as many arrays.
    #[inline(always)]
    fn decode_all<S: Simd>(simd: S, blocks: &[Self], out: &mut [Self::Weights]) {
        for (block, weights) in blocks.iter().zip(out) {
            block.decode_on(simd, weights);
        }
    }
}

/// A block that can also be produced. A format without an encoder does not implement it.
pub trait Encode: Block {
    /// Where the format's numbers end, for plain floats that round to infinity beyond.
    const LIMIT: Option<Limit> = None;

    /// Encodes whole rows, row after row.
    ///
    /// The caller has checked that `src.row_len` is a multiple of [`Block::LEN`], that
    /// `src.values.len()` is a multiple of it and equals `out.len() * LEN`, and that an importance
    /// vector is there if the format requires one, holds `row_len` finite numbers, and is absent if
    /// the format ignores it.
    ///
    /// # Errors
    /// From block formats, with any bytes in `out`: [`EncodeError::NonFinite`] where a value is NaN or
    /// infinite, [`EncodeError::Unrepresentable`] where the scale of a block has no finite f16.
    fn encode<S: Simd>(simd: S, src: Rows<'_>, out: &mut [Self]) -> Result<(), EncodeError>;
}

/// Rows of weights to encode.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// The weights, row after row.
    pub values: &'a [f32],
    /// Weights per row.
    pub row_len: usize,
    /// How much each column matters: `row_len` numbers, the same for every row.
    pub importance: Option<&'a [f32]>,
}

impl<'a> Rows<'a> {
    /// The importance of the `len` weights of block number `block`, counted over all rows.
    #[must_use]
    #[inline(always)]
    pub fn importance_of(&self, block: usize, len: usize) -> Option<&'a [f32]> {
        let column = block % (self.row_len / len) * len;
        self.importance.map(|w| &w[column..column + len])
    }
}

/// Views bytes as blocks: no copy, no alignment condition.
///
/// # Errors
/// [`LengthError`] unless the length is a multiple of the block's size.
pub fn cast_blocks<B: Block>(bytes: &[u8]) -> Result<&[B], LengthError> {
    <[B]>::ref_from_bytes(bytes).map_err(|_| LengthError::of::<B>(bytes.len()))
}

/// Views writable bytes as blocks.
///
/// # Errors
/// [`LengthError`] unless the length is a multiple of the block's size.
pub fn cast_blocks_mut<B: Block>(bytes: &mut [u8]) -> Result<&mut [B], LengthError> {
    let len = bytes.len();
    <[B]>::mut_from_bytes(bytes).map_err(|_| LengthError::of::<B>(len))
}

//! Activations: quantized row by row, with the bytes of ggml's `quantize_row_*_ref`.

use std::fmt;

use ggml_blocks::formats::{q8_0::Q8_0, q8_1::Q8_1, q8_k::Q8K};
use ggml_blocks::{Block, Format, GgmlType, cast_blocks, cast_blocks_mut};

use crate::error::{Error, whole_rows};

/// A matrix `[m, k]` of activations in `Q8_0`, `Q8_1` or `Q8_K`: quantized once, multiplied often.
#[derive(Clone)]
pub struct Lhs {
    ty: GgmlType,
    k: usize,
    bytes: Vec<u8>,
}

impl Lhs {
    /// Quantizes rows of `k` numbers: to the bytes that ggml's `quantize_row_q8_0_ref`,
    /// `quantize_row_q8_1_ref` or `quantize_row_q8_K_ref` write. [`Rhs::activations`](crate::Rhs::activations)
    /// tells the type that a weight matrix meets.
    ///
    /// # Errors
    /// [`Error`] for another type, for a `k` that the block length does not divide, for values that are
    /// not a whole number of rows, and for those that have no such form: NaN, infinite, or so large that
    /// the scale has no finite f16.
    pub fn quantize(ty: GgmlType, x: &[f32], k: usize) -> Result<Self, Error> {
        let mut bytes = Vec::new();
        quantize_into(ty, x, k, &mut bytes)?;
        Ok(Self { ty, k, bytes })
    }

    /// Takes rows of `k` numbers that are quantized already. The sums of `Q8_K` are made anew.
    ///
    /// # Errors
    /// [`Error`] for another type, lengths that do not fit, and a level of -128, which no encoder writes.
    pub fn from_bytes(ty: GgmlType, mut bytes: Vec<u8>, k: usize) -> Result<Self, Error> {
        let row = row_bytes(ty, k)?;
        whole_rows("bytes", row, bytes.len())?;
        check_levels(ty, &bytes)?;
        if ty == GgmlType::Q8_K {
            sum_anew(&mut bytes);
        }
        Ok(Self { ty, k, bytes })
    }

    /// The type of its blocks.
    #[must_use]
    pub fn ty(&self) -> GgmlType {
        self.ty
    }

    /// Numbers per row.
    #[must_use]
    pub fn k(&self) -> usize {
        self.k
    }

    /// How many rows there are.
    #[must_use]
    pub fn m(&self) -> usize {
        self.view().m()
    }

    /// The blocks, row after row.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn view(&self) -> LhsRef<'_> {
        LhsRef { ty: self.ty, k: self.k, bytes: &self.bytes }
    }
}

impl fmt::Debug for Lhs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ty, k, .. } = self;
        f.debug_struct("Lhs").field("ty", ty).field("m", &self.m()).field("k", k).finish_non_exhaustive()
    }
}

/// Quantized activations, checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LhsRef<'a> {
    pub(crate) ty: GgmlType,
    pub(crate) k: usize,
    pub(crate) bytes: &'a [u8],
}

impl<'a> LhsRef<'a> {
    pub(crate) fn m(self) -> usize {
        // `row_bytes` has accepted this type and length.
        self.bytes.len() / row_bytes(self.ty, self.k).unwrap_or(1)
    }

    /// The blocks of `R` rows from `first` on.
    #[inline(always)]
    pub(crate) fn rows<B: Block, const R: usize>(self, first: usize) -> [&'a [B]; R] {
        let (blocks, per_row) = (self.blocks(), self.k / B::LEN);
        let mut out: [&[B]; R] = [&[]; R];
        for (r, out) in out.iter_mut().enumerate() {
            *out = &blocks[(first + r) * per_row..(first + r + 1) * per_row];
        }
        out
    }

    /// The blocks, for a format that its type says.
    #[inline(always)]
    pub(crate) fn blocks<B: Block>(self) -> &'a [B] {
        cast_blocks(self.bytes).unwrap_or(&[])
    }
}

fn row_bytes(ty: GgmlType, k: usize) -> Result<usize, Error> {
    let format = match ty {
        GgmlType::Q8_0 | GgmlType::Q8_1 | GgmlType::Q8_K => Format::of(ty),
        _ => None,
    };
    Ok(format.ok_or(Error::Type { ty, what: "activations" })?.row_bytes(k)?)
}

/// Quantizes into a buffer that keeps its capacity.
pub(crate) fn quantize_into(ty: GgmlType, x: &[f32], k: usize, bytes: &mut Vec<u8>) -> Result<(), Error> {
    let row = row_bytes(ty, k)?;
    let rows = whole_rows("activations", k, x.len())?;
    let format = Format::of(ty).ok_or(Error::Type { ty, what: "activations" })?;
    bytes.resize(rows * row, 0);
    format.encode_rows(x, k, None, bytes)?;
    Ok(())
}

fn check_levels(ty: GgmlType, bytes: &[u8]) -> Result<(), Error> {
    fn bad<B: Block>(bytes: &[u8], levels: impl Fn(&B) -> &[i8]) -> Option<usize> {
        cast_blocks::<B>(bytes).unwrap_or(&[]).iter().position(|b| levels(b).contains(&-128))
    }
    let found = match ty {
        GgmlType::Q8_0 => bad::<Q8_0>(bytes, |b| &b.qs),
        GgmlType::Q8_1 => bad::<Q8_1>(bytes, |b| &b.qs),
        _ => bad::<Q8K>(bytes, |b| &b.qs),
    };
    found.map_or(Ok(()), |block| Err(Error::Level { block }))
}

/// The sums of each 16 levels. ggml leaves those of an all-zero block unwritten.
fn sum_anew(bytes: &mut [u8]) {
    for block in cast_blocks_mut::<Q8K>(bytes).unwrap_or(&mut []) {
        for (sum, qs) in block.bsums.iter_mut().zip(block.qs.as_chunks::<16>().0) {
            *sum = qs.iter().map(|&q| i16::from(q)).sum::<i16>().into();
        }
    }
}

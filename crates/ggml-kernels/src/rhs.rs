//! Weight matrices as they stand in files.

use std::borrow::Cow;
use std::fmt;

use ggml_blocks::{Format, GgmlType, Kind};
use rayon::prelude::*;

use crate::error::{Error, expect};
use crate::unpack::activations;

/// A promise about the bytes of a weight matrix: not what they are, but whether their address and content
/// stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RhsLifetime {
    /// Nothing is promised: the bytes may be others at the next call. Never cached.
    Transient,
    /// The bytes stay as they are, where they are, until the process ends.
    StableProcess,
}

/// A weight matrix `[n, k]`: `n` rows of `k` weights, row `r` being output column `r`, as ggml stores
/// a linear layer's `[out, in]`.
///
/// Borrowed from the bytes of a file, or owned. Any of ggml's 25 weight formats, or `F32`, `F16`, `BF16`.
#[derive(Clone)]
pub struct Rhs<'a> {
    format: &'static Format,
    k: usize,
    n: usize,
    bytes: Cow<'a, [u8]>,
    lifetime: RhsLifetime,
}

/// Bytes per weight of the largest form of as many rows as are handled together, generously.
const SOME_ROWS: usize = 1 << 12;

impl fmt::Debug for Rhs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { format, k, n, lifetime, .. } = self;
        let mut out = f.debug_struct("Rhs");
        out.field("ty", &format.info().id).field("n", n).field("k", k).field("lifetime", lifetime);
        out.finish_non_exhaustive()
    }
}

impl Rhs<'static> {
    /// [`Rhs::new`] with the promise of [`RhsLifetime::StableProcess`]: only bytes that are never freed
    /// can give it, such as those of a leaked mapping.
    ///
    /// # Errors
    /// As for [`Rhs::new`].
    pub fn stable(ty: GgmlType, bytes: &'static [u8], n: usize, k: usize) -> Result<Self, Error> {
        Ok(Self { lifetime: RhsLifetime::StableProcess, ..Self::new(ty, bytes, n, k)? })
    }
}

impl<'a> Rhs<'a> {
    /// A matrix over the bytes of a tensor, without a copy.
    ///
    /// # Errors
    /// [`Error`] for a type that holds no weights, for a `k` of zero or one that the block length does
    /// not divide, for bytes that are not `n` rows, and for rows that no memory holds.
    pub fn new(ty: GgmlType, bytes: &'a [u8], n: usize, k: usize) -> Result<Self, Error> {
        Self::with(ty, Cow::Borrowed(bytes), n, k)
    }

    /// [`Rhs::new`] with bytes of its own.
    ///
    /// # Errors
    /// As for [`Rhs::new`].
    pub fn from_vec(ty: GgmlType, bytes: Vec<u8>, n: usize, k: usize) -> Result<Self, Error> {
        Self::with(ty, Cow::Owned(bytes), n, k)
    }

    fn with(ty: GgmlType, bytes: Cow<'a, [u8]>, n: usize, k: usize) -> Result<Self, Error> {
        let format = Format::of(ty)
            .filter(|f| {
                matches!(ty, GgmlType::F32 | GgmlType::F16 | GgmlType::BF16) || f.info().kind == Kind::Block
            })
            .ok_or(Error::Type { ty, what: "a weight matrix" })?;
        // What is made of some rows at a time, packed, expanded or as f32, is countable as well.
        let row = format.row_bytes(k)?;
        let countable = k.checked_mul(SOME_ROWS).is_some() && k.checked_mul(n).is_some();
        let need = row.checked_mul(n).filter(|_| countable).ok_or(Error::Size { n, k })?;
        expect("bytes", need, bytes.len())?;
        Ok(Self { format, k, n, bytes, lifetime: RhsLifetime::Transient })
    }

    /// The matrix with bytes of its own: a borrowed one is copied, for when its mapping goes away.
    #[must_use]
    pub fn into_owned(self) -> Rhs<'static> {
        Rhs {
            format: self.format,
            k: self.k,
            n: self.n,
            bytes: Cow::Owned(self.bytes.into_owned()),
            lifetime: RhsLifetime::Transient,
        }
    }

    /// Joins matrices along rows, without decoding: the outputs of the first come first.
    ///
    /// # Errors
    /// [`Error::Concat`] unless all have the same type and the same `k`; [`Error::Length`] for none.
    pub fn concat(parts: &[Self]) -> Result<Rhs<'static>, Error> {
        let first = parts.first().ok_or(Error::Length { what: "matrices", need: 1, have: 0 })?;
        let differs = |p: &Self| p.ty() != first.ty() || p.k != first.k;
        if let Some(index) = parts.iter().position(differs) {
            return Err(Error::Concat { index });
        }
        let bytes: Vec<&[u8]> = parts.iter().map(Self::as_bytes).collect();
        let n = parts.iter().map(|p| p.n).sum();
        Rhs::from_vec(first.ty(), bytes.concat(), n, first.k)
    }

    /// The type of the weights.
    #[must_use]
    pub fn ty(&self) -> GgmlType {
        self.format.info().id
    }

    /// Rows: how many outputs.
    #[must_use]
    pub fn n(&self) -> usize {
        self.n
    }

    /// Weights per row: how many inputs.
    #[must_use]
    pub fn k(&self) -> usize {
        self.k
    }

    /// The blocks, row after row.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What is promised about the bytes.
    #[must_use]
    pub fn lifetime(&self) -> RhsLifetime {
        self.lifetime
    }

    /// The type that activations are quantized to for this matrix; `None` for plain floats, which meet
    /// f32.
    #[must_use]
    pub fn activations(&self) -> Option<GgmlType> {
        activations(self.ty())
    }

    pub(crate) fn format(&self) -> &'static Format {
        self.format
    }

    /// Bytes of a row.
    pub(crate) fn row_bytes(&self) -> usize {
        self.bytes.len().checked_div(self.n).unwrap_or(0)
    }

    /// The rows of a range.
    pub(crate) fn rows(&self, rows: std::ops::Range<usize>) -> &[u8] {
        let size = self.row_bytes();
        &self.bytes[rows.start * size..rows.end * size]
    }

    /// Decodes chosen rows, as an embedding look-up does: only their bytes are touched. In parallel in
    /// the caller's rayon pool.
    ///
    /// # Errors
    /// [`Error::Row`] for a row that does not exist, [`Error::Length`] unless `out` has `k` numbers for
    /// each row asked for.
    pub fn get_rows(&self, rows: &[usize], out: &mut [f32]) -> Result<(), Error> {
        expect("output", rows.len().saturating_mul(self.k), out.len())?;
        if let Some(&row) = rows.iter().find(|&&row| row >= self.n) {
            return Err(Error::Row { row, rows: self.n });
        }
        let chunk = rows_per_task(self.k);
        rows.par_chunks(chunk)
            .zip(out.par_chunks_mut(chunk * self.k))
            .try_for_each(|(rows, out)| Ok(self.format.get_rows(&self.bytes, self.k, rows, out)?))
    }

    /// Decodes all rows, in parallel in the caller's rayon pool.
    ///
    /// # Errors
    /// [`Error::Length`] unless `out` has `n * k` numbers.
    pub fn decode(&self, out: &mut [f32]) -> Result<(), Error> {
        expect("output", self.n.saturating_mul(self.k), out.len())?;
        if self.n == 0 {
            return Ok(());
        }
        let chunk = rows_per_task(self.k);
        out.par_chunks_mut(chunk * self.k)
            .zip(self.bytes.par_chunks(chunk * self.row_bytes()))
            .try_for_each(|(out, bytes)| Ok(self.format.decode_rows(bytes, self.k, out)?))
    }
}

/// Rows that are worth a task of their own.
fn rows_per_task(k: usize) -> usize {
    (65_536 / k).max(1)
}

//! Weights packed once for the kernels that will read them.

use std::fmt;
use std::ops::Range;

use ggml_blocks::{Block, GgmlType, cast_blocks};
use rayon::prelude::*;

use crate::error::Error;
use crate::isa::{Portable, Token};
use crate::layout::pack::{FlatPack, Form, LayoutOp, SuperPack};
use crate::layout::{FlatLayout, SuperLayout};
use crate::level::{Kernels, Level};
use crate::lhs::{Lhs, LhsRef, quantize_into};
use crate::matmul::{check_lhs, quantized, rows};
use crate::memory::Memory;
use crate::rhs::Rhs;
use crate::scratch::Scratch;
use crate::task::Weights;
use crate::unpack::{Flat, FlatUnit, Super, SuperUnit, activations};

/// A weight matrix, or the planes of a set, in the order in which kernels read it: eight columns
/// interleaved. It carries the kernels that it was packed for; [`Kernels::packed_size`] says how many bytes it has. The
/// number of rows is rounded up to 8 to 32, as the kernels have it.
pub struct Packed {
    pub(crate) token: Token,
    form: Form,
    n: usize,
    k: usize,
    bytes: Memory,
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { form, n, k, .. } = self;
        let mut out = f.debug_struct("Packed");
        out.field("form", form).field("n", n).field("k", k).field("level", &self.level());
        out.finish_non_exhaustive()
    }
}

impl Kernels {
    /// Copies a matrix into the order that these kernels read. In parallel in the caller's rayon pool.
    ///
    /// Every format of blocks has a layout for it. The copy takes the file's bytes or up to 11 % more; `Q1_0` a
    /// third more, `TQ1_0` 2.06 bits per weight, the codebook formats (`IQ1`, `IQ2`, `IQ3`) 4.6
    /// ([`Kernels::packed_size`]).
    ///
    /// # Errors
    /// [`Error::Type`] for plain floats.
    pub fn pack(self, w: &Rhs<'_>) -> Result<Packed, Error> {
        let form = Form::One(w.ty());
        self.pack_as(form, w.n(), w.k(), |columns, out| self.fill(w, columns, [0, 1], out))
    }

    /// Packs `n` columns of `k` weights: `fill` gets the range of columns of each group, and its bytes,
    /// which are zeros.
    pub(crate) fn pack_as(
        self,
        form: Form,
        n: usize,
        k: usize,
        fill: impl Fn(Range<usize>, &mut [u8]) + Sync,
    ) -> Result<Packed, Error> {
        let (group, len) =
            self.packed_len(form, n, k).ok_or(Error::Type { ty: form.ty(), what: "packing" })?;
        let width = 8 * self.token.cols();
        let mut bytes = Memory::zeroed(len);
        bytes.bytes_mut().par_chunks_mut(group.max(1)).enumerate().for_each(|(g, out)| {
            fill(g * width..((g + 1) * width).min(n), out);
        });
        Ok(Packed { token: self.token, form, n, k, bytes })
    }

    /// Puts columns of a matrix into the bytes of their group, as plane `[p, of]` of those that alternate.
    pub(crate) fn fill(self, w: &Rhs<'_>, columns: Range<usize>, plane: [usize; 2], out: &mut [u8]) {
        let (rows, k, cols) = (w.rows(columns), w.k(), self.token.cols());
        Form::One(w.ty()).with(Fill { rows, k, cols, plane, out });
    }

    /// What [`Packed::size`] of a matrix will be; `None` for plain floats, which have no packed layout.
    #[must_use]
    pub fn packed_size(self, w: &Rhs<'_>) -> Option<usize> {
        self.packed_len(Form::One(w.ty()), w.n(), w.k()).map(|(_, len)| Memory::size(len))
    }

    /// Bytes of a group of columns, and of all.
    fn packed_len(self, form: Form, n: usize, k: usize) -> Option<(usize, usize)> {
        struct Len;
        impl LayoutOp for Len {
            type Output = (usize, usize);
            fn flat<P: FlatPack>(self) -> (usize, usize) {
                (32, P::Layout::UNIT)
            }
            fn superblock<P: SuperPack>(self) -> (usize, usize) {
                (256, P::Layout::UNIT)
            }
            fn planes<P: SuperPack, const K: usize>(self) -> (usize, usize) {
                (256, K * P::Layout::UNIT)
            }
        }
        let (unit_len, unit) = form.with(Len)?;
        let group = k / unit_len * unit * self.token.cols();
        Some((group, n.div_ceil(8 * self.token.cols()) * group))
    }
}

/// Packs the columns of one group.
struct Fill<'a> {
    rows: &'a [u8],
    k: usize,
    cols: usize,
    /// Which of how many planes it is: their units alternate.
    plane: [usize; 2],
    out: &'a mut [u8],
}

impl LayoutOp for Fill<'_> {
    type Output = ();

    fn flat<P: FlatPack>(self) {
        let mut unit = FlatUnit::ZERO;
        let (len, per_block) = (P::Layout::UNIT, P::Format::LEN / 32);
        let blocks = cast_blocks::<P::Format>(self.rows).unwrap_or(&[]);
        for (c, row) in blocks.chunks_exact(self.k / P::Format::LEN).enumerate() {
            let units = row.iter().flat_map(|block| (0..per_block).map(move |index| (block, index)));
            for ((block, index), out) in units.zip(self.out.chunks_exact_mut(len * self.cols)) {
                block.unit(Portable, index, &mut unit);
                P::put(block, &unit, c % 8, &mut out[c / 8 * len..(c / 8 + 1) * len]);
            }
        }
    }

    fn superblock<P: SuperPack>(self) {
        let mut unit = SuperUnit::ZERO;
        let len = P::Layout::UNIT;
        let blocks = cast_blocks::<P::Format>(self.rows).unwrap_or(&[]);
        let [plane, of] = self.plane;
        for (c, row) in blocks.chunks_exact(self.k / P::Format::LEN).enumerate() {
            let start = (plane * self.cols + c / 8) * len;
            for (block, out) in row.iter().zip(self.out.chunks_exact_mut(of * self.cols * len)) {
                block.unit(Portable, &mut unit);
                P::put(block, &unit, c % 8, &mut out[start..start + len]);
            }
        }
    }
}

impl Packed {
    /// `y[m, n] = x[m, k] · wᵀ`, with the bits of [`Kernels::matmul`]; of a plane set, with those that
    /// [`Kernels::pack_planes`] and [`Kernels::pack_folded`] say.
    ///
    /// # Errors
    /// As for [`Kernels::matmul`].
    pub fn matmul(&self, x: &[f32], y: &mut [f32], scratch: &mut Scratch) -> Result<(), Error> {
        rows(x, self.k, self.n, y)?;
        let ty = self.activations();
        let mut bytes = std::mem::take(&mut scratch.lhs);
        let done = quantize_into(ty, x, self.k, &mut bytes).map(|()| {
            let lhs = LhsRef { ty, k: self.k, bytes: &bytes };
            quantized(self.token, Weights::Packed(self), lhs, y, scratch);
        });
        scratch.lhs = bytes;
        done
    }

    /// `y[m, n] = x[m, k] · wᵀ` with activations that are quantized already.
    ///
    /// # Errors
    /// As for [`Kernels::matmul_lhs`].
    pub fn matmul_lhs(&self, lhs: &Lhs, y: &mut [f32], scratch: &mut Scratch) -> Result<(), Error> {
        check_lhs(lhs, Some(self.activations()), self.k, self.n, y)?;
        quantized(self.token, Weights::Packed(self), lhs.view(), y, scratch);
        Ok(())
    }

    /// The type that activations are quantized to.
    #[must_use]
    pub fn activations(&self) -> GgmlType {
        // Every format of blocks meets quantized activations.
        activations(self.ty()).unwrap_or(GgmlType::Q8_0)
    }

    /// The format it was packed from; of a plane set, that of its planes.
    #[must_use]
    pub fn ty(&self) -> GgmlType {
        self.form.ty()
    }

    /// What was packed.
    pub(crate) fn form(&self) -> Form {
        self.form
    }

    /// Rows of the weight matrix: how many outputs.
    #[must_use]
    pub fn n(&self) -> usize {
        self.n
    }

    /// Weights per row: how many inputs.
    #[must_use]
    pub fn k(&self) -> usize {
        self.k
    }

    /// The level of the kernels that it was packed for.
    #[must_use]
    pub fn level(&self) -> Level {
        self.token.level()
    }

    /// Bytes of memory that it holds.
    #[must_use]
    pub fn size(&self) -> usize {
        Memory::size(self.bytes.bytes().len())
    }

    /// The groups that hold the columns of a range.
    pub(crate) fn groups(&self, columns: Range<usize>) -> &[u8] {
        let width = 8 * self.token.cols();
        let bytes = self.bytes.bytes();
        let group = bytes.len() / self.n.div_ceil(width).max(1);
        let (first, last) = (columns.start / width, columns.end.div_ceil(width));
        &bytes[first * group..last * group]
    }
}

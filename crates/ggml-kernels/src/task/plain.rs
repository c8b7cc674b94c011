//! Weights as they stand in the file: taken apart block by block for few rows, some columns at a time for
//! many.

use std::marker::PhantomData;

use ggml_blocks::{Block, cast_blocks};

use super::BATCH;
use super::tiled::{FlatTiles, FlatWordTiles, SuperTiles, WordTiles, tiles};
use crate::isa::{Isa, KernelOp, Token};
use crate::kernel::{Sink, direct, direct::eight};
use crate::layout::byte::{FlatBytes, SuperBytes, expand_flat, expand_super};
use crate::layout::{FlatLayout, SuperLayout, word};
use crate::lhs::LhsRef;
use crate::panel::{Panels, panels};
use crate::scratch::Buffers;
use crate::unpack::{Flat, FormatOp, Super};

/// Few rows: blocks are taken apart on the way.
pub(super) struct Direct<'a> {
    pub(super) token: Token,
    pub(super) rows: &'a [u8],
    pub(super) lhs: LhsRef<'a>,
    pub(super) sink: Sink<'a>,
}

impl FormatOp for Direct<'_> {
    type Output = ();

    fn flat<B: Flat>(self) {
        self.few::<FlatFormat<B>>();
    }

    fn superblock<B: Super>(self) {
        self.few::<SuperFormat<B>>();
    }
}

impl Direct<'_> {
    fn few<T: Unpacked>(self) {
        struct Op<'a, 'b, T: Unpacked, const R: usize>(&'a [T::Block], LhsRef<'a>, usize, &'a mut Sink<'b>);
        impl<T: Unpacked, const R: usize> KernelOp for Op<'_, '_, T, R> {
            type Output = ();
            #[inline(always)]
            fn run<I: Isa>(self, isa: I) {
                T::few::<I, R>(isa, self.0, self.1, self.2, self.3);
            }
        }
        let Self { token, rows, lhs, mut sink } = self;
        let rows: &[T::Block] = cast_blocks(rows).unwrap_or(&[]);
        for (first, count) in panels(lhs.m(), direct::MOST_ROWS) {
            match count {
                4 => token.run(Op::<T, 4>(rows, lhs, first, &mut sink)),
                2 => token.run(Op::<T, 2>(rows, lhs, first, &mut sink)),
                _ => token.run(Op::<T, 1>(rows, lhs, first, &mut sink)),
            }
        }
    }
}

/// Many rows: some columns are expanded and used for all of them.
pub(super) struct Expanded<'a> {
    pub(super) token: Token,
    pub(super) rows: &'a [u8],
    pub(super) lhs: LhsRef<'a>,
    pub(super) panels: &'a Panels,
    pub(super) buffers: &'a mut Buffers,
    pub(super) sink: Sink<'a>,
}

impl FormatOp for Expanded<'_> {
    type Output = ();

    fn flat<B: Flat>(mut self) {
        let (token, lhs, panels) = (self.token, self.lhs, self.panels);
        if token.words() {
            return self.batches::<FlatWordFormat<B>>(|w, column, sink| match (B::HALVES, B::MIN) {
                (true, _) => {
                    tiles::<FlatWordTiles<true, false>>(token, &[0; 16], w, lhs, panels, column, sink);
                }
                (_, true) => {
                    tiles::<FlatWordTiles<false, true>>(token, &[0; 16], w, lhs, panels, column, sink);
                }
                _ => tiles::<FlatWordTiles<false, false>>(token, &[0; 16], w, lhs, panels, column, sink),
            });
        }
        self.batches::<FlatFormat<B>>(|w, column, sink| match (B::HALVES, B::MIN) {
            (true, _) => {
                tiles::<FlatTiles<FlatBytes<true, false>>>(token, &[0; 16], w, lhs, panels, column, sink);
            }
            (_, true) => {
                tiles::<FlatTiles<FlatBytes<false, true>>>(token, &[0; 16], w, lhs, panels, column, sink);
            }
            _ => tiles::<FlatTiles<FlatBytes<false, false>>>(token, &[0; 16], w, lhs, panels, column, sink),
        });
    }

    fn superblock<B: Super>(mut self) {
        let (token, lhs, panels) = (self.token, self.lhs, self.panels);
        if token.words() {
            return self.batches::<WordFormat<B>>(|w, column, sink| match B::MINS {
                true => tiles::<WordTiles<true>>(token, &[0; 16], w, lhs, panels, column, sink),
                false => tiles::<WordTiles<false>>(token, &[0; 16], w, lhs, panels, column, sink),
            });
        }
        self.batches::<SuperFormat<B>>(|w, column, sink| match B::MINS {
            true => tiles::<SuperTiles<SuperBytes<true>>>(token, &[0; 16], w, lhs, panels, column, sink),
            false => tiles::<SuperTiles<SuperBytes<false>>>(token, &[0; 16], w, lhs, panels, column, sink),
        });
    }
}

impl Expanded<'_> {
    /// Expands as many columns as fit into a batch, lets `tiles` use them, and so on.
    fn batches<T: Expand>(&mut self, tiles: impl Fn(&[u8], usize, &mut Sink<'_>)) {
        struct Op<'a, T: Expand>([&'a [T::Block]; 8], usize, &'a mut [u8]);
        impl<T: Expand> KernelOp for Op<'_, T> {
            type Output = ();
            #[inline(always)]
            fn run<I: Isa>(self, isa: I) {
                T::expand(isa, self.0, self.1, self.2);
            }
        }
        let (per_row, cols) = (self.lhs.k / T::Block::LEN, self.token.cols());
        let (unit, units) = (T::UNIT, self.lhs.k / T::WEIGHTS);
        let group = unit * units * cols;
        let groups = (BATCH / group).max(1);
        let rows: &[T::Block] = cast_blocks(self.rows).unwrap_or(&[]);
        for (batch, rows) in rows.chunks(groups * 8 * cols * per_row).enumerate() {
            let columns = rows.len() / per_row;
            let used = columns.div_ceil(8 * cols) * group;
            self.buffers.bytes.resize(self.buffers.bytes.len().max(used), 0);
            let bytes = &mut self.buffers.bytes[..used];
            for first in (0..columns).step_by(8) {
                let (g, x) = (first / (8 * cols), first / 8 % cols);
                let out = &mut bytes[g * group + x * unit..(g + 1) * group];
                self.token.run(Op::<T>(eight(rows, first, per_row), unit * cols, out));
            }
            tiles(bytes, batch * groups * 8 * cols, &mut self.sink);
        }
    }
}

/// What differs between formats of short blocks and of super-blocks, as they stand in the file.
trait Unpacked {
    type Block: Block;
    /// Multiplies `R` rows from row `first` on.
    fn few<I: Isa, const R: usize>(
        isa: I,
        rows: &[Self::Block],
        lhs: LhsRef<'_>,
        first: usize,
        sink: &mut Sink<'_>,
    );
}

struct FlatFormat<B>(PhantomData<B>);
struct SuperFormat<B>(PhantomData<B>);
struct FlatWordFormat<B>(PhantomData<B>);
struct WordFormat<B>(PhantomData<B>);

impl<B: Flat> Unpacked for FlatFormat<B> {
    type Block = B;

    #[inline(always)]
    fn few<I: Isa, const R: usize>(isa: I, rows: &[B], lhs: LhsRef<'_>, first: usize, sink: &mut Sink<'_>) {
        direct::flat::<I, B, R>(isa, rows, lhs, first, sink);
    }
}

impl<B: Super> Unpacked for SuperFormat<B> {
    type Block = B;

    #[inline(always)]
    fn few<I: Isa, const R: usize>(isa: I, rows: &[B], lhs: LhsRef<'_>, first: usize, sink: &mut Sink<'_>) {
        direct::superblock::<I, B, R>(isa, rows, lhs, first, sink);
    }
}

/// What differs between units that columns are expanded into.
trait Expand {
    type Block: Block;
    /// Weights of a unit.
    const WEIGHTS: usize;
    /// Bytes of an expanded unit of eight columns.
    const UNIT: usize;
    /// Expands eight columns into units that stand `step` bytes apart.
    fn expand<I: Isa>(isa: I, columns: [&[Self::Block]; 8], step: usize, out: &mut [u8]);
}

impl<B: Flat> Expand for FlatFormat<B> {
    type Block = B;
    const WEIGHTS: usize = 32;
    const UNIT: usize = FlatBytes::<false, false>::UNIT;

    #[inline(always)]
    fn expand<I: Isa>(isa: I, columns: [&[B]; 8], step: usize, out: &mut [u8]) {
        expand_flat(isa, columns, step, out);
    }
}

impl<B: Super> Expand for SuperFormat<B> {
    type Block = B;
    const WEIGHTS: usize = 256;
    const UNIT: usize = SuperBytes::<false>::UNIT;

    #[inline(always)]
    fn expand<I: Isa>(isa: I, columns: [&[B]; 8], step: usize, out: &mut [u8]) {
        expand_super(isa, columns, step, out);
    }
}

impl<B: Flat> Expand for FlatWordFormat<B> {
    type Block = B;
    const WEIGHTS: usize = 32;
    const UNIT: usize = word::FLAT_UNIT;

    #[inline(always)]
    fn expand<I: Isa>(isa: I, columns: [&[B]; 8], step: usize, out: &mut [u8]) {
        word::expand_flat(isa, columns, step, out);
    }
}

impl<B: Super> Expand for WordFormat<B> {
    type Block = B;
    const WEIGHTS: usize = 256;
    const UNIT: usize = word::UNIT;

    #[inline(always)]
    fn expand<I: Isa>(isa: I, columns: [&[B]; 8], step: usize, out: &mut [u8]) {
        word::expand(isa, columns, step, out);
    }
}

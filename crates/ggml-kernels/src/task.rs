//! What one task does with its columns: which kernel, on what.

mod plain;
mod tiled;

use std::marker::PhantomData;
use std::ops::Range;

use ggml_blocks::GgmlType;

use self::plain::{Direct, Expanded};
use self::tiled::{FlatTiles, FlatWordTiles, SuperTiles, WordTiles, tiles};
use crate::isa::{Isa, KernelOp, Token};
use crate::kernel::{Sink, direct, float};
use crate::layout::pack::{FlatPack, LayoutOp, SuperPack};
use crate::layout::{AHEAD, FlatLayout, SuperLayout, fetch, word};
use crate::lhs::LhsRef;
use crate::packed::Packed;
use crate::panel::{Panels, Shape};
use crate::rhs::Rhs;
use crate::scratch::Buffers;
use crate::unpack::with_format;

/// The right-hand side of a product.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Weights<'a> {
    /// As in the file.
    Rhs(&'a Rhs<'a>),
    /// The planes of a set, as in the file.
    Planes(&'a [Rhs<'a>]),
    /// As its kernels read it.
    Packed(&'a Packed),
}

impl Weights<'_> {
    /// How many columns the output has.
    pub(crate) fn n(self) -> usize {
        match self {
            Self::Rhs(w) => w.n(),
            Self::Planes(planes) => planes.first().map_or(0, Rhs::n),
            Self::Packed(w) => w.n(),
        }
    }
}

/// Expanded weights that a task keeps at hand: half of an L2 cache.
const BATCH: usize = 256 << 10;

/// Interleaves the activations, if tiles are to read them. Whether they are.
pub(crate) fn prepare(token: Token, w: Weights<'_>, lhs: LhsRef<'_>, panels: &mut Panels) -> bool {
    struct Op(Token, usize);
    impl LayoutOp for Op {
        type Output = Shape;
        fn flat<P: FlatPack>(self) -> Shape {
            match as_words(P::Layout::WORD_ROWS, self.0, self.1) {
                true => shape(self.0, None, 0, 0),
                false => shape(self.0, Some(P::Layout::MAX), P::Layout::OFFSET, 0),
            }
        }
        fn superblock<P: SuperPack>(self) -> Shape {
            match as_words(P::Layout::WORD_ROWS, self.0, self.1) {
                true => shape(self.0, None, 0, 16),
                false => shape(self.0, Some(P::Layout::MAX), P::Layout::OFFSET, P::Layout::SUBS),
            }
        }
        fn planes<P: SuperPack, const K: usize>(self) -> Shape {
            shape(self.0, Some(P::Layout::MAX), P::Layout::OFFSET, P::Layout::SUBS)
        }
    }
    let shape = match w {
        Weights::Rhs(_) | Weights::Planes(_) if lhs.m() <= direct::MOST_ROWS => None,
        Weights::Rhs(_) | Weights::Planes(_) => {
            let subs = if lhs.ty == GgmlType::Q8_K { 16 } else { 0 };
            let (max, offset) = if token.words() { (None, 0) } else { (Some(255), 128) };
            Some(shape(token, max, offset, subs))
        }
        Weights::Packed(w) => w.form().with(Op(token, lhs.m())),
    };
    if let Some(shape) = shape {
        panels.fill(lhs, shape);
    }
    shape.is_some()
}

/// Whether packed weights are unpacked to words, some columns at a time, before they are multiplied.
fn as_words(fewest: usize, token: Token, m: usize) -> bool {
    token.words() && m >= fewest
}

/// How the panels of a layout look on a level: for levels up to `max`, or for words.
pub(crate) fn shape(token: Token, max: Option<u32>, offset: i32, subs: usize) -> Shape {
    Shape { rows: token.rows(), quad: token.quad(max), offset, subs }
}

/// Multiplies with the columns of a range.
#[expect(clippy::too_many_arguments, reason = "a task is told all that its call was")]
pub(crate) fn run_quantized(
    token: Token,
    w: Weights<'_>,
    lhs: LhsRef<'_>,
    panels: &Panels,
    tiled: bool,
    columns: Range<usize>,
    buffers: &mut Buffers,
    sink: Sink<'_>,
) {
    match w {
        Weights::Packed(w) => {
            w.form().with(Tiles { token, w: w.groups(columns), lhs, panels, buffers, sink });
        }
        Weights::Planes(planes) => {
            for (p, w) in planes.iter().enumerate() {
                let sink = Sink { y: &mut *sink.y, add: p > 0, ..sink };
                run_quantized(token, Weights::Rhs(w), lhs, panels, tiled, columns.clone(), buffers, sink);
            }
        }
        Weights::Rhs(w) if tiled => {
            with_format(w.ty(), Expanded { token, rows: w.rows(columns), lhs, panels, buffers, sink });
        }
        Weights::Rhs(w) => {
            with_format(w.ty(), Direct { token, rows: w.rows(columns), lhs, sink });
        }
    }
}

/// Packed weights: some groups at a time, so that they stay in the cache for all rows.
struct Tiles<'a> {
    token: Token,
    w: &'a [u8],
    lhs: LhsRef<'a>,
    panels: &'a Panels,
    buffers: &'a mut Buffers,
    sink: Sink<'a>,
}

impl LayoutOp for Tiles<'_> {
    type Output = ();

    fn flat<P: FlatPack>(self) {
        let Tiles { token, lhs, panels, .. } = self;
        let table = P::table();
        if as_words(P::Layout::WORD_ROWS, token, lhs.m()) {
            return self.unpacked::<FlatWords<P::Layout>>(&table, |w, column, sink| {
                match (P::Layout::HALVES, P::Layout::MIN) {
                    (true, _) => {
                        tiles::<FlatWordTiles<true, false>>(token, &table, w, lhs, panels, column, sink);
                    }
                    (_, true) => {
                        tiles::<FlatWordTiles<false, true>>(token, &table, w, lhs, panels, column, sink);
                    }
                    _ => tiles::<FlatWordTiles<false, false>>(token, &table, w, lhs, panels, column, sink),
                }
            });
        }
        self.batches(P::Layout::UNIT * (lhs.k / 32), |w, column, sink| {
            tiles::<FlatTiles<P::Layout>>(token, &table, w, lhs, panels, column, sink);
        });
    }

    fn superblock<P: SuperPack>(self) {
        let Tiles { token, lhs, panels, .. } = self;
        let table = P::table();
        if as_words(P::Layout::WORD_ROWS, token, lhs.m()) {
            return self.unpacked::<SuperWords<P::Layout>>(&table, |w, column, sink| match P::Layout::MINS {
                true => tiles::<WordTiles<true>>(token, &table, w, lhs, panels, column, sink),
                false => tiles::<WordTiles<false>>(token, &table, w, lhs, panels, column, sink),
            });
        }
        self.batches(P::Layout::UNIT * (lhs.k / 256), |w, column, sink| {
            tiles::<SuperTiles<P::Layout>>(token, &table, w, lhs, panels, column, sink);
        });
    }

    fn planes<P: SuperPack, const K: usize>(self) {
        let Tiles { token, lhs, panels, .. } = self;
        self.batches(K * P::Layout::UNIT * (lhs.k / 256), |w, column, sink| {
            tiles::<SuperTiles<P::Layout, K>>(token, &P::table(), w, lhs, panels, column, sink);
        });
    }
}

impl Tiles<'_> {
    /// Lets `tiles` use the groups, whose columns take `column` bytes each eight.
    fn batches(mut self, column: usize, tiles: impl Fn(&[u8], usize, &mut Sink<'_>)) {
        let group = column * self.token.cols();
        let one_panel = self.lhs.m() <= self.token.rows();
        let groups = if one_panel { usize::MAX / group } else { (BATCH / group).max(1) };
        for (batch, w) in self.w.chunks(groups * group).enumerate() {
            tiles(w, batch * groups * 8 * self.token.cols(), &mut self.sink);
        }
    }
}

impl Tiles<'_> {
    /// Unpacks as many groups as fit into a batch, lets `tiles` use them, and so on.
    fn unpacked<T: Words>(mut self, table: &[i8; 16], tiles: impl Fn(&[u8], usize, &mut Sink<'_>)) {
        struct Op<'a, T>(&'a [i8; 16], &'a [u8], &'a mut [u8], PhantomData<T>);
        impl<T: Words> KernelOp for Op<'_, T> {
            type Output = ();
            #[inline(always)]
            fn run<I: Isa>(self, isa: I) {
                let Self(table, all, out, _) = self;
                let table = isa.twice(table);
                for (i, (w, out)) in
                    all.chunks_exact(T::PACKED).zip(out.chunks_exact_mut(T::UNIT)).enumerate()
                {
                    fetch(isa, all, i * T::PACKED + AHEAD, T::PACKED);
                    T::unpack(isa, table, w, out);
                }
            }
        }
        let units = self.lhs.k / T::WEIGHTS * self.token.cols();
        let groups = (BATCH / (units * T::UNIT)).max(1);
        for (batch, w) in self.w.chunks(groups * units * T::PACKED).enumerate() {
            let len = w.len() / T::PACKED * T::UNIT;
            self.buffers.bytes.resize(self.buffers.bytes.len().max(len), 0);
            let words = &mut self.buffers.bytes[..len];
            self.token.run(Op::<T>(table, w, words, PhantomData));
            tiles(words, batch * groups * 8 * self.token.cols(), &mut self.sink);
        }
    }
}

/// What differs between packed units of 32 weights and of super-blocks that become words.
trait Words {
    /// Weights of a unit.
    const WEIGHTS: usize;
    /// Bytes of a packed unit of eight columns.
    const PACKED: usize;
    /// Bytes of its words.
    const UNIT: usize;
    /// Unpacks a unit.
    fn unpack<I: Isa>(isa: I, table: I::B, w: &[u8], out: &mut [u8]);
}

struct FlatWords<L>(PhantomData<L>);
struct SuperWords<L>(PhantomData<L>);

impl<L: FlatLayout> Words for FlatWords<L> {
    const WEIGHTS: usize = 32;
    const PACKED: usize = L::UNIT;
    const UNIT: usize = word::FLAT_UNIT;

    #[inline(always)]
    fn unpack<I: Isa>(isa: I, table: I::B, w: &[u8], out: &mut [u8]) {
        word::unpack_flat::<I, L>(isa, table, w, out);
    }
}

impl<L: SuperLayout> Words for SuperWords<L> {
    const WEIGHTS: usize = 256;
    const PACKED: usize = L::UNIT;
    const UNIT: usize = word::UNIT;

    #[inline(always)]
    fn unpack<I: Isa>(isa: I, table: I::B, w: &[u8], out: &mut [u8]) {
        word::unpack::<I, L>(isa, table, w, out);
    }
}

/// Multiplies plain floats with the columns of a range.
pub(crate) fn run_float(
    token: Token,
    w: &Rhs<'_>,
    x: &[f32],
    columns: Range<usize>,
    buffers: &mut Buffers,
    mut sink: Sink<'_>,
) {
    struct Op<'a, 'b>(&'a [f32], &'a [f32], usize, usize, &'a mut Sink<'b>);
    impl KernelOp for Op<'_, '_> {
        type Output = ();
        #[inline(always)]
        fn run<I: Isa>(self, isa: I) {
            float::columns(isa, self.0, self.1, self.2, self.3, self.4);
        }
    }
    let (k, first) = (w.k(), columns.start);
    for start in columns.clone().step_by(float::COLUMNS) {
        let end = (start + float::COLUMNS).min(columns.end);
        buffers.floats.resize((end - start) * k, 0.0);
        // The lengths are those of the rows.
        let _fits = w.format().decode_rows(w.rows(start..end), k, &mut buffers.floats);
        token.run(Op(x, &buffers.floats, k, start - first, &mut sink));
    }
}

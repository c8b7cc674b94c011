//! What one task does with its columns: which kernel, on what.

use std::marker::PhantomData;
use std::ops::Range;

use ggml_blocks::{Block, GgmlType, cast_blocks};

use crate::isa::{Isa, KernelOp, Token};
use crate::kernel::{Sink, direct, flat, float, planes, super_block};
use crate::layout::byte::{FlatBytes, SuperBytes, expand_flat, expand_super};
use crate::layout::pack::{FlatPack, LayoutOp, SuperPack};
use crate::layout::{FlatLayout, SuperLayout};
use crate::lhs::LhsRef;
use crate::packed::Packed;
use crate::panel::{FlatPanel, Panels, Shape, SuperPanel, panels};
use crate::rhs::Rhs;
use crate::scratch::Buffers;
use crate::unpack::{Flat, FormatOp, Super, with_format};

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
    struct Op(Token);
    impl LayoutOp for Op {
        type Output = Shape;
        fn flat<L: FlatPack>(self) -> Shape {
            shape(self.0, L::MAX, L::OFFSET, 0)
        }
        fn superblock<L: SuperPack>(self) -> Shape {
            shape(self.0, L::MAX, L::OFFSET, L::SUBS)
        }
    }
    let shape = match w {
        Weights::Rhs(_) | Weights::Planes(_) if lhs.m() <= direct::ROWS => None,
        Weights::Rhs(_) | Weights::Planes(_) => {
            Some(shape(token, 255, 128, if lhs.ty == GgmlType::Q8_K { 16 } else { 0 }))
        }
        Weights::Packed(w) => w.form().with(Op(token)),
    };
    if let Some(shape) = shape {
        panels.fill(lhs, shape);
    }
    shape.is_some()
}

/// How the panels of a layout look on a level.
pub(crate) fn shape(token: Token, max: u32, offset: i32, subs: usize) -> Shape {
    struct Op(u32);
    impl KernelOp for Op {
        type Output = (usize, usize);
        #[inline(always)]
        fn run<I: Isa>(self, _: I) -> (usize, usize) {
            (I::ROWS, quad::<I>(self.0))
        }
    }
    let (rows, quad) = token.run(Op(max));
    Shape { rows, quad, offset, subs }
}

/// Bytes per quad in the panels for levels up to `max`.
#[inline(always)]
fn quad<I: Isa>(max: u32) -> usize {
    if I::room(max) == 0 { I::WIDE_BYTES } else { 4 }
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
            w.form().with(Tiles { token, w: w.groups(columns), lhs, panels, sink });
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
    sink: Sink<'a>,
}

impl LayoutOp for Tiles<'_> {
    type Output = ();

    fn flat<L: FlatPack>(self) {
        let Tiles { token, lhs, panels, .. } = self;
        self.batches(L::UNIT * (lhs.k / 32), |w, column, sink| {
            tiles::<FlatTiles<L>>(token, w, lhs, panels, column, sink);
        });
    }

    fn superblock<L: SuperPack>(self) {
        let Tiles { token, lhs, panels, .. } = self;
        self.batches(L::UNIT * (lhs.k / 256), |w, column, sink| {
            tiles::<SuperTiles<L>>(token, w, lhs, panels, column, sink);
        });
    }

    fn planes<L: SuperPack, const K: usize>(self) {
        let Tiles { token, lhs, panels, .. } = self;
        self.batches(K * L::UNIT * (lhs.k / 256), |w, column, sink| {
            tiles::<PlaneTiles<L, K>>(token, w, lhs, panels, column, sink);
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

/// Few rows: blocks are taken apart on the way.
struct Direct<'a> {
    token: Token,
    rows: &'a [u8],
    lhs: LhsRef<'a>,
    sink: Sink<'a>,
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
        for (first, count) in panels(lhs.m(), 2) {
            match count {
                2 => token.plain().run(Op::<T, 2>(rows, lhs, first, &mut sink)),
                _ => token.plain().run(Op::<T, 1>(rows, lhs, first, &mut sink)),
            }
        }
    }
}

/// Many rows: some columns are expanded and used for all of them.
struct Expanded<'a> {
    token: Token,
    rows: &'a [u8],
    lhs: LhsRef<'a>,
    panels: &'a Panels,
    buffers: &'a mut Buffers,
    sink: Sink<'a>,
}

impl FormatOp for Expanded<'_> {
    type Output = ();

    fn flat<B: Flat>(mut self) {
        let (token, lhs, panels) = (self.token, self.lhs, self.panels);
        self.batches::<FlatFormat<B>>(|w, column, sink| match (B::HALVES, B::MIN) {
            (true, _) => tiles::<FlatTiles<FlatBytes<true, false>>>(token, w, lhs, panels, column, sink),
            (_, true) => tiles::<FlatTiles<FlatBytes<false, true>>>(token, w, lhs, panels, column, sink),
            _ => tiles::<FlatTiles<FlatBytes<false, false>>>(token, w, lhs, panels, column, sink),
        });
    }

    fn superblock<B: Super>(mut self) {
        let (token, lhs, panels) = (self.token, self.lhs, self.panels);
        self.batches::<SuperFormat<B>>(|w, column, sink| match B::MINS {
            true => tiles::<SuperTiles<SuperBytes<true>>>(token, w, lhs, panels, column, sink),
            false => tiles::<SuperTiles<SuperBytes<false>>>(token, w, lhs, panels, column, sink),
        });
    }
}

impl Expanded<'_> {
    /// Expands as many columns as fit into a batch, lets `tiles` use them, and so on.
    fn batches<T: Unpacked>(&mut self, tiles: impl Fn(&[u8], usize, &mut Sink<'_>)) {
        struct Op<'a, T: Unpacked>(&'a [T::Block], usize, usize, &'a mut [u8]);
        impl<T: Unpacked> KernelOp for Op<'_, T> {
            type Output = ();
            #[inline(always)]
            fn run<I: Isa>(self, isa: I) {
                T::expand(isa, self.0, self.1, self.2, self.3);
            }
        }
        let (per_row, cols) = (self.lhs.k / T::Block::LEN, self.token.cols());
        let (unit, units) = (T::EXPANDED, self.lhs.k / T::WEIGHTS);
        let group = unit * units * cols;
        let groups = (BATCH / group).max(1);
        let rows: &[T::Block] = cast_blocks(self.rows).unwrap_or(&[]);
        for (batch, rows) in rows.chunks(groups * 8 * cols * per_row).enumerate() {
            let columns = rows.len() / per_row;
            let used = columns.div_ceil(8 * cols) * group;
            // Lanes that no column fills keep what they have: their results go nowhere.
            self.buffers.bytes.resize(self.buffers.bytes.len().max(used), 0);
            let bytes = &mut self.buffers.bytes[..used];
            for (c, row) in rows.chunks_exact(per_row).enumerate() {
                let (g, x, lane) = (c / (8 * cols), c / 8 % cols, c % 8);
                let start = g * group + x * unit;
                let out = &mut bytes[start..(g + 1) * group];
                self.token.plain().run(Op::<T>(row, lane, unit * cols, out));
            }
            tiles(bytes, batch * groups * 8 * cols, &mut self.sink);
        }
    }
}

/// What differs between formats of short blocks and of super-blocks, as they stand in the file.
trait Unpacked {
    type Block: Block;
    /// Weights of a unit.
    const WEIGHTS: usize;
    /// Bytes of an expanded unit of eight columns.
    const EXPANDED: usize;
    /// Multiplies `R` rows from row `first` on.
    fn few<I: Isa, const R: usize>(
        isa: I,
        rows: &[Self::Block],
        lhs: LhsRef<'_>,
        first: usize,
        sink: &mut Sink<'_>,
    );
    /// Expands a column into lane `lane` of units that stand `step` bytes apart.
    fn expand<I: Isa>(isa: I, row: &[Self::Block], lane: usize, step: usize, out: &mut [u8]);
}

struct FlatFormat<B>(PhantomData<B>);
struct SuperFormat<B>(PhantomData<B>);

impl<B: Flat> Unpacked for FlatFormat<B> {
    type Block = B;
    const WEIGHTS: usize = 32;
    const EXPANDED: usize = FlatBytes::<false, false>::UNIT;

    #[inline(always)]
    fn few<I: Isa, const R: usize>(isa: I, rows: &[B], lhs: LhsRef<'_>, first: usize, sink: &mut Sink<'_>) {
        direct::flat::<I, B, R>(isa, rows, lhs, first, sink);
    }

    #[inline(always)]
    fn expand<I: Isa>(isa: I, row: &[B], lane: usize, step: usize, out: &mut [u8]) {
        expand_flat(isa, row, lane, step, out);
    }
}

impl<B: Super> Unpacked for SuperFormat<B> {
    type Block = B;
    const WEIGHTS: usize = 256;
    const EXPANDED: usize = SuperBytes::<false>::UNIT;

    #[inline(always)]
    fn few<I: Isa, const R: usize>(isa: I, rows: &[B], lhs: LhsRef<'_>, first: usize, sink: &mut Sink<'_>) {
        direct::superblock::<I, B, R>(isa, rows, lhs, first, sink);
    }

    #[inline(always)]
    fn expand<I: Isa>(isa: I, row: &[B], lane: usize, step: usize, out: &mut [u8]) {
        expand_super(isa, row, lane, step, out);
    }
}

/// What differs between tiles of 32-weight units and of super-blocks.
trait Tiled {
    /// The largest level.
    const MAX: u32;
    /// Bytes of a unit of eight columns.
    const UNIT: usize;
    /// Weights of a unit.
    const WEIGHTS: usize;
    /// What a tile reads of the activations.
    type Panel<'a, const R: usize, const Q: usize>: Copy;
    /// The panel of `R` rows from row `first` on.
    fn panel<const R: usize, const Q: usize>(a: &Panels, first: usize, units: usize)
    -> Self::Panel<'_, R, Q>;
    /// The product of the panel with `8 * C` columns.
    fn tile<I: Isa, const R: usize, const C: usize, const Q: usize>(
        isa: I,
        w: &[u8],
        a: Self::Panel<'_, R, Q>,
    ) -> [[I::F; C]; R];
}

struct FlatTiles<L>(PhantomData<L>);
struct SuperTiles<L>(PhantomData<L>);
struct PlaneTiles<L, const K: usize>(PhantomData<L>);

impl<L: FlatLayout> Tiled for FlatTiles<L> {
    const MAX: u32 = L::MAX;
    const UNIT: usize = L::UNIT;
    const WEIGHTS: usize = 32;
    type Panel<'a, const R: usize, const Q: usize> = FlatPanel<'a, R, Q>;

    #[inline(always)]
    fn panel<const R: usize, const Q: usize>(a: &Panels, first: usize, units: usize) -> FlatPanel<'_, R, Q> {
        a.flat_panel(first, units)
    }

    #[inline(always)]
    fn tile<I: Isa, const R: usize, const C: usize, const Q: usize>(
        isa: I,
        w: &[u8],
        a: FlatPanel<'_, R, Q>,
    ) -> [[I::F; C]; R] {
        flat::tile::<I, L, R, C, Q>(isa, w, a)
    }
}

impl<L: SuperLayout> Tiled for SuperTiles<L> {
    const MAX: u32 = L::MAX;
    const UNIT: usize = L::UNIT;
    const WEIGHTS: usize = 256;
    type Panel<'a, const R: usize, const Q: usize> = SuperPanel<'a, R, Q>;

    #[inline(always)]
    fn panel<const R: usize, const Q: usize>(a: &Panels, first: usize, units: usize) -> SuperPanel<'_, R, Q> {
        a.super_panel(first, units, L::SUBS)
    }

    #[inline(always)]
    fn tile<I: Isa, const R: usize, const C: usize, const Q: usize>(
        isa: I,
        w: &[u8],
        a: SuperPanel<'_, R, Q>,
    ) -> [[I::F; C]; R] {
        if L::SCALED {
            super_block::tile::<I, L, R, C, Q>(isa, w, a)
        } else {
            planes::tile::<I, L, 1, R, C, Q>(isa, w, a)
        }
    }
}

impl<L: SuperLayout, const K: usize> Tiled for PlaneTiles<L, K> {
    const MAX: u32 = L::MAX;
    const UNIT: usize = K * L::UNIT;
    const WEIGHTS: usize = 256;
    type Panel<'a, const R: usize, const Q: usize> = SuperPanel<'a, R, Q>;

    #[inline(always)]
    fn panel<const R: usize, const Q: usize>(a: &Panels, first: usize, units: usize) -> SuperPanel<'_, R, Q> {
        a.super_panel(first, units, L::SUBS)
    }

    #[inline(always)]
    fn tile<I: Isa, const R: usize, const C: usize, const Q: usize>(
        isa: I,
        w: &[u8],
        a: SuperPanel<'_, R, Q>,
    ) -> [[I::F; C]; R] {
        planes::tile::<I, L, K, R, C, Q>(isa, w, a)
    }
}

/// All rows times the columns of a buffer, panel by panel.
fn tiles<T: Tiled>(token: Token, w: &[u8], lhs: LhsRef<'_>, a: &Panels, column: usize, sink: &mut Sink<'_>) {
    struct Op<'a, 'b, T, const R: usize>(&'a [u8], &'a Panels, [usize; 3], &'a mut Sink<'b>, PhantomData<T>);
    impl<T: Tiled, const R: usize> KernelOp for Op<'_, '_, T, R> {
        type Output = ();
        #[inline(always)]
        fn run<I: Isa>(self, isa: I) {
            if R > I::ROWS {
                return;
            }
            match (I::COLS, quad::<I>(T::MAX)) {
                (1, 4) => self.tiles::<I, 1, 4>(isa),
                (2, 4) => self.tiles::<I, 2, 4>(isa),
                (4, 4) => self.tiles::<I, 4, 4>(isa),
                (2, _) => self.tiles::<I, 2, 8>(isa),
                _ => self.tiles::<I, 1, 8>(isa),
            }
        }
    }
    impl<T: Tiled, const R: usize> Op<'_, '_, T, R> {
        #[inline(always)]
        fn tiles<I: Isa, const C: usize, const Q: usize>(self, isa: I) {
            let Self(w, a, [first, units, column], sink, _) = self;
            let panel = T::panel::<R, Q>(a, first, units);
            for (g, w) in w.chunks_exact(T::UNIT * units * C).enumerate() {
                let tile = T::tile::<I, R, C, Q>(isa, w, panel);
                flat::put(isa, &tile, first, column + g * 8 * C, sink);
            }
        }
    }
    let units = lhs.k / T::WEIGHTS;
    for (first, rows) in panels(lhs.m(), token.rows()) {
        let place = [first, units, column];
        match rows {
            4 => token.run(Op::<T, 4>(w, a, place, sink, PhantomData)),
            2 => token.run(Op::<T, 2>(w, a, place, sink, PhantomData)),
            _ => token.run(Op::<T, 1>(w, a, place, sink, PhantomData)),
        }
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
        token.plain().run(Op(x, &buffers.floats, k, start - first, &mut sink));
    }
}

//! Tiles of any kind, over all panels of the activations.

use std::marker::PhantomData;

use crate::isa::{Isa, KernelOp, Token, quad};
use crate::kernel::{Sink, flat, planes, super_block, words};
use crate::layout::{AHEAD, FlatLayout, SuperLayout, word};
use crate::lhs::LhsRef;
use crate::panel::{FlatPanel, Panels, SuperPanel, panels};

/// What differs between tiles of 32-weight units and of super-blocks.
pub(super) trait Tiled {
    /// The largest level; none for words.
    const MAX: Option<u32>;
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
        table: &[i8; 16],
        w: &[u8],
        ahead: &[u8],
        a: Self::Panel<'_, R, Q>,
    ) -> [[I::F; C]; R];
}

pub(super) struct FlatTiles<L>(PhantomData<L>);
/// Of `K` planes whose units alternate, where there are no scales of sub-blocks.
pub(super) struct SuperTiles<L, const K: usize = 1>(PhantomData<L>);
pub(super) struct FlatWordTiles<const HALVES: bool, const MIN: bool>;
pub(super) struct WordTiles<const MINS: bool>;

impl<L: FlatLayout> Tiled for FlatTiles<L> {
    const MAX: Option<u32> = Some(L::MAX);
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
        table: &[i8; 16],
        w: &[u8],
        ahead: &[u8],
        a: FlatPanel<'_, R, Q>,
    ) -> [[I::F; C]; R] {
        flat::tile::<I, L, R, C, Q>(isa, table, w, ahead, a)
    }
}

impl<L: SuperLayout, const K: usize> Tiled for SuperTiles<L, K> {
    const MAX: Option<u32> = Some(L::MAX);
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
        table: &[i8; 16],
        w: &[u8],
        ahead: &[u8],
        a: SuperPanel<'_, R, Q>,
    ) -> [[I::F; C]; R] {
        if L::SCALED {
            super_block::tile::<I, L, R, C, Q>(isa, table, w, ahead, a)
        } else {
            planes::tile::<I, L, K, R, C, Q>(isa, table, w, ahead, a)
        }
    }
}

impl<const HALVES: bool, const MIN: bool> Tiled for FlatWordTiles<HALVES, MIN> {
    const MAX: Option<u32> = None;
    const UNIT: usize = word::FLAT_UNIT;
    const WEIGHTS: usize = 32;
    type Panel<'a, const R: usize, const Q: usize> = FlatPanel<'a, R, Q>;

    #[inline(always)]
    fn panel<const R: usize, const Q: usize>(a: &Panels, first: usize, units: usize) -> FlatPanel<'_, R, Q> {
        a.flat_panel(first, units)
    }

    #[inline(always)]
    fn tile<I: Isa, const R: usize, const C: usize, const Q: usize>(
        isa: I,
        _: &[i8; 16],
        w: &[u8],
        _: &[u8],
        a: FlatPanel<'_, R, Q>,
    ) -> [[I::F; C]; R] {
        words::flat::<I, HALVES, MIN, R, C, Q>(isa, w, a)
    }
}

impl<const MINS: bool> Tiled for WordTiles<MINS> {
    const MAX: Option<u32> = None;
    const UNIT: usize = word::UNIT;
    const WEIGHTS: usize = 256;
    type Panel<'a, const R: usize, const Q: usize> = SuperPanel<'a, R, Q>;

    #[inline(always)]
    fn panel<const R: usize, const Q: usize>(a: &Panels, first: usize, units: usize) -> SuperPanel<'_, R, Q> {
        a.super_panel(first, units, 16)
    }

    #[inline(always)]
    fn tile<I: Isa, const R: usize, const C: usize, const Q: usize>(
        isa: I,
        _: &[i8; 16],
        w: &[u8],
        _: &[u8],
        a: SuperPanel<'_, R, Q>,
    ) -> [[I::F; C]; R] {
        words::tile::<I, MINS, R, C, Q>(isa, w, a)
    }
}

/// All rows times the columns of a buffer, panel by panel. `table` is what levels are looked up in.
pub(super) fn tiles<T: Tiled>(
    token: Token,
    table: &[i8; 16],
    w: &[u8],
    lhs: LhsRef<'_>,
    a: &Panels,
    column: usize,
    sink: &mut Sink<'_>,
) {
    struct Op<'a, 'b, T, const R: usize>(
        &'a [u8],
        &'a Panels,
        [usize; 3],
        &'a [i8; 16],
        &'a mut Sink<'b>,
        PhantomData<T>,
    );
    impl<T: Tiled, const R: usize> KernelOp for Op<'_, '_, T, R> {
        type Output = ();
        #[inline(always)]
        fn run<I: Isa>(self, isa: I) {
            if R > I::ROWS || (T::MAX.is_none() && !I::WORDS) {
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
            let Self(w, a, [first, units, column], table, sink, _) = self;
            let panel = T::panel::<R, Q>(a, first, units);
            let group = T::UNIT * units * C;
            for (g, columns) in w.chunks_exact(group).enumerate() {
                // The first panel brings the weights into the cache for all others.
                let ahead = if first == 0 { w.get(g * group + AHEAD..).unwrap_or(&[]) } else { &[] };
                let tile = T::tile::<I, R, C, Q>(isa, table, columns, ahead, panel);
                flat::put(isa, &tile, first, column + g * 8 * C, sink);
            }
        }
    }
    let units = lhs.k / T::WEIGHTS;
    for (first, rows) in panels(lhs.m(), token.rows()) {
        let place = [first, units, column];
        match rows {
            4 => token.tile(Op::<T, 4>(w, a, place, table, sink, PhantomData)),
            2 => token.tile(Op::<T, 2>(w, a, place, table, sink, PhantomData)),
            _ => token.tile(Op::<T, 1>(w, a, place, table, sink, PhantomData)),
        }
    }
}

//! The sums of products of levels with quads, which all tiles of levels are made of.

use std::marker::PhantomData;

use crate::isa::Isa;
use crate::layout::{FlatLayout, SuperLayout, at};

/// Some quads of levels, of each of a tile's column vectors.
pub(super) trait Levels<I: Isa>: Copy {
    /// Quad `i` of column vector `x`.
    fn quad(self, isa: I, x: usize, i: usize) -> I::B;
}

/// Quads of units of 32 weights, from quad `first` on.
pub(super) struct FlatLevels<'a, I: Isa, L> {
    pub(super) w: &'a [u8],
    pub(super) table: I::B,
    pub(super) first: usize,
    pub(super) layout: PhantomData<L>,
}

/// Quads of a chunk of units of 256 weights, from quad `first` on.
pub(super) struct ChunkLevels<'a, I: Isa, L> {
    pub(super) w: &'a [u8],
    pub(super) table: I::B,
    pub(super) chunk: usize,
    pub(super) first: usize,
    pub(super) layout: PhantomData<L>,
}

impl<I: Isa, L> Clone for FlatLevels<'_, I, L> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<I: Isa, L> Copy for FlatLevels<'_, I, L> {}

impl<I: Isa, L> Clone for ChunkLevels<'_, I, L> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<I: Isa, L> Copy for ChunkLevels<'_, I, L> {}

impl<I: Isa, L: FlatLayout> Levels<I> for FlatLevels<'_, I, L> {
    #[inline(always)]
    fn quad(self, isa: I, x: usize, i: usize) -> I::B {
        let data = &self.w[x * L::UNIT + L::DATA..(x + 1) * L::UNIT];
        L::level(isa, self.table, data, self.first + i)
    }
}

impl<I: Isa, L: SuperLayout> Levels<I> for ChunkLevels<'_, I, L> {
    #[inline(always)]
    fn quad(self, isa: I, x: usize, i: usize) -> I::B {
        let start = x * L::UNIT + L::DATA + self.chunk * L::CHUNK;
        L::level(isa, self.table, &self.w[start..start + L::CHUNK], self.first + i)
    }
}

/// How many of `len` quads the partial sums take at a time: a power of two.
#[inline(always)]
pub(super) fn step(room: usize, len: usize) -> usize {
    let most = if room < len { room } else { len };
    [8, 4, 2].into_iter().find(|&step| step <= most).unwrap_or(1)
}

/// Adds products of levels for which partial sums have no room.
#[inline(always)]
pub(super) fn wide<I: Isa, V: Levels<I>, const R: usize, const C: usize, const Q: usize>(
    isa: I,
    levels: V,
    quads: &[[[u8; Q]; R]],
    total: &mut [[I::I; C]; R],
) {
    for (i, quad) in quads.iter().enumerate() {
        let mut w = [isa.wide(isa.splat_byte(0)); C];
        for x in 0..C {
            w[x] = isa.wide(levels.quad(isa, x, i));
        }
        for r in 0..R {
            let a = isa.wide_quad(&quad[r]);
            for x in 0..C {
                total[r][x] = isa.dot_wide(total[r][x], w[x], a);
            }
        }
    }
}

/// Adds products to partial sums. They have room for them, and are read through [`sums`].
#[inline(always)]
pub(super) fn add<I: Isa, V: Levels<I>, const R: usize, const C: usize, const Q: usize>(
    isa: I,
    levels: V,
    quads: &[[[u8; Q]; R]],
    partial: &mut [[I::S; C]; R],
) {
    if I::MATRIX && R > 1 {
        // There is room for any number, so quads come four or eight at a time: none is left over.
        for (i, [first, second]) in quads.as_chunks::<2>().0.iter().enumerate() {
            let mut w = [[isa.splat_byte(0); 2]; C];
            for x in 0..C {
                w[x] = isa.join([levels.quad(isa, x, 2 * i), levels.quad(isa, x, 2 * i + 1)]);
            }
            for r in 0..R / 2 {
                let [top, bottom] = [2 * r, 2 * r + 1];
                let a = [
                    [*at(&first[top], 0), *at(&first[bottom], 0)],
                    [*at(&second[top], 0), *at(&second[bottom], 0)],
                ];
                for x in 0..C {
                    let both = isa.dot_matrix([partial[2 * r][x], partial[2 * r + 1][x]], w[x], a);
                    [partial[2 * r][x], partial[2 * r + 1][x]] = both;
                }
            }
        }
        return;
    }
    for (i, quad) in quads.iter().enumerate() {
        let mut w = [isa.splat_byte(0); C];
        for x in 0..C {
            w[x] = levels.quad(isa, x, i);
        }
        for r in 0..R {
            let a = isa.splat_quad(*at(&quad[r], 0));
            for x in 0..C {
                partial[r][x] = isa.dot(partial[r][x], w[x], a);
            }
        }
    }
}

/// Partial sums, a row each.
#[inline(always)]
pub(super) fn sums<I: Isa, const R: usize, const C: usize>(
    isa: I,
    mut partial: [[I::S; C]; R],
) -> [[I::S; C]; R] {
    if I::MATRIX && R > 1 {
        for r in 0..R / 2 {
            for x in 0..C {
                let rows = isa.rows([partial[2 * r][x], partial[2 * r + 1][x]]);
                [partial[2 * r][x], partial[2 * r + 1][x]] = rows;
            }
        }
    }
    partial
}

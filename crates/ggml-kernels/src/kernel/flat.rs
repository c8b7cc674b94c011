//! Tiles of units of 32 weights.
//!
//! Per output, for each unit in order: `acc += f32(dot) * (dw * da)`, and `acc += m * s` where the
//! format has a minimum.

use std::marker::PhantomData;

use super::Sink;
use super::dots::{self, FlatLevels};
use crate::isa::Isa;
use crate::layout::{FlatLayout, fetch};
use crate::panel::FlatPanel;

/// The product of `R` rows with `8 * C` columns, whose units alternate in `w`. `ahead` is what will be
/// read some time after each of them, empty if it is in the cache.
#[inline(always)]
pub(crate) fn tile<I: Isa, L: FlatLayout, const R: usize, const C: usize, const Q: usize>(
    isa: I,
    table: &[i8; 16],
    w: &[u8],
    ahead: &[u8],
    a: FlatPanel<'_, R, Q>,
) -> [[I::F; C]; R] {
    let mut acc = [[isa.splat(0.0); C]; R];
    let table = isa.twice(table);
    let mins = if L::MIN { a.mins } else { a.scales };
    let mut units = a.quads.iter().zip(a.scales).zip(a.offsets).zip(mins);
    let step = L::UNIT * C;
    for (u, w) in w.chunks_exact(step).enumerate() {
        fetch(isa, ahead, u * step, step);
        let Some((((quads, da), offsets), s)) = units.next() else { break };
        let levels = |first: usize| FlatLevels { w, table, first, layout: PhantomData::<L> };
        if L::HALVES {
            // The offset's share of each half is in the levels of that half alone.
            let sums = half_offsets::<L, R, Q>(quads);
            for half in 0..2 {
                let quads = &quads[4 * half..4 * half + 4];
                let total = total(isa, levels(4 * half), quads, &sums[half]);
                scale::<I, L, R, C>(isa, w, half, da, &total, &mut acc);
            }
        } else {
            let total = total(isa, levels(0), quads, offsets);
            scale::<I, L, R, C>(isa, w, 0, da, &total, &mut acc);
        }
        if L::MIN {
            for x in 0..C {
                let m = L::min(isa, &w[x * L::UNIT..(x + 1) * L::UNIT]);
                for r in 0..R {
                    acc[r][x] = isa.add(acc[r][x], isa.mul(m, isa.splat(s[r])));
                }
            }
        }
    }
    acc
}

/// Minus the offset times the sum of the levels, of each half of a unit.
#[inline(always)]
fn half_offsets<L: FlatLayout, const R: usize, const Q: usize>(quads: &[[[u8; Q]; R]; 8]) -> [[i32; R]; 2] {
    let mut sums = [[0; R]; 2];
    for g in 0..8 {
        for r in 0..R {
            let quad = &quads[g][r];
            for i in 0..4 {
                // In a widened quad the low byte of each word is the level.
                sums[g / 4][r] -= L::OFFSET * i32::from(quad[i * (Q / 4)].cast_signed());
            }
        }
    }
    sums
}

/// The sums of the products of some quads, from `start` on.
#[inline(always)]
fn total<I: Isa, L: FlatLayout, const R: usize, const C: usize, const Q: usize>(
    isa: I,
    levels: FlatLevels<'_, I, L>,
    quads: &[[[u8; Q]; R]],
    start: &[i32; R],
) -> [[I::I; C]; R] {
    let mut total = [[isa.splat_i32(0); C]; R];
    for r in 0..R {
        total[r] = [isa.splat_i32(start[r]); C];
    }
    let room = I::room(L::MAX);
    if room == 0 {
        dots::wide(isa, levels, quads, &mut total);
        return total;
    }
    let step = dots::step(room, quads.len());
    for (n, quads) in quads.chunks_exact(step).enumerate() {
        let mut partial = [[isa.no_sums(); C]; R];
        dots::add(isa, FlatLevels { first: levels.first + n * step, ..levels }, quads, &mut partial);
        let sums = dots::sums(isa, partial);
        for r in 0..R {
            for x in 0..C {
                total[r][x] = isa.fold(total[r][x], sums[r][x]);
            }
        }
    }
    total
}

#[inline(always)]
fn scale<I: Isa, L: FlatLayout, const R: usize, const C: usize>(
    isa: I,
    w: &[u8],
    half: usize,
    da: &[f32; R],
    total: &[[I::I; C]; R],
    acc: &mut [[I::F; C]; R],
) {
    for x in 0..C {
        let dw = L::scale(isa, &w[x * L::UNIT..(x + 1) * L::UNIT], half);
        for r in 0..R {
            let d = isa.mul(dw, isa.splat(da[r]));
            acc[r][x] = isa.add(acc[r][x], isa.mul(isa.to_f32(total[r][x]), d));
        }
    }
}

/// Stores a tile whose first column is `column`.
#[inline(always)]
pub(crate) fn put<I: Isa, const R: usize, const C: usize>(
    isa: I,
    tile: &[[I::F; C]; R],
    row: usize,
    column: usize,
    sink: &mut Sink<'_>,
) {
    for r in 0..R {
        for x in 0..C {
            sink.put(row + r, column + 8 * x, &isa.array(tile[r][x]));
        }
    }
}

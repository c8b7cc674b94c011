//! Tiles of super-blocks of 256 weights.
//!
//! Per output, for each super-block in order: `acc -= f32(mins) * (dmin * da)` where the format has
//! minimums, then `acc += f32(dots) * (d * da)`. Both sums over sub-blocks are exact integers.

use std::marker::PhantomData;

use super::dots::{self, ChunkLevels};
use crate::isa::Isa;
use crate::layout::{SuperLayout, fetch};
use crate::panel::SuperPanel;

/// The product of `R` rows with `8 * C` columns, whose units alternate in `w`. `ahead` is what will be
/// read some time after each of them, empty if it is in the cache.
#[inline(always)]
pub(crate) fn tile<I: Isa, L: SuperLayout, const R: usize, const C: usize, const Q: usize>(
    isa: I,
    table: &[i8; 16],
    w: &[u8],
    ahead: &[u8],
    a: SuperPanel<'_, R, Q>,
) -> [[I::F; C]; R] {
    let mut acc = [[isa.splat(0.0); C]; R];
    let table = isa.twice(table);
    let mut chunks = a.quads.chunks_exact(8);
    let mut pairs = a.pairs.chunks_exact(L::SUBS / 2);
    let mut scales = a.scales.iter();
    let len = L::UNIT * C;
    for (u, w) in w.chunks_exact(len).enumerate() {
        let (Some(quads), Some(pairs), Some(da)) = (chunks.next(), pairs.next(), scales.next()) else {
            break;
        };
        let unit = |x: usize| &w[x * L::UNIT..(x + 1) * L::UNIT];
        let mut total = [[isa.splat_i32(0); C]; R];
        for x in 0..C {
            if L::MINS {
                let mut mins = [isa.splat_i32(0); R];
                for (p, sums) in pairs.iter().enumerate() {
                    let m = L::min_pairs(isa, unit(x), p);
                    for r in 0..R {
                        mins[r] = isa.dot_pairs(mins[r], m, isa.splat_i32(sums[r]));
                    }
                }
                let dmin = L::dmin(isa, unit(x));
                for r in 0..R {
                    let d = isa.mul(dmin, isa.splat(da[r]));
                    acc[r][x] = isa.sub(acc[r][x], isa.mul(isa.to_f32(mins[r]), d));
                }
            }
            if L::OFFSET != 0 {
                let mut sums = [isa.splat_i32(0); R];
                for (p, pair) in pairs.iter().enumerate() {
                    let scales = L::scale_pairs(isa, unit(x), p);
                    for r in 0..R {
                        sums[r] = isa.dot_pairs(sums[r], scales, isa.splat_i32(pair[r]));
                    }
                }
                for r in 0..R {
                    total[r][x] = isa.mul_add_i32(total[r][x], sums[r], isa.splat_i32(-L::OFFSET));
                }
            }
        }
        let part = len / (L::SUBS / 2);
        for p in 0..L::SUBS / 2 {
            fetch(isa, ahead, u * len + p * part, part);
            sub_blocks::<I, L, R, C, Q>(isa, table, w, quads, p, &mut total);
        }
        for x in 0..C {
            let d = L::d(isa, unit(x));
            for r in 0..R {
                let d = isa.mul(d, isa.splat(da[r]));
                acc[r][x] = isa.add(acc[r][x], isa.mul(isa.to_f32(total[r][x]), d));
            }
        }
    }
    acc
}

/// Adds the dots of sub-blocks `2p` and `2p + 1`, times their scales.
#[inline(always)]
fn sub_blocks<I: Isa, L: SuperLayout, const R: usize, const C: usize, const Q: usize>(
    isa: I,
    table: I::B,
    w: &[u8],
    quads: &[[[[u8; Q]; R]; 8]],
    p: usize,
    total: &mut [[I::I; C]; R],
) {
    let room = I::room(L::MAX);
    // A sub-block of 16 is half a chunk, one of 32 a whole one.
    let per_sub = 64 / L::SUBS;
    let mut scales = [isa.splat_i32(0); C];
    for x in 0..C {
        scales[x] = L::scale_pairs(isa, &w[x * L::UNIT..(x + 1) * L::UNIT], p);
    }
    for second in [false, true] {
        let sub = 2 * p + usize::from(second);
        let (chunk, first) = (sub * per_sub / 8, sub * per_sub % 8);
        let levels = |first: usize| ChunkLevels { w, table, chunk, first, layout: PhantomData::<L> };
        let quads = &quads[chunk][first..first + per_sub];
        if room == 0 {
            let mut sums = [[isa.splat_i32(0); C]; R];
            dots::wide(isa, levels(first), quads, &mut sums);
            for x in 0..C {
                let scale = isa.lane_scale(scales[x], second);
                for r in 0..R {
                    total[r][x] = isa.mul_add_i32(total[r][x], sums[r][x], scale);
                }
            }
            continue;
        }
        let mut sub_scales = [isa.splat_i32(0); C];
        for x in 0..C {
            sub_scales[x] = isa.sub_scale(scales[x], second);
        }
        let step = dots::step(room, per_sub);
        for (n, quads) in quads.chunks_exact(step).enumerate() {
            let mut partial = [[isa.no_sums(); C]; R];
            dots::add(isa, levels(first + n * step), quads, &mut partial);
            let sums = dots::sums(isa, partial);
            for r in 0..R {
                for x in 0..C {
                    total[r][x] = isa.fold_scaled(total[r][x], sums[r][x], sub_scales[x]);
                }
            }
        }
    }
}

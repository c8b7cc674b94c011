//! Tiles of super-blocks without scales of sub-blocks: trits, and sets of `K` planes of them, whose units
//! alternate.
//!
//! Per output each plane has a chain of its own, as if it were multiplied alone: for each super-block in
//! order `acc += f32(dots) * (d * da)`. In the end the chains are added in the order of the planes.

use std::hint::black_box;
use std::marker::PhantomData;

use super::dots::{self, ChunkLevels};
use crate::isa::Isa;
use crate::layout::{SuperLayout, fetch};
use crate::panel::SuperPanel;

/// The product of `R` rows with `8 * C` columns. In `w`, for each unit in order of k, for each plane, stand
/// the units of the `C` columns.
#[inline(always)]
pub(crate) fn tile<I: Isa, L: SuperLayout, const K: usize, const R: usize, const C: usize, const Q: usize>(
    isa: I,
    table: &[i8; 16],
    w: &[u8],
    ahead: &[u8],
    a: SuperPanel<'_, R, Q>,
) -> [[I::F; C]; R] {
    // So many known zeros would be a call of memset.
    let mut acc = [[[isa.splat(black_box(0.0)); C]; R]; K];
    let table = isa.twice(table);
    let mut units = a.quads.as_chunks::<8>().0.iter().zip(a.pairs.chunks_exact(L::SUBS / 2)).zip(a.scales);
    let step = L::UNIT * C;
    for (u, w) in w.chunks_exact(step * K).enumerate() {
        let Some(((quads, pairs), da)) = units.next() else { break };
        // The offset's share, the same for all columns and planes.
        let mut offsets = [0; R];
        for r in 0..R {
            for pair in pairs {
                offsets[r] -= L::OFFSET * (i32::from(pair[r] as i16) + (pair[r] >> 16));
            }
        }
        for (p, w) in w.chunks_exact(step).enumerate() {
            let ahead = ahead.get((u * K + p) * step..).unwrap_or(&[]);
            let dots = total::<I, L, R, C, Q>(isa, table, w, ahead, quads, &offsets);
            for x in 0..C {
                let d = L::d(isa, &w[x * L::UNIT..(x + 1) * L::UNIT]);
                for r in 0..R {
                    let d = isa.mul(d, isa.splat(da[r]));
                    acc[p][r][x] = isa.add(acc[p][r][x], isa.mul(isa.to_f32(dots[r][x]), d));
                }
            }
        }
    }
    let mut sum = [[isa.splat(0.0); C]; R];
    for r in 0..R {
        for x in 0..C {
            sum[r][x] = acc[0][r][x];
            for acc in &acc[1..] {
                sum[r][x] = isa.add(sum[r][x], acc[r][x]);
            }
        }
    }
    sum
}

/// The sums of all 256 products, from `start` on.
#[inline(always)]
fn total<I: Isa, L: SuperLayout, const R: usize, const C: usize, const Q: usize>(
    isa: I,
    table: I::B,
    w: &[u8],
    ahead: &[u8],
    quads: &[[[[u8; Q]; R]; 8]; 8],
    start: &[i32; R],
) -> [[I::I; C]; R] {
    let mut total = [[isa.splat_i32(0); C]; R];
    for r in 0..R {
        total[r] = [isa.splat_i32(start[r]); C];
    }
    // The levels are so small that partial sums hold a chunk of 32 at least.
    let chunks = dots::step(I::room(L::MAX) / 8, 8);
    for (n, quads) in quads.chunks_exact(chunks).enumerate() {
        let mut partial = [[isa.no_sums(); C]; R];
        for (i, quads) in quads.iter().enumerate() {
            let chunk = n * chunks + i;
            fetch(isa, ahead, L::UNIT * C / 8 * chunk, L::UNIT * C / 8);
            let levels = ChunkLevels { w, table, chunk, first: 0, layout: PhantomData::<L> };
            dots::add(isa, levels, quads, &mut partial);
        }
        let sums = dots::sums(isa, partial);
        for r in 0..R {
            for x in 0..C {
                total[r][x] = isa.fold(total[r][x], sums[r][x]);
            }
        }
    }
    total
}

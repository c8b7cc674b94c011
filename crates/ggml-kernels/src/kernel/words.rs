//! Tiles of weights that are i16: the sums and the f32 steps of `flat` and `super_block`, with the scales of
//! sub-blocks multiplied in beforehand. A panel's quad is four i16, in the order 0 2 1 3.

use crate::isa::Isa;
use crate::layout::{at, floats, word};
use crate::panel::{FlatPanel, SuperPanel};

/// The product of `R` rows with `8 * C` columns, whose units of 32 weights alternate in `w`.
#[inline(always)]
pub(crate) fn flat<
    I: Isa,
    const HALVES: bool,
    const MIN: bool,
    const R: usize,
    const C: usize,
    const Q: usize,
>(
    isa: I,
    w: &[u8],
    a: FlatPanel<'_, R, Q>,
) -> [[I::F; C]; R] {
    let mut acc = [[isa.splat(0.0); C]; R];
    let mins = if MIN { a.mins } else { a.scales };
    let mut units = a.quads.iter().zip(a.scales).zip(mins);
    for w in w.chunks_exact(word::FLAT_UNIT * C) {
        let Some(((quads, da), s)) = units.next() else { break };
        let unit = |x: usize| &w[x * word::FLAT_UNIT..(x + 1) * word::FLAT_UNIT];
        let halves = if HALVES { 2 } else { 1 };
        for (half, quads) in quads.chunks_exact(8 / halves).enumerate() {
            let start = word::FLAT_QUADS + half * 4 * 64;
            let total = dots::<I, R, C, Q>(isa, |x| &unit(x)[start..], quads);
            for x in 0..C {
                let dw = floats(isa, unit(x), 32 * half);
                for r in 0..R {
                    let d = isa.mul(dw, isa.splat(da[r]));
                    acc[r][x] = isa.add(acc[r][x], isa.mul(isa.to_f32(total[r][x]), d));
                }
            }
        }
        if MIN {
            for x in 0..C {
                let m = floats(isa, unit(x), 64);
                for r in 0..R {
                    acc[r][x] = isa.add(acc[r][x], isa.mul(m, isa.splat(s[r])));
                }
            }
        }
    }
    acc
}

/// The sums of products of some quads, whose words stand in `data(x)` of each column vector.
#[inline(always)]
fn dots<'a, I: Isa, const R: usize, const C: usize, const Q: usize>(
    isa: I,
    data: impl Fn(usize) -> &'a [u8],
    quads: &[[[u8; Q]; R]],
) -> [[I::I; C]; R] {
    let mut total = [[isa.splat_i32(0); C]; R];
    for (i, quad) in quads.iter().enumerate() {
        for half in 0..2 {
            let mut levels = [isa.splat_i32(0); C];
            for x in 0..C {
                levels[x] = isa.ints(at(data(x), 64 * i + 32 * half));
            }
            for r in 0..R {
                let a = isa.splat_i32(i32::from_le_bytes(*at(&quad[r], 4 * half)));
                for x in 0..C {
                    total[r][x] = isa.dot_pairs(total[r][x], levels[x], a);
                }
            }
        }
    }
    total
}

/// [`flat`] for super-blocks.
#[inline(always)]
pub(crate) fn tile<I: Isa, const MINS: bool, const R: usize, const C: usize, const Q: usize>(
    isa: I,
    w: &[u8],
    a: SuperPanel<'_, R, Q>,
) -> [[I::F; C]; R] {
    let mut acc = [[isa.splat(0.0); C]; R];
    let mut chunks = a.quads.chunks_exact(8);
    let mut pairs = a.pairs.chunks_exact(8);
    let mut scales = a.scales.iter();
    for w in w.chunks_exact(word::UNIT * C) {
        let (Some(chunks), Some(pairs), Some(da)) = (chunks.next(), pairs.next(), scales.next()) else {
            break;
        };
        let unit = |x: usize| &w[x * word::UNIT..(x + 1) * word::UNIT];
        if MINS {
            for x in 0..C {
                let mut mins = [isa.splat_i32(0); R];
                for (p, sums) in pairs.iter().enumerate() {
                    let m = isa.ints(at(unit(x), word::MINS + 32 * p));
                    for r in 0..R {
                        mins[r] = isa.dot_pairs(mins[r], m, isa.splat_i32(sums[r]));
                    }
                }
                let dmin = floats(isa, unit(x), 32);
                for r in 0..R {
                    let d = isa.mul(dmin, isa.splat(da[r]));
                    acc[r][x] = isa.sub(acc[r][x], isa.mul(isa.to_f32(mins[r]), d));
                }
            }
        }
        let total = dots::<I, R, C, Q>(isa, |x| &unit(x)[word::QUADS..], chunks.as_flattened());
        for x in 0..C {
            let d = floats(isa, unit(x), 0);
            for r in 0..R {
                let d = isa.mul(d, isa.splat(da[r]));
                acc[r][x] = isa.add(acc[r][x], isa.mul(isa.to_f32(total[r][x]), d));
            }
        }
    }
    acc
}

//! Tiles of super-blocks whose weights are i16: the sums and the f32 steps of `super_block`, with the scales
//! of sub-blocks multiplied in beforehand.

use crate::isa::Isa;
use crate::layout::{at, word};
use crate::panel::SuperPanel;

/// The product of `R` rows with `8 * C` columns, whose units alternate in `w`. A panel's quad is four i16,
/// in the order 0 2 1 3.
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
                let dmin = word::floats(isa, unit(x), 32);
                for r in 0..R {
                    let d = isa.mul(dmin, isa.splat(da[r]));
                    acc[r][x] = isa.sub(acc[r][x], isa.mul(isa.to_f32(mins[r]), d));
                }
            }
        }
        let mut total = [[isa.splat_i32(0); C]; R];
        for (i, quad) in chunks.as_flattened().iter().enumerate() {
            for half in 0..2 {
                let mut levels = [isa.splat_i32(0); C];
                for x in 0..C {
                    levels[x] = isa.ints(at(unit(x), word::QUADS + 64 * i + 32 * half));
                }
                for r in 0..R {
                    let a = isa.splat_i32(i32::from_le_bytes(*at(&quad[r], 4 * half)));
                    for x in 0..C {
                        total[r][x] = isa.dot_pairs(total[r][x], levels[x], a);
                    }
                }
            }
        }
        for x in 0..C {
            let d = word::floats(isa, unit(x), 0);
            for r in 0..R {
                let d = isa.mul(d, isa.splat(da[r]));
                acc[r][x] = isa.add(acc[r][x], isa.mul(isa.to_f32(total[r][x]), d));
            }
        }
    }
    acc
}

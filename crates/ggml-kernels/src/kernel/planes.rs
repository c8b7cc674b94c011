//! Tiles of plane sets: `K` matrices whose units alternate, multiplied in one pass over the activations.
//!
//! Per output each plane has a chain of its own, as if it were multiplied alone; in the end the chains are
//! added in the order of the planes.

use super::super_block;
use crate::isa::Isa;
use crate::layout::SuperLayout;
use crate::panel::SuperPanel;

/// The product of `R` rows with `8 * C` columns. In `w`, for each unit in order of k, for each plane, stand
/// the units of the `C` columns.
#[inline(always)]
pub(crate) fn tile<I: Isa, L: SuperLayout, const K: usize, const R: usize, const C: usize, const Q: usize>(
    isa: I,
    w: &[u8],
    a: SuperPanel<'_, R, Q>,
) -> [[I::F; C]; R] {
    let mut acc = [[[isa.splat(0.0); C]; R]; K];
    for (u, w) in w.chunks_exact(L::UNIT * C * K).enumerate() {
        let a = a.unit(u, L::SUBS);
        for (p, w) in w.chunks_exact(L::UNIT * C).enumerate() {
            // One unit's term is 0 plus the term: the same, for no chain is ever -0.
            let term = super_block::tile::<I, L, R, C, Q>(isa, w, a);
            for r in 0..R {
                for x in 0..C {
                    acc[p][r][x] = isa.add(acc[p][r][x], term[r][x]);
                }
            }
        }
    }
    let mut sum = acc[0];
    for acc in &acc[1..] {
        for r in 0..R {
            for x in 0..C {
                sum[r][x] = isa.add(sum[r][x], acc[r][x]);
            }
        }
    }
    sum
}

/// [`tile`] for `K * C = W`: the planes share the tile, as if they were columns.
#[inline(always)]
pub(crate) fn wide<I: Isa, L: SuperLayout, const W: usize, const R: usize, const C: usize, const Q: usize>(
    isa: I,
    w: &[u8],
    a: SuperPanel<'_, R, Q>,
) -> [[I::F; C]; R] {
    let all = super_block::tile::<I, L, R, W, Q>(isa, w, a);
    let mut sum = [[isa.splat(0.0); C]; R];
    for r in 0..R {
        for x in 0..C {
            sum[r][x] = all[r][x];
            for p in 1..W / C {
                sum[r][x] = isa.add(sum[r][x], all[r][p * C + x]);
            }
        }
    }
    sum
}

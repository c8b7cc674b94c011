//! Products of few rows with weights as they stand in the file: eight columns side by side, a block of
//! each taken apart just before its dots. The same integers and the same f32 steps as in the tiles.

use ggml_blocks::formats::{q8_0::Q8_0, q8_1::Q8_1, q8_k::Q8K};
use ggml_blocks::{Block, GgmlType};
use zerocopy::IntoBytes;

use super::Sink;
use crate::isa::Isa;
use crate::layout::at;
use crate::lhs::LhsRef;
use crate::unpack::{Flat, FlatUnit, Super, SuperUnit};

/// Most rows that are multiplied this way with activations of a type: beyond, expanding the weights once is
/// faster. Super-blocks have more to expand.
pub(crate) fn most_rows(activations: GgmlType) -> usize {
    if activations == GgmlType::Q8_K { 4 } else { 2 }
}

/// One 32-weight unit of activations, whatever its type.
trait Activation: Block {
    fn levels(&self) -> &[i8; 32];
    fn scale<I: Isa>(&self, isa: I) -> f32;
    fn sum<I: Isa>(&self, isa: I) -> f32;
}

impl Activation for Q8_0 {
    #[inline(always)]
    fn levels(&self) -> &[i8; 32] {
        &self.qs
    }
    #[inline(always)]
    fn scale<I: Isa>(&self, isa: I) -> f32 {
        isa.half(self.d)
    }
    #[inline(always)]
    fn sum<I: Isa>(&self, _: I) -> f32 {
        0.0
    }
}

impl Activation for Q8_1 {
    #[inline(always)]
    fn levels(&self) -> &[i8; 32] {
        &self.qs
    }
    #[inline(always)]
    fn scale<I: Isa>(&self, isa: I) -> f32 {
        isa.half(self.d)
    }
    #[inline(always)]
    fn sum<I: Isa>(&self, isa: I) -> f32 {
        isa.half(self.s)
    }
}

/// The blocks of eight columns from `first` on; those beyond the last repeat it.
#[inline(always)]
pub(crate) fn eight<B>(rows: &[B], first: usize, per_row: usize) -> [&[B]; 8] {
    let last = rows.len() / per_row - 1;
    let mut out: [&[B]; 8] = [&[]; 8];
    for c in 0..8 {
        let column = if first + c < last { first + c } else { last };
        out[c] = &rows[column * per_row..(column + 1) * per_row];
    }
    out
}

/// Multiplies `R` rows of activations from `row` on with the columns `rows` (`k / B::LEN` blocks each).
#[inline(always)]
pub(crate) fn flat<I: Isa, B: Flat, const R: usize>(
    isa: I,
    rows: &[B],
    lhs: LhsRef<'_>,
    row: usize,
    sink: &mut Sink<'_>,
) {
    if B::MIN {
        flat_with::<I, B, Q8_1, R>(isa, rows, lhs.rows(row), lhs.k, row, sink);
    } else {
        flat_with::<I, B, Q8_0, R>(isa, rows, lhs.rows(row), lhs.k, row, sink);
    }
}

#[inline(always)]
fn flat_with<I: Isa, B: Flat, A: Activation, const R: usize>(
    isa: I,
    rows: &[B],
    a: [&[A]; R],
    k: usize,
    row: usize,
    sink: &mut Sink<'_>,
) {
    let (units, per_block) = (k / 32, B::LEN / 32);
    let mut unit = FlatUnit::ZERO;
    for first in (0..sink.width).step_by(8) {
        let columns = eight(rows, first, k / B::LEN);
        let mut acc = [isa.splat(0.0); R];
        for u in 0..units {
            let (mut d, mut minimums) = ([[0.0; 8]; 2], [0.0; 8]);
            let mut dots = [[isa.splat_i32(0); 8]; R];
            for c in 0..8 {
                columns[c][u / per_block].unit(isa, u % per_block, &mut unit);
                (d[0][c], d[1][c], minimums[c]) = (unit.d[0], unit.d[1], unit.m);
                for r in 0..R {
                    dots[r][c] = isa.dot32(isa.splat_i32(0), &unit.levels, a[r][u].levels(), [1, 1]);
                }
            }
            for r in 0..R {
                let a = &a[r][u];
                let da = isa.splat(a.scale(isa));
                let totals = match B::HALVES {
                    true => isa.half_totals(&dots[r]),
                    false => [isa.totals(&dots[r]); 2],
                };
                for half in 0..if B::HALVES { 2 } else { 1 } {
                    let dots = isa.to_f32(totals[half]);
                    acc[r] = isa.add(acc[r], isa.mul(dots, isa.mul(isa.floats(&d[half]), da)));
                }
                if B::MIN {
                    acc[r] = isa.add(acc[r], isa.mul(isa.floats(&minimums), isa.splat(a.sum(isa))));
                }
            }
        }
        for r in 0..R {
            sink.put(row + r, first, &isa.array(acc[r]));
        }
    }
}

/// [`flat`] for super-blocks.
#[inline(always)]
pub(crate) fn superblock<I: Isa, B: Super, const R: usize>(
    isa: I,
    rows: &[B],
    lhs: LhsRef<'_>,
    row: usize,
    sink: &mut Sink<'_>,
) {
    let units = lhs.k / 256;
    let a: [&[Q8K]; R] = lhs.rows(row);
    let mut unit = SuperUnit::ZERO;
    for first in (0..sink.width).step_by(8) {
        let columns = eight(rows, first, units);
        let mut acc = [isa.splat(0.0); R];
        for u in 0..units {
            let (mut d, mut dmin) = ([0.0; 8], [0.0; 8]);
            let mut totals = [[isa.splat_i32(0); 8]; R];
            let mut mins = totals;
            for c in 0..8 {
                columns[c][u].unit(isa, &mut unit);
                (d[c], dmin[c]) = (unit.d, unit.dmin);
                let (levels, scales) = (unit.levels.as_chunks().0, unit.scales.as_chunks().0);
                for r in 0..R {
                    let a = &a[r][u];
                    let mut total = isa.splat_i32(0);
                    for (s, a) in a.qs.as_chunks().0.iter().enumerate() {
                        total = isa.dot32(total, &levels[s], a, scales[s]);
                    }
                    totals[r][c] = total;
                    if B::MINS {
                        let sums = isa.ints(at(a.bsums.as_bytes(), 0));
                        mins[r][c] = isa.dot_pairs(isa.splat_i32(0), isa.pairs_u8(&unit.mins), sums);
                    }
                }
            }
            for r in 0..R {
                let da = isa.splat(a[r][u].d.get());
                if B::MINS {
                    let mins = isa.to_f32(isa.totals(&mins[r]));
                    acc[r] = isa.sub(acc[r], isa.mul(mins, isa.mul(isa.floats(&dmin), da)));
                }
                let dots = isa.to_f32(isa.totals(&totals[r]));
                acc[r] = isa.add(acc[r], isa.mul(dots, isa.mul(isa.floats(&d), da)));
            }
        }
        for r in 0..R {
            sink.put(row + r, first, &isa.array(acc[r]));
        }
    }
}

//! Products of few rows with weights as they stand in the file: eight columns side by side, a block of
//! each taken apart just before its dots. The same integers and the same f32 steps as in the tiles.

use ggml_blocks::Block;
use ggml_blocks::formats::{q8_0::Q8_0, q8_1::Q8_1, q8_k::Q8K};
use zerocopy::{IntoBytes, transmute};

use super::Sink;
use crate::isa::Isa;
use crate::layout::at;
use crate::lhs::LhsRef;
use crate::unpack::{Flat, Super, Take};

/// Most rows that are multiplied this way: beyond, expanding the weights once is faster.
pub(crate) const MOST_ROWS: usize = 4;

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
    let ones = isa.splat_i32(0x0001_0001);
    for first in (0..sink.width).step_by(8) {
        let columns = eight(rows, first, k / B::LEN);
        let mut acc = [isa.splat(0.0); R];
        for u in 0..units {
            let (mut d, mut minimums) = ([[0.0; 8]; 2], [0.0; 8]);
            let mut start = [isa.splat_i32(0); R];
            if let Some(raised) = B::RAISED {
                let less = -i32::from(raised);
                let offset = isa.splat_i32(less << 16 | less & 0xFFFF);
                for r in 0..R {
                    let sums = isa.raised_products(isa.splat_byte(1), a[r][u].levels());
                    start[r] = isa.dot_pairs(start[r], sums, offset);
                }
            }
            let mut dots = [[isa.splat_i32(0); 8]; R];
            for c in 0..8 {
                let (block, index) = (&columns[c][u / per_block], u % per_block);
                [d[0][c], d[1][c]] = block.scales(isa, index);
                minimums[c] = block.min(isa);
                let levels = block.levels(isa, index);
                for r in 0..R {
                    let a = a[r][u].levels();
                    let products = match B::RAISED {
                        Some(_) => isa.raised_products(levels, a),
                        None => isa.products(levels, a),
                    };
                    dots[r][c] = isa.dot_pairs(start[r], products, ones);
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

/// The sums of products of a super-block with `R` rows, of the first and last sixteen of each 32 in the
/// halves of the lanes.
struct Dots<'a, I: Isa, const R: usize> {
    a: [&'a Q8K; R],
    /// [`Isa::half_scales`].
    scales: I::I,
    totals: [I::I; R],
}

impl<I: Isa, const R: usize> Take<I> for Dots<'_, I, R> {
    #[inline(always)]
    fn signed(&mut self, isa: I, s: usize, levels: I::B) {
        let scales = isa.scales_of(self.scales, s);
        for r in 0..R {
            let products = isa.products(levels, &self.a[r].qs.as_chunks::<32>().0[s]);
            self.totals[r] = isa.dot_pairs(self.totals[r], products, scales);
        }
    }

    #[inline(always)]
    fn raised(&mut self, isa: I, s: usize, levels: I::B) {
        let scales = isa.scales_of(self.scales, s);
        for r in 0..R {
            let products = isa.raised_products(levels, &self.a[r].qs.as_chunks::<32>().0[s]);
            self.totals[r] = isa.dot_pairs(self.totals[r], products, scales);
        }
    }

    #[inline(always)]
    fn magnitudes(&mut self, isa: I, s: usize, magnitudes: I::B, signs: I::B) {
        let scales = isa.scales_of(self.scales, s);
        for r in 0..R {
            let a = &self.a[r].qs.as_chunks::<32>().0[s];
            let products = isa.signed_products(magnitudes, signs, a);
            self.totals[r] = isa.dot_pairs(self.totals[r], products, scales);
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
    for first in (0..sink.width).step_by(8) {
        let columns = eight(rows, first, units);
        let mut acc = [isa.splat(0.0); R];
        for u in 0..units {
            let mut now = [&a[0][u]; R];
            for r in 1..R {
                now[r] = &a[r][u];
            }
            let (mut d, mut dmin) = ([0.0; 8], [0.0; 8]);
            let mut totals = [[isa.splat_i32(0); 8]; R];
            let mut mins = totals;
            for c in 0..8 {
                let block = &columns[c][u];
                let head = block.head(isa);
                (d[c], dmin[c]) = (head.d, head.dmin);
                let scales = isa.half_scales(&head.scales);
                let scale_bytes: [u8; 16] = transmute!(head.scales);
                let mut start = [isa.splat_i32(0); R];
                for r in 0..R {
                    let sums = isa.ints(at(now[r].bsums.as_bytes(), 0));
                    if B::RAISED != 0 {
                        let sum = isa.dot_pairs(start[r], isa.pairs_i8(&scale_bytes), sums);
                        start[r] = isa.mul_add_i32(start[r], sum, isa.splat_i32(-i32::from(B::RAISED)));
                    }
                    if B::MINS {
                        mins[r][c] = isa.dot_pairs(isa.splat_i32(0), isa.pairs_u8(&head.mins), sums);
                    }
                }
                let mut dots = Dots { a: now, scales, totals: start };
                block.levels(isa, &mut dots);
                for r in 0..R {
                    totals[r][c] = dots.totals[r];
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

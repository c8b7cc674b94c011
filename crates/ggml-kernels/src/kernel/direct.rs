//! Products of few rows with weights as they stand in the file: one column at a time, a block taken
//! apart just before its dots. The same integers and the same f32 steps as in the tiles.

use ggml_blocks::formats::{q8_0::Q8_0, q8_1::Q8_1, q8_k::Q8K};

use super::Sink;
use crate::isa::Isa;
use crate::lhs::LhsRef;
use crate::unpack::{Flat, FlatUnit, Super, SuperUnit};

/// Most rows that are multiplied this way: beyond, expanding the weights once is faster.
pub(crate) const ROWS: usize = 4;

/// One 32-weight unit of activations, whatever its type.
trait Activation: Copy {
    fn levels(&self) -> &[i8; 32];
    fn scale(&self) -> f32;
    fn sum(&self) -> f32;
}

impl Activation for Q8_0 {
    #[inline(always)]
    fn levels(&self) -> &[i8; 32] {
        &self.qs
    }
    #[inline(always)]
    fn scale(&self) -> f32 {
        self.d.to_f32()
    }
    #[inline(always)]
    fn sum(&self) -> f32 {
        0.0
    }
}

impl Activation for Q8_1 {
    #[inline(always)]
    fn levels(&self) -> &[i8; 32] {
        &self.qs
    }
    #[inline(always)]
    fn scale(&self) -> f32 {
        self.d.to_f32()
    }
    #[inline(always)]
    fn sum(&self) -> f32 {
        self.s.to_f32()
    }
}

/// Multiplies all rows of activations, at most [`ROWS`], with the columns `rows` (`k / B::LEN` blocks
/// each).
#[inline(always)]
pub(crate) fn flat<I: Isa, B: Flat>(isa: I, rows: &[B], lhs: LhsRef<'_>, sink: &mut Sink<'_>) {
    if B::MIN {
        flat_with::<I, B, Q8_1>(isa, rows, lhs.blocks(), lhs, sink);
    } else {
        flat_with::<I, B, Q8_0>(isa, rows, lhs.blocks(), lhs, sink);
    }
}

#[inline(always)]
fn flat_with<I: Isa, B: Flat, A: Activation>(
    isa: I,
    rows: &[B],
    a: &[A],
    lhs: LhsRef<'_>,
    sink: &mut Sink<'_>,
) {
    let (m, units, per_block) = (lhs.m(), lhs.k / 32, B::LEN / 32);
    let mut unit = FlatUnit::ZERO;
    for (column, row) in rows.chunks_exact(lhs.k / B::LEN).enumerate() {
        let mut acc = [0.0; ROWS];
        for u in 0..units {
            row[u / per_block].unit(u % per_block, &mut unit);
            let [low, high] = halves(&unit.levels);
            for r in 0..m {
                let a = &a[r * units + u];
                let ([a_low, a_high], da) = (halves(a.levels()), a.scale());
                let (first, second) = (isa.total(isa.dot16(low, a_low)), isa.total(isa.dot16(high, a_high)));
                if B::HALVES {
                    acc[r] += first as f32 * (unit.d[0] * da);
                    acc[r] += second as f32 * (unit.d[1] * da);
                } else {
                    acc[r] += (first + second) as f32 * (unit.d[0] * da);
                }
                if B::MIN {
                    acc[r] += unit.m * a.sum();
                }
            }
        }
        for r in 0..m {
            sink.y[r * sink.stride + column] = acc[r];
        }
    }
}

/// [`flat`] for super-blocks.
#[inline(always)]
pub(crate) fn superblock<I: Isa, B: Super>(isa: I, rows: &[B], lhs: LhsRef<'_>, sink: &mut Sink<'_>) {
    let (m, units) = (lhs.m(), lhs.k / 256);
    let a: &[Q8K] = lhs.blocks();
    let mut unit = SuperUnit::ZERO;
    for (column, row) in rows.chunks_exact(units).enumerate() {
        let mut acc = [0.0; ROWS];
        for u in 0..units {
            row[u].unit(&mut unit);
            for r in 0..m {
                let a = &a[r * units + u];
                let da = a.d.get();
                let mut total = isa.splat_i32(0);
                for (s, (w, a)) in
                    unit.levels.as_chunks::<16>().0.iter().zip(a.qs.as_chunks::<16>().0).enumerate()
                {
                    let scale = isa.splat_i32(i32::from(unit.scales[s]));
                    total = isa.mul_add_i32(total, isa.dot16(w, a), scale);
                }
                if B::MINS {
                    let mut mins = 0;
                    for (s, a) in a.qs.as_chunks::<16>().0.iter().enumerate() {
                        let sum: i32 = a.iter().map(|&q| i32::from(q)).sum();
                        mins += i32::from(unit.mins[s]) * sum;
                    }
                    acc[r] -= mins as f32 * (unit.dmin * da);
                }
                acc[r] += isa.total(total) as f32 * (unit.d * da);
            }
        }
        for r in 0..m {
            sink.y[r * sink.stride + column] = acc[r];
        }
    }
}

#[inline(always)]
fn halves(x: &[i8; 32]) -> [&[i8; 16]; 2] {
    let halves = x.as_chunks::<16>().0;
    [&halves[0], &halves[1]]
}

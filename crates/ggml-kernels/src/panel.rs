//! Activations as the tiles read them: rows interleaved in panels of four, two or one.
//!
//! ```text
//! quads   per panel, per unit: for each four k, for each row: 4 bytes, or 4 i16 in the order 0 2 1 3
//! scales  per panel, per unit: an f32 per row
//! offsets per panel, per unit of 32: an i32 per row, minus the layout's offset times the sum of levels
//! mins    per panel, per unit of 32: an f32 per row, the `s` of Q8_1
//! pairs   per panel, per unit of 256: two i16 sums of sub-blocks per i32, an i32 per row
//! ```

use ggml_blocks::GgmlType;
use ggml_blocks::formats::{q8_0::Q8_0, q8_1::Q8_1, q8_k::Q8K};

use crate::lhs::LhsRef;

/// Buffers that keep their capacity from call to call.
#[derive(Debug, Default)]
pub(crate) struct Panels {
    pub(crate) quads: Vec<u8>,
    pub(crate) scales: Vec<f32>,
    pub(crate) offsets: Vec<i32>,
    pub(crate) mins: Vec<f32>,
    pub(crate) pairs: Vec<i32>,
}

/// How a kernel wants its panels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// Most rows of a panel: 1, 2 or 4.
    pub(crate) rows: usize,
    /// Bytes per quad: 4 or 8.
    pub(crate) quad: usize,
    /// What the layout adds to its levels.
    pub(crate) offset: i32,
    /// Sub-blocks whose sums the layout needs: 8, 16, or 0 for layouts of 32.
    pub(crate) subs: usize,
}

/// The panels of `m` rows: first row and number of rows of each.
pub(crate) fn panels(m: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut row = 0;
    std::iter::from_fn(move || {
        let left = m - row;
        let rows = if left >= 4 && most >= 4 { 4 } else { left.min(2).min(most) };
        row += rows;
        (rows > 0).then_some((row - rows, rows))
    })
}

impl Panels {
    /// Fills the buffers from quantized activations.
    pub(crate) fn fill(&mut self, lhs: LhsRef<'_>, shape: Shape) {
        let len = if lhs.ty == GgmlType::Q8_K { 256 } else { 32 };
        let (m, units) = (lhs.m(), lhs.k / len);
        self.quads.resize(m * units * len / 4 * shape.quad, 0);
        self.scales.resize(m * units, 0.0);
        self.offsets.resize(if len == 32 { m * units } else { 0 }, 0);
        self.mins.resize(if lhs.ty == GgmlType::Q8_1 { m * units } else { 0 }, 0.0);
        self.pairs.resize(m * units * shape.subs / 2, 0);
        for (first, rows) in panels(m, shape.rows) {
            for r in 0..rows {
                let row = first + r;
                let blocks = row * units..(row + 1) * units;
                let at = Place { first, rows, r, units };
                match lhs.ty {
                    GgmlType::Q8_0 => {
                        for (u, b) in lhs.blocks::<Q8_0>()[blocks].iter().enumerate() {
                            self.flat(at, u, shape, &b.qs, b.d.to_f32());
                        }
                    }
                    GgmlType::Q8_1 => {
                        for (u, b) in lhs.blocks::<Q8_1>()[blocks].iter().enumerate() {
                            self.flat(at, u, shape, &b.qs, b.d.to_f32());
                            self.mins[at.index(u, 1)] = b.s.to_f32();
                        }
                    }
                    _ => {
                        for (u, b) in lhs.blocks::<Q8K>()[blocks].iter().enumerate() {
                            self.superblock(at, u, shape, b);
                        }
                    }
                }
            }
        }
    }

    fn flat(&mut self, at: Place, u: usize, shape: Shape, qs: &[i8; 32], d: f32) {
        let i = at.index(u, 1);
        self.scales[i] = d;
        self.offsets[i] = -shape.offset * qs.iter().map(|&q| i32::from(q)).sum::<i32>();
        self.quads(at, u, shape, qs);
    }

    fn superblock(&mut self, at: Place, u: usize, shape: Shape, block: &Q8K) {
        self.scales[at.index(u, 1)] = block.d.get();
        self.quads(at, u, shape, &block.qs);
        if shape.subs == 0 {
            return;
        }
        let mut sums = [0; 16];
        for (i, sum) in block.bsums.iter().enumerate() {
            sums[i * shape.subs / 16] += i32::from(sum.get());
        }
        let start = at.index(u, shape.subs / 2);
        for (p, [a, b]) in sums.as_chunks::<2>().0[..shape.subs / 2].iter().enumerate() {
            self.pairs[start + p * at.rows] = b << 16 | a & 0xFFFF;
        }
    }

    fn quads<const N: usize>(&mut self, at: Place, u: usize, shape: Shape, qs: &[i8; N]) {
        let start = at.index(u, N / 4);
        let quads = qs.as_chunks::<4>().0.iter();
        if shape.quad == 4 {
            let out = &mut self.quads.as_chunks_mut::<4>().0[start..];
            for (out, q) in out.iter_mut().step_by(at.rows).zip(quads) {
                *out = [q[0] as u8, q[1] as u8, q[2] as u8, q[3] as u8];
            }
        } else {
            let out = &mut self.quads.as_chunks_mut::<8>().0[start..];
            for (out, q) in out.iter_mut().step_by(at.rows).zip(quads) {
                let word = |i: usize| i64::from(q[i]) & 0xFFFF;
                *out = (word(0) | word(2) << 16 | word(1) << 32 | word(3) << 48).to_le_bytes();
            }
        }
    }
}

/// Row `r` of a panel of `rows` rows that starts at row `first`.
#[derive(Clone, Copy)]
struct Place {
    first: usize,
    rows: usize,
    r: usize,
    units: usize,
}

impl Place {
    /// Where the row's first of `each` things per unit `u` stands; the next is `rows` further.
    fn index(self, u: usize, each: usize) -> usize {
        (self.first * self.units + u * self.rows) * each + self.r
    }
}

/// What a tile reads of one panel of 32-weight units.
#[derive(Clone, Copy)]
pub(crate) struct FlatPanel<'a, const R: usize, const Q: usize> {
    pub(crate) quads: &'a [[[[u8; Q]; R]; 8]],
    pub(crate) scales: &'a [[f32; R]],
    pub(crate) offsets: &'a [[i32; R]],
    pub(crate) mins: &'a [[f32; R]],
}

/// What a tile reads of one panel of super-blocks.
#[derive(Clone, Copy)]
pub(crate) struct SuperPanel<'a, const R: usize, const Q: usize> {
    pub(crate) quads: &'a [[[[u8; Q]; R]; 8]],
    pub(crate) scales: &'a [[f32; R]],
    pub(crate) pairs: &'a [[i32; R]],
}

/// The part of a buffer that belongs to a panel: `each` things per row.
#[inline(always)]
fn part<T, const R: usize>(all: &[T], first: usize, each: usize) -> &[[T; R]] {
    if all.is_empty() { &[] } else { all[first * each..(first + R) * each].as_chunks().0 }
}

impl Panels {
    #[inline(always)]
    fn quads_of<const R: usize, const Q: usize>(&self, first: usize, quads: usize) -> &[[[[u8; Q]; R]; 8]] {
        part::<_, R>(self.quads.as_chunks::<Q>().0, first, quads).as_chunks().0
    }

    /// The panel of `R` rows from row `first` on.
    #[inline(always)]
    pub(crate) fn flat_panel<const R: usize, const Q: usize>(
        &self,
        first: usize,
        units: usize,
    ) -> FlatPanel<'_, R, Q> {
        FlatPanel {
            quads: self.quads_of(first, 8 * units),
            scales: part(&self.scales, first, units),
            offsets: part(&self.offsets, first, units),
            mins: part(&self.mins, first, units),
        }
    }

    /// The panel of `R` rows from row `first` on, with the sums of `subs` sub-blocks.
    #[inline(always)]
    pub(crate) fn super_panel<const R: usize, const Q: usize>(
        &self,
        first: usize,
        units: usize,
        subs: usize,
    ) -> SuperPanel<'_, R, Q> {
        SuperPanel {
            quads: self.quads_of(first, 64 * units),
            scales: part(&self.scales, first, units),
            pairs: part(&self.pairs, first, units * subs / 2),
        }
    }
}

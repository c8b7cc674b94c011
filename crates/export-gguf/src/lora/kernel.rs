//! The arithmetic of a merge: for each element the sum over the rank in ascending order, each step one fused
//! multiply-add; then the scale; then the base. The fused step rounds once on every CPU, so the values are the
//! same on all of them.

use ggml_blocks::simd::{Simd, SimdOp, dispatch};

/// How many sums are in work at once: a few registers full.
const TILE: usize = 64;

/// Adds `scale` times a row of the product to `out`: the row of `left` times the columns of `right` that begin
/// at `column`, whose rows have `width` values.
pub(super) fn add_product(
    out: &mut [f32],
    left: &[f32],
    right: &[f32],
    width: usize,
    column: usize,
    scale: f32,
) {
    dispatch(Row { out, left, right, width, column, scale });
}

struct Row<'a> {
    out: &'a mut [f32],
    left: &'a [f32],
    right: &'a [f32],
    width: usize,
    column: usize,
    scale: f32,
}

impl SimdOp for Row<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let mut column = self.column;
        let mut tiles = self.out.chunks_exact_mut(TILE);
        for tile in &mut tiles {
            let mut sum = [0.0; TILE];
            for (l, row) in self.left.iter().zip(self.right.chunks_exact(self.width)) {
                let row = &row[column..column + TILE];
                for i in 0..TILE {
                    sum[i] = l.mul_add(row[i], sum[i]);
                }
            }
            for i in 0..TILE {
                tile[i] += sum[i] * self.scale;
            }
            column += TILE;
        }
        for (i, value) in tiles.into_remainder().iter_mut().enumerate() {
            let rows = self.right.chunks_exact(self.width);
            let sum = self.left.iter().zip(rows).fold(0.0, |sum, (l, row)| l.mul_add(row[column + i], sum));
            *value += sum * self.scale;
        }
    }
}

/// Gives a row the length `m`, as `DoRA` does. `false` if it has none that could be changed.
pub(super) fn set_length(row: &mut [f32], m: f32) -> bool {
    let squares: f64 = row.iter().map(|&v| f64::from(v) * f64::from(v)).sum();
    let factor = (f64::from(m) / squares.sqrt()) as f32;
    if !factor.is_finite() {
        return false;
    }
    for v in row {
        *v *= factor;
    }
    true
}

#[cfg(test)]
mod tests {
    use ggml_blocks::simd::{Level, with_level};

    use super::*;

    #[test]
    fn every_level_and_every_cut_gives_the_same_bits() {
        let value = |i: usize| ((i * 2_654_435_761) % 1000) as f32 / 317.0 - 1.5;
        let (rank, width) = (7, 150);
        let left: Vec<f32> = (0..rank).map(value).collect();
        let right: Vec<f32> = (0..rank * width).map(|i| value(i + 99)).collect();
        let base: Vec<f32> = (0..width).map(|i| value(i + 5)).collect();
        let mut want = base.clone();
        for (j, w) in want.iter_mut().enumerate() {
            let mut sum = 0.0_f32;
            for (r, l) in left.iter().enumerate() {
                sum = l.mul_add(right[r * width + j], sum);
            }
            *w += sum * 0.37;
        }
        for level in Level::supported() {
            for cut in [0, 1, 63, 64, 65, 150] {
                let mut got = base.clone();
                with_level(level, || {
                    add_product(&mut got[..cut], &left, &right, width, 0, 0.37);
                    add_product(&mut got[cut..], &left, &right, width, cut, 0.37);
                });
                assert_eq!(got, want, "{level} cut at {cut}");
            }
        }
    }

    #[test]
    fn lengths_are_set_or_refused() {
        let mut row = [3.0, 4.0];
        assert!(set_length(&mut row, 10.0));
        assert_eq!(row, [6.0, 8.0]);
        assert!(!set_length(&mut [0.0, 0.0], 1.0));
    }
}

//! Merges with their values at hand, applied to any range of a tensor.

use std::ops::Range;

use super::adapter::{Factor, Matrix};
use super::kernel::{add_product, set_length};
use super::resolve::{Merge, Op, Order};
use crate::Error;

/// A merge whose adapter tensors were read.
#[derive(Debug)]
pub(super) struct Loaded {
    rows: Range<u64>,
    order: Order,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Product {
        left: Vec<f32>,
        right: Vec<f32>,
        rank: usize,
        scale: f32,
        magnitude: Option<Vec<f32>>,
    },
    Add {
        vector: Vec<f32>,
        scale: f32,
    },
    /// Read piece by piece: it is as large as the tensor.
    Replace {
        with: Matrix,
        plus: f32,
    },
}

impl Loaded {
    pub(super) fn read(merge: &Merge<'_>) -> Result<Self, Error> {
        let values = match &merge.op {
            Op::Product { left, right, rank, scale, magnitude } => Values::Product {
                left: factor(left)?,
                right: factor(right)?,
                rank: usize::try_from(*rank).unwrap_or(usize::MAX),
                scale: *scale as f32,
                magnitude: magnitude.map(Matrix::read).transpose()?,
            },
            Op::Add { vector, scale } => Values::Add { vector: vector.read()?, scale: *scale as f32 },
            Op::Replace { with, plus } => Values::Replace { with: (*with).clone(), plus: *plus },
        };
        Ok(Self { rows: merge.rows.clone(), order: merge.order, values })
    }

    /// The memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        let values = match &self.values {
            Values::Product { left, right, magnitude, .. } => {
                left.len() + right.len() + magnitude.as_ref().map_or(0, Vec::len)
            }
            Values::Add { vector, .. } => vector.len(),
            Values::Replace { .. } => 0,
        };
        values * size_of::<f32>()
    }

    /// The rows of the tensor that change.
    pub(super) fn rows(&self) -> Range<u64> {
        self.rows.clone()
    }

    /// Changes `values`, which begin at element `start` of a tensor with rows of `width`.
    pub(super) fn apply(&self, values: &mut [f32], start: u64, width: u64) -> Result<(), String> {
        let end = start + values.len() as u64;
        let rows = self.rows.start.max(start / width)..self.rows.end.min(end.div_ceil(width));
        for row in rows {
            let (first, last) = (start.max(row * width), end.min((row + 1) * width));
            // Both are within `values`, and columns within a row that is.
            let piece = &mut values[(first - start) as usize..(last - start) as usize];
            let column = (first - row * width) as usize;
            let own = self.order.source(row - self.rows.start) as usize;
            self.row(piece, own, column, width as usize).map_err(|e| format!("row {row} {e}"))?;
        }
        Ok(())
    }

    /// Changes a piece of one row, which is the adapter's row `own`. An error goes on from `row N`.
    fn row(&self, piece: &mut [f32], own: usize, column: usize, width: usize) -> Result<(), String> {
        match &self.values {
            Values::Product { left, right, rank, scale, magnitude } => {
                add_product(piece, &left[own * rank..(own + 1) * rank], right, width, column, *scale);
                if magnitude.as_ref().is_some_and(|m| !set_length(piece, m[own])) {
                    return Err("is all zero, so DoRA cannot give it a length".to_owned());
                }
            }
            Values::Add { vector, scale } => {
                piece.iter_mut().for_each(|v| *v += vector[own] * scale);
            }
            Values::Replace { with, plus } => {
                with.read_at(own * width + column, piece).map_err(|e| format!("of {}: {e}", with.name()))?;
                // Adding zero would turn -0 into 0.
                if *plus != 0.0 {
                    piece.iter_mut().for_each(|v| *v += plus);
                }
            }
        }
        Ok(())
    }
}

/// The values of a factor in the order of the product.
fn factor(f: &Factor) -> Result<Vec<f32>, Error> {
    let values = f.matrix.read()?;
    let Some((rows, row)) = f.matrix.sides().filter(|_| f.transposed) else { return Ok(values) };
    let (rows, row) = (usize::try_from(rows).unwrap_or(0), usize::try_from(row).unwrap_or(0));
    let mut out = Vec::with_capacity(values.len());
    for column in 0..row {
        out.extend((0..rows).map(|r| values[r * row + column]));
    }
    Ok(out)
}

//! How a product is cut into tasks: the only file that knows threads.
//!
//! Each task owns a range of columns. Every output is computed by one task from start to end, so the
//! number of tasks changes nothing.

use std::ops::Range;

use crate::error::{Error, expect, whole_rows};
use crate::isa::Token;
use crate::kernel::Sink;
use crate::level::Kernels;
use crate::lhs::{Lhs, LhsRef, quantize_into};
use crate::rhs::Rhs;
use crate::scratch::{Buffers, Scratch};
use crate::task::{Weights, prepare, run_float, run_quantized};

/// Multiplications that are worth a task of their own: some tens of microseconds.
const TASK: usize = 1 << 21;

impl Kernels {
    /// `y[m, n] = x[m, k] · wᵀ`, with `m` told by the length of `x`.
    ///
    /// The activations are quantized as [`Rhs::activations`] says, plain floats excepted. Runs in the
    /// caller's rayon pool; small products on the calling thread alone.
    ///
    /// # Errors
    /// [`Error`] unless `x` is a whole number of rows of `k` and `y` has `m * n` numbers, and for
    /// activations that cannot be quantized: NaN, infinite, or so large that a scale has no finite f16.
    pub fn matmul(self, x: &[f32], w: &Rhs<'_>, y: &mut [f32], scratch: &mut Scratch) -> Result<(), Error> {
        let m = rows(x, w.k(), w.n(), y)?;
        match w.activations() {
            Some(ty) => {
                let mut bytes = std::mem::take(&mut scratch.lhs);
                let done = quantize_into(ty, x, w.k(), &mut bytes).map(|()| {
                    let lhs = LhsRef { ty, k: w.k(), bytes: &bytes };
                    quantized(self.token, Weights::Rhs(w), lhs, y, scratch);
                });
                scratch.lhs = bytes;
                done
            }
            None => {
                let work = |columns, buffers: &mut Buffers, sink: Sink<'_>| {
                    run_float(self.token, w, x, columns, buffers, sink);
                };
                split(m, w.n(), w.k(), 8, y, &mut scratch.tasks, &work);
                Ok(())
            }
        }
    }

    /// [`Kernels::matmul`] with activations that are quantized already.
    ///
    /// # Errors
    /// [`Error`] unless the activations have the type and row length that the weights meet, and `y` has
    /// `m * n` numbers.
    pub fn matmul_lhs(
        self,
        lhs: &Lhs,
        w: &Rhs<'_>,
        y: &mut [f32],
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        check_lhs(lhs, w.activations(), w.k(), w.n(), y)?;
        quantized(self.token, Weights::Rhs(w), lhs.view(), y, scratch);
        Ok(())
    }
}

/// The number of rows, if the lengths fit.
pub(crate) fn rows(x: &[f32], k: usize, n: usize, y: &[f32]) -> Result<usize, Error> {
    let m = whole_rows("activations", k, x.len())?;
    expect("output", m.saturating_mul(n), y.len())?;
    Ok(m)
}

/// Whether quantized activations fit.
pub(crate) fn check_lhs(
    lhs: &Lhs,
    need: Option<ggml_blocks::GgmlType>,
    k: usize,
    n: usize,
    y: &[f32],
) -> Result<(), Error> {
    let need = need.unwrap_or(ggml_blocks::GgmlType::F32);
    if lhs.ty() != need {
        return Err(Error::Activations { need, have: lhs.ty() });
    }
    expect("activations per row", k, lhs.k())?;
    expect("output", lhs.m().saturating_mul(n), y.len())
}

/// The product with quantized activations; lengths and types have been checked.
pub(crate) fn quantized(token: Token, w: Weights<'_>, lhs: LhsRef<'_>, y: &mut [f32], scratch: &mut Scratch) {
    let Scratch { panels, tasks, .. } = scratch;
    let prepared = prepare(token, w, lhs, panels);
    let panels = &*panels;
    let work = |columns, buffers: &mut Buffers, sink: Sink<'_>| {
        run_quantized(token, w, lhs, panels, prepared, columns, buffers, sink);
    };
    split(lhs.m(), w.n(), lhs.k, 8 * token.cols(), y, tasks, &work);
}

type Work<'a> = dyn Fn(Range<usize>, &mut Buffers, Sink<'_>) + Sync + 'a;

/// Runs `work` on ranges of columns, which start at multiples of `grain`.
pub(crate) fn split(
    m: usize,
    n: usize,
    k: usize,
    grain: usize,
    y: &mut [f32],
    tasks: &mut Vec<Buffers>,
    work: &Work<'_>,
) {
    if m == 0 || n == 0 {
        return;
    }
    let worth = m.saturating_mul(n).saturating_mul(k) / TASK;
    let grains = n.div_ceil(grain);
    let threads = rayon::current_num_threads();
    // Some tasks per thread: one that starts late, or shares its core, takes fewer.
    let count = if threads == 1 { 1 } else { (4 * threads).min(worth).min(grains).max(1) };
    if tasks.len() < count {
        tasks.resize_with(count, Buffers::default);
    }
    let tasks = &mut tasks[..count];
    if count == 1 {
        return work(0..n, &mut tasks[0], Sink { y, stride: n, width: n, add: false });
    }
    let bound = |task: usize| (grains * task / count * grain).min(n);
    if m == 1 {
        return one_row(y, tasks, 0..n, 0, &bound, work);
    }
    apart(tasks, 0, m, &bound, work);
    // Each row of the output gathers the tasks' columns.
    let tasks = &*tasks;
    gather(y, n, 0, &|row, y: &mut [f32]| {
        for (i, task) in tasks.iter().enumerate() {
            let (start, end) = (bound(i), bound(i + 1));
            let width = end - start;
            y[start..end].copy_from_slice(&task.out[row * width..(row + 1) * width]);
        }
    });
}

/// One row: the tasks' columns lie together in the output.
fn one_row(
    y: &mut [f32],
    tasks: &mut [Buffers],
    columns: Range<usize>,
    first: usize,
    bound: &(dyn Fn(usize) -> usize + Sync),
    work: &Work<'_>,
) {
    if let [task] = tasks {
        let width = columns.len();
        return work(columns, task, Sink { y, stride: width, width, add: false });
    }
    let half = tasks.len() / 2;
    let middle = bound(first + half);
    let (left, right) = tasks.split_at_mut(half);
    let (y_left, y_right) = y.split_at_mut(middle - columns.start);
    rayon::join(
        || one_row(y_left, left, columns.start..middle, first, bound, work),
        || one_row(y_right, right, middle..columns.end, first + half, bound, work),
    );
}

/// Several rows: each task fills an output of its own.
fn apart(
    tasks: &mut [Buffers],
    first: usize,
    m: usize,
    bound: &(dyn Fn(usize) -> usize + Sync),
    work: &Work<'_>,
) {
    if let [task] = tasks {
        let columns = bound(first)..bound(first + 1);
        let width = columns.len();
        let mut out = std::mem::take(&mut task.out);
        out.resize(m * width, 0.0);
        work(columns, task, Sink { y: &mut out, stride: width, width, add: false });
        task.out = out;
        return;
    }
    let half = tasks.len() / 2;
    let (left, right) = tasks.split_at_mut(half);
    rayon::join(|| apart(left, first, m, bound, work), || apart(right, first + half, m, bound, work));
}

/// Runs `row` for each row of `n` numbers, in parallel halves.
fn gather(y: &mut [f32], n: usize, first: usize, row: &(dyn Fn(usize, &mut [f32]) + Sync)) {
    let rows = y.len() / n;
    if y.len() <= 1 << 16 || rows == 1 {
        for (i, y) in y.chunks_exact_mut(n).enumerate() {
            row(first + i, y);
        }
        return;
    }
    let (left, right) = y.split_at_mut(rows / 2 * n);
    rayon::join(|| gather(left, n, first, row), || gather(right, n, first + rows / 2, row));
}

//! `dx = dy · W`: the gradient through a frozen weight. Tasks own ranges of k; a tile of rows is decoded
//! at a time, once. Per output, rows are added in order: `dx += dy * w`.

use std::ops::Range;

use crate::error::{Error, expect};
use crate::isa::{Isa, KernelOp};
use crate::kernel::Sink;
use crate::level::Kernels;
use crate::matmul::split;
use crate::rhs::Rhs;
use crate::scratch::{Buffers, Scratch};

/// Rows of the weight matrix that are decoded at a time.
const ROWS: usize = 16;

impl Kernels {
    /// `dx[m, k] = dy[m, n] · w`, with `m` told by the length of `dy`: the gradient of
    /// [`Kernels::matmul`] with respect to `x`. All in f32, nothing is quantized. A packed weight has
    /// no such product.
    ///
    /// # Errors
    /// [`Error::Length`] unless `dy` is a whole number of rows of `n` and `dx` has `m * k` numbers.
    pub fn matmul_t(
        self,
        dy: &[f32],
        w: &Rhs<'_>,
        dx: &mut [f32],
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        let (n, k) = (w.n(), w.k());
        let m = dy.len().checked_div(n).unwrap_or(dx.len() / k);
        expect("gradients", m * n, dy.len())?;
        expect("output", m.saturating_mul(k), dx.len())?;
        let work = |columns: Range<usize>, buffers: &mut Buffers, mut sink: Sink<'_>| {
            for row in sink.y.chunks_mut(sink.stride).take(m) {
                row[..columns.len()].fill(0.0);
            }
            let block = w.format().block_len();
            let blocks = columns.start / block..columns.end / block;
            for first in (0..n).step_by(ROWS) {
                let rows = ROWS.min(n - first);
                buffers.floats.resize(rows * columns.len(), 0.0);
                for (j, out) in buffers.floats.chunks_exact_mut(columns.len()).enumerate() {
                    // The range is one of the row's, and `out` has its length.
                    let _fits =
                        w.format().decode_range(w.rows(first + j..first + j + 1), blocks.clone(), out);
                }
                let dy = Gradients { dy, n, first, rows };
                self.token.run(Add { dy, w: &buffers.floats, width: columns.len(), m, sink: &mut sink });
            }
        };
        split(m, k, n, w.format().block_len().max(32), dx, &mut scratch.tasks, &work);
        Ok(())
    }
}

/// The gradients of `rows` outputs from `first` on.
#[derive(Clone, Copy)]
struct Gradients<'a> {
    dy: &'a [f32],
    n: usize,
    first: usize,
    rows: usize,
}

/// Adds a tile of rows to all outputs.
struct Add<'a, 'b> {
    dy: Gradients<'a>,
    w: &'a [f32],
    width: usize,
    m: usize,
    sink: &'a mut Sink<'b>,
}

impl KernelOp for Add<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { dy, w, width, m, sink } = self;
        for r in 0..m {
            let dy = &dy.dy[r * dy.n + dy.first..][..dy.rows];
            let out = &mut sink.y[r * sink.stride..][..width];
            let whole = width / 8 * 8;
            let (chunks, tail) = out.split_at_mut(whole);
            for (c, out) in chunks.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                let mut acc = isa.floats(out);
                for (w, &dy) in w.chunks_exact(width).zip(dy) {
                    acc = isa.add(acc, isa.mul(isa.splat(dy), isa.floats(&w.as_chunks().0[c])));
                }
                *out = isa.array(acc);
            }
            for (c, out) in tail.iter_mut().enumerate() {
                for (w, &dy) in w.chunks_exact(width).zip(dy) {
                    *out += dy * w[whole + c];
                }
            }
        }
    }
}

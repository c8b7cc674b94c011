//! Products with plain floats: activations stay f32. Eight lanes by the remainder of k, each summed in
//! order with separate multiplication and addition, then added in a fixed tree.

use super::Sink;
use crate::isa::Isa;

/// Columns whose weights are decoded at a time.
pub(crate) const COLUMNS: usize = 8;

/// Multiplies all rows of `x` with the decoded columns `w`, both rows of `k`.
#[inline(always)]
pub(crate) fn columns<I: Isa>(isa: I, x: &[f32], w: &[f32], k: usize, column: usize, sink: &mut Sink<'_>) {
    for (c, w) in w.chunks(4 * k).enumerate() {
        for (row, x) in x.chunks_exact(k).enumerate() {
            let sums = four(isa, x, w, k);
            for (i, sum) in sums.into_iter().take(w.len() / k).enumerate() {
                sink.y[row * sink.stride + column + 4 * c + i] = sum;
            }
        }
    }
}

/// The products of a row with up to four columns.
#[inline(always)]
fn four<I: Isa>(isa: I, x: &[f32], w: &[f32], k: usize) -> [f32; 4] {
    // Missing columns repeat the last one.
    let last = w.len() / k - 1;
    let w = [0, 1, 2, 3].map(|i: usize| {
        let column = i.min(last);
        &w[column * k..(column + 1) * k]
    });
    let mut acc = [isa.splat(0.0); 4];
    let (chunks, tail) = x.as_chunks::<8>();
    let [w0, w1, w2, w3] = w.map(|w| w.as_chunks::<8>().0);
    for ((((x, w0), w1), w2), w3) in chunks.iter().zip(w0).zip(w1).zip(w2).zip(w3) {
        let x = isa.floats(x);
        for (acc, w) in acc.iter_mut().zip([w0, w1, w2, w3]) {
            *acc = isa.add(*acc, isa.mul(x, isa.floats(w)));
        }
    }
    if !tail.is_empty() {
        let start = k - tail.len();
        let x = isa.floats(&padded(tail));
        for (acc, w) in acc.iter_mut().zip(w) {
            *acc = isa.add(*acc, isa.mul(x, isa.floats(&padded(&w[start..]))));
        }
    }
    acc.map(|acc| {
        let a = isa.array(acc);
        ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]))
    })
}

#[inline(always)]
fn padded(tail: &[f32]) -> [f32; 8] {
    let mut out = [0.0; 8];
    out[..tail.len()].copy_from_slice(tail);
    out
}

//! The search of IQ1: the best split of a sub-block's sorted weights into -1, 0 and 1.
//!
//! ggml tries all pairs of bounds under every shift and keeps a split if `sumqx * sumqx > score *
//! sumq2`, with sums in single precision: which of several nearly equal splits remains depends on
//! every rounding. Here an estimate tells which splits can be the last one kept; only those go
//! through ggml's arithmetic, in ggml's order.
//!
//! Why that gives the same split: let `floor` be a score that some split surely exceeds by far more
//! than a rounding error, and all splits passed over surely do not reach. What ggml holds before the
//! first split above `floor` is then a split below it, so it takes that first one; from there on both
//! hold the same state, in which the splits passed over cannot win.

use crate::simd::Simd;

/// How far the three values are shifted, up or down.
use crate::grid::IQ1_DELTA as DELTA;
/// The values of the three levels, shifted up.
pub(super) const UP: [f32; 3] = [-1.0 + DELTA, DELTA, 1.0 + DELTA];
/// The values of the three levels, shifted down.
pub(super) const DOWN: [f32; 3] = [-1.0 - DELTA, -DELTA, 1.0 - DELTA];

/// A split: the sorted weights before the first bound are -1, those from the second on 1.
#[derive(Clone, Copy)]
pub(super) struct Split {
    pub(super) bounds: (usize, usize),
    /// Which of the shifts, by the order in which they are tried.
    pub(super) shift: usize,
    pub(super) scale: f32,
    score: f32,
}

/// ggml's sums for a split of `N` weights under one of `K` shifts.
pub(super) trait Sums<const K: usize> {
    /// `sumqx` and `sumq2` of the bounds `i1 <= i2` under shift `k`.
    fn exact(&self, i1: usize, i2: usize, k: usize) -> (f32, f32);
}

/// An estimate of the sums. Neighbouring values differ by one, so that
/// `sumqx = x - at[i1] - at[i2]` and `sumq2 = w + first[i1] + second[i2]`. `P` is the number of bounds
/// rounded up to whole vectors; behind the last bound `second` is NaN.
pub(super) struct Estimate<const K: usize, const P: usize> {
    pub(super) at: [f32; P],
    pub(super) x: [f32; K],
    pub(super) w: [f32; K],
    pub(super) first: [[f32; P]; K],
    pub(super) second: [[f32; P]; K],
}

impl<const K: usize, const P: usize> Estimate<K, P> {
    /// A score that a split has, close to the best: one bound is improved, then the other, first under
    /// one shift, then under all.
    #[inline(always)]
    fn good_score<S: Simd>(&self, simd: S, bounds: usize) -> f32 {
        let (i2, _) = self.best_along::<S, true>(simd, bounds / 3, 1);
        let (i1, _) = self.best_along::<S, false>(simd, i2, 1);
        let (i2, _) = self.best_along::<S, true>(simd, i1, K);
        let (_, score) = self.best_along::<S, false>(simd, i2, K);
        score
    }

    /// The best second bound for a first one, or the reverse, and its score. The last bounds, which do
    /// not fill a vector, are left out.
    #[inline(always)]
    fn best_along<S: Simd, const SECOND: bool>(&self, simd: S, fixed: usize, shifts: usize) -> (usize, f32) {
        let (mut least, mut codes) = ([f32::MAX; 8], [fixed as u32; 8]);
        for k in 0..shifts {
            let x = self.x[k] - self.at[fixed];
            let (w, part) = if SECOND {
                (self.w[k] + self.first[k][fixed], &self.second[k])
            } else {
                (self.w[k] + self.second[k][fixed], &self.first[k])
            };
            for v in 0..P / 8 - 1 {
                let (at, part) = (&self.at.as_chunks::<8>().0[v], &part.as_chunks::<8>().0[v]);
                let (mut index, mut loss) = ([0; 8], [0.0; 8]);
                for lane in 0..8 {
                    index[lane] = (8 * v + lane) as u32;
                    let qx = x - at[lane];
                    let score = qx * qx / (w + part[lane]);
                    let wrong = if SECOND { index[lane] < fixed as u32 } else { index[lane] > fixed as u32 };
                    loss[lane] = if wrong { f32::MAX } else { -score };
                }
                (least, codes) = simd.keep_less(loss, index, least, codes);
            }
        }
        let lane = simd.first_least(least);
        (codes[lane] as usize % P, -least[lane])
    }

    /// Calls `visit` for the bounds and shifts that reach `floor`, in ggml's order.
    #[inline(always)]
    fn above<S: Simd>(&self, simd: S, bounds: usize, floor: f32, mut visit: impl FnMut(usize, usize, usize)) {
        for i1 in 0..=bounds {
            for start in (i1..=bounds).step_by(8) {
                let at: &[f32; 8] = eight(&self.at, start);
                let mut masks = [0; K];
                for k in 0..K {
                    let (x, w) = (self.x[k] - self.at[i1], self.w[k] + self.first[k][i1]);
                    let second: &[f32; 8] = eight(&self.second[k], start);
                    let (mut have, mut need) = ([0.0; 8], [0.0; 8]);
                    for lane in 0..8 {
                        let qx = x - at[lane];
                        have[lane] = qx * qx;
                        need[lane] = floor * (w + second[lane]);
                    }
                    masks[k] = simd.greater(have, need);
                }
                let mut mask = masks.iter().fold(0, |all, mask| all | mask);
                while mask != 0 {
                    let lane = mask.trailing_zeros();
                    for k in 0..K {
                        if masks[k] >> lane & 1 == 1 {
                            visit(i1, start + lane as usize, k);
                        }
                    }
                    mask &= mask - 1;
                }
            }
        }
    }
}

#[inline(always)]
fn eight(x: &[f32], start: usize) -> &[f32; 8] {
    x[start..].first_chunk().expect("padded to whole vectors")
}

/// The split that ggml ends with, `None` if no split has a positive `sumq2`.
///
/// `weights` is the sum of the weights. The estimate is used only where it is sound: for weights that
/// are not negative, and where no square underflows or overflows.
#[inline(always)]
pub(super) fn best_split<S: Simd, const K: usize, const P: usize>(
    simd: S,
    sums: &impl Sums<K>,
    bounds: usize,
    estimate: Option<&Estimate<K, P>>,
    weights: f32,
) -> Option<Split> {
    if let Some(estimate) = estimate {
        let good = estimate.good_score(simd, bounds);
        let size = good * weights;
        if size > 1e-24 && size < 1e24 && weights > 1e-24 && weights < 1e24 {
            let floor = good * 0.999;
            let mut best = None;
            estimate.above(
                simd,
                bounds,
                good * 0.998,
                #[inline(always)]
                |i1, i2, k| try_split(sums, (i1, i2), k, floor, &mut best),
            );
            if let Some((split, first)) = best
                && first > floor * 1.000_01
            {
                return Some(split);
            }
        }
    }
    let mut best = None;
    for i1 in 0..=bounds {
        for i2 in i1..=bounds {
            for k in 0..K {
                try_split(sums, (i1, i2), k, -f32::MAX, &mut best);
            }
        }
    }
    best.map(|(split, _)| split)
}

/// One step of ggml's loop. With the best split comes the score of the first that was taken.
#[inline(always)]
fn try_split<const K: usize>(
    sums: &impl Sums<K>,
    bounds: (usize, usize),
    shift: usize,
    floor: f32,
    best: &mut Option<(Split, f32)>,
) {
    let (sumqx, sumq2) = sums.exact(bounds.0, bounds.1, shift);
    let score = best.map_or(floor, |(split, _)| split.score);
    if sumq2 > 0.0 && sumqx * sumqx > score * sumq2 {
        let scale = sumqx / sumq2;
        let score = scale * sumqx;
        let first = best.map_or(score, |(_, first)| first);
        *best = Some((Split { bounds, shift, scale, score }, first));
    }
}

#[cfg(test)]
mod tests;

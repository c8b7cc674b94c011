//! ggml's `make_qkx2_quants` and `make_qkx3_quants`: a scale and a minimum for levels `0..=nmax`.
//!
//! Each step rounds with an inverse scale, fits scale and minimum to the levels by weighted least
//! squares, and keeps the fit if its error is the lowest. The next inverse scale depends on the
//! kept minimum. Levels are not stored: `(iscale, base)` of the kept step give them again.

use crate::lanes::{Lanes, nearest_int};

/// Beyond this magnitude `nearest_int` wraps.
const NEAREST_LIMIT: f32 = 4_194_303.0;

/// What the search found for one sub-block per lane.
#[derive(Clone, Copy)]
pub(crate) struct Fit<V: Lanes> {
    /// The scale of the levels.
    pub(crate) scale: V,
    /// What is subtracted after scaling: ggml's `the_min`, the minimum negated.
    pub(crate) min: V,
    /// Inverse scale and offset whose rounded products are the levels.
    pub(crate) iscale: V,
    pub(crate) base: V,
    /// 1 where no step beat the first guess, which alone rounds before it clamps; else 0.
    pub(crate) guess: V,
}

impl<V: Lanes> Fit<V> {
    /// A sub-block of equal weights without a scale.
    #[inline(always)]
    pub(crate) fn flat(min: V) -> Self {
        let zero = min.splat(0.0);
        Self { scale: zero, min, iscale: zero, base: zero, guess: zero }
    }

    /// The levels that the search gave one lane's sub-block `x`. `clamp_first` as in the search.
    #[inline(always)]
    pub(crate) fn search_levels(
        &self,
        lane: usize,
        x: &[f32],
        clamp_first: bool,
        nmax: i32,
        levels: &mut [u8],
    ) {
        let (iscale, base, top) = (self.iscale.get(lane), self.base.get(lane), nmax as f32);
        let clamp_first = clamp_first && self.guess.get(lane) == 0.0;
        for (level, x) in levels.iter_mut().zip(x) {
            let v = iscale * (x - base);
            let clamped = nearest_int(v.max_gt(0.0).min_lt(top));
            *level = if clamp_first { clamped } else { nearest_int(v).min(nmax).max(0) } as u8;
        }
    }
}

/// The numerators `rmin + rdelta * i + nmax` of the steps' inverse scales.
pub(crate) fn steps<const K: usize>(rmin: f32, rdelta: f32, nmax: f32) -> [f32; K] {
    core::array::from_fn(|i| rmin + rdelta * i as f32 + nmax)
}

/// `MAD`: errors are absolute differences, not squares. `CLAMP_FIRST`: the `qkx3` form, which
/// clamps before it rounds and calls a sub-block flat at `max <= min`.
#[inline(always)]
pub(crate) fn qkx<V: Lanes, const N: usize, const MAD: bool, const CLAMP_FIRST: bool>(
    x: &[V; N],
    w: &[V; N],
    nmax: f32,
    numerators: &[f32],
) -> Fit<V> {
    let zero = x[0].splat(0.0);
    let top = zero.splat(nmax);
    let (mut lowest, mut max, mut sum_w) = (x[0], x[0], w[0]);
    let mut sum_x = sum_w * x[0];
    for i in 1..N {
        lowest = x[i].min_lt(lowest);
        max = x[i].max_gt(max);
        sum_w = sum_w + w[i];
        sum_x = sum_x + w[i] * x[i];
    }
    // `if (min > 0) min = 0` keeps a -0.0.
    let first_min = zero.min_lt(lowest);
    let flat = if CLAMP_FIRST { max.le(first_min) } else { max.eq(first_min) };
    if zero.all(flat) {
        return Fit::flat(-first_min);
    }
    let extremes = Extremes { lowest, max, flat };

    let mut min = first_min;
    let mut iscale = top / (max - min);
    let mut scale = zero.splat(1.0) / iscale;
    let mut best = zero;
    let fast = extremes.in_range(iscale, min);
    for i in 0..N {
        let v = iscale * (x[i] - min);
        let l = if fast { v.level(zero, top) } else { v.nearest_wrapping().max_gt(zero).min_lt(top) };
        best = best + w[i] * error::<V, MAD>(scale * l + min - x[i]);
    }
    let mut kept = (iscale, min);
    let mut guess = zero.splat(1.0);
    let mut levels = [zero; N];
    for &numerator in numerators {
        iscale = zero.splat(numerator) / (max - min);
        let sums = if CLAMP_FIRST || extremes.in_range(iscale, min) {
            round::<V, N, false>(x, w, iscale, min, top, &mut levels)
        } else {
            round::<V, N, true>(x, w, iscale, min, top, &mut levels)
        };
        let Sums { l, l2, xl } = sums;
        let det = sum_w * l2 - l * l;
        let mut this_scale = (sum_w * xl - sum_x * l) / det;
        let mut this_min = (l2 * sum_x - l * xl) / det;
        let positive = this_min.gt(zero);
        this_min = V::select(positive, zero, this_min);
        this_scale = V::select(positive, xl / l2, this_scale);
        let mut err = zero;
        for i in 0..N {
            err = err + w[i] * error::<V, MAD>(this_scale * levels[i] + this_min - x[i]);
        }
        let better = det.gt(zero) & err.lt(best);
        kept = (V::select(better, iscale, kept.0), V::select(better, min, kept.1));
        guess = V::select(better, zero, guess);
        best = V::select(better, err, best);
        scale = V::select(better, this_scale, scale);
        min = V::select(better, this_min, min);
    }
    Fit {
        scale: V::select(flat, zero, scale),
        min: V::select(flat, -first_min, -min),
        iscale: V::select(flat, zero, kept.0),
        base: V::select(flat, zero, kept.1),
        guess: V::select(flat, zero, guess),
    }
}

/// The smallest and the largest element, and which lanes have no search to do.
struct Extremes<V: Lanes> {
    lowest: V,
    max: V,
    flat: V::Mask,
}

impl<V: Lanes> Extremes<V> {
    /// Whether no product of a step makes `nearest_int` wrap. Rounding is monotone, so the two
    /// extremes bound them all. Flat lanes hold infinities and must not send their neighbours to
    /// the wrapping form.
    #[inline(always)]
    fn in_range(&self, iscale: V, min: V) -> bool {
        let limit = min.splat(NEAREST_LIMIT);
        let high = (iscale * (self.max - min)).abs().le(limit);
        let low = (iscale * (self.lowest - min)).abs().le(limit);
        !min.any(!self.flat & !(high & low))
    }
}

#[inline(always)]
fn error<V: Lanes, const MAD: bool>(diff: V) -> V {
    if MAD { diff.abs() } else { diff * diff }
}

struct Sums<V> {
    l: V,
    l2: V,
    xl: V,
}

/// The levels of one step and their weighted sums. `WRAPPING`: some product may be out of range.
#[inline(always)]
fn round<V: Lanes, const N: usize, const WRAPPING: bool>(
    x: &[V; N],
    w: &[V; N],
    iscale: V,
    min: V,
    top: V,
    levels: &mut [V; N],
) -> Sums<V> {
    let zero = x[0].splat(0.0);
    let mut sums = Sums { l: zero, l2: zero, xl: zero };
    for i in 0..N {
        let v = iscale * (x[i] - min);
        let l = if WRAPPING { v.nearest_wrapping().max_gt(zero).min_lt(top) } else { v.level(zero, top) };
        levels[i] = l;
        let wl = w[i] * l;
        sums.l = sums.l + wl;
        sums.l2 = sums.l2 + wl * l;
        sums.xl = sums.xl + wl * x[i];
    }
    sums
}

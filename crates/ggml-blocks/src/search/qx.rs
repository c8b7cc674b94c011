//! ggml's `make_qx_quants` with `rmse_type` 1: a scale for levels `-nmax..nmax`, found by trying
//! 19 scales around `-nmax / max`.

use super::{GROUP_MAX_EPS, signed_max};
use crate::lanes::Lanes;

/// The scale, and the inverse scale whose rounded products are the levels (NaN where all is zero).
/// `w` are the weights. `WRAPPING`: `x` may be NaN or infinite, which round as in `nearest_int`.
#[inline(always)]
pub(crate) fn qx<V: Lanes, const N: usize, const WRAPPING: bool>(
    x: &[V; N],
    w: &[V; N],
    nmax: f32,
) -> (V, V) {
    let zero = x[0].splat(0.0);
    let (amax, max) = signed_max(x);
    let dead = amax.lt(zero.splat(GROUP_MAX_EPS));
    if zero.all(dead) {
        return (zero, zero.splat(f32::NAN));
    }
    let mut wx = [zero; N];
    for i in 0..N {
        wx[i] = w[i] * x[i];
    }
    let mut iscale = zero.splat(-nmax) / max;
    let (sumlx, suml2) = sums::<V, N, WRAPPING>(x, w, &wx, nmax, iscale);
    let mut scale = V::select(suml2.ne(zero), sumlx / suml2, zero);
    let mut best = scale * sumlx;
    for step in -9..=9_i8 {
        if step == 0 {
            continue;
        }
        let candidate = zero.splat(-(nmax + 0.1 * f32::from(step))) / max;
        let (sumlx, suml2) = sums::<V, N, WRAPPING>(x, w, &wx, nmax, candidate);
        let better = suml2.gt(zero) & (sumlx * sumlx).gt(best * suml2);
        let fitted = sumlx / suml2;
        scale = V::select(better, fitted, scale);
        best = V::select(better, fitted * sumlx, best);
        iscale = V::select(better, candidate, iscale);
    }
    (V::select(dead, zero, scale), V::select(dead, zero.splat(f32::NAN), iscale))
}

/// `sum w*x*l` and `sum w*l*l` over the levels of one inverse scale.
#[inline(always)]
fn sums<V: Lanes, const N: usize, const WRAPPING: bool>(
    x: &[V; N],
    w: &[V; N],
    wx: &[V; N],
    nmax: f32,
    iscale: V,
) -> (V, V) {
    let (lo, hi) = (iscale.splat(-nmax), iscale.splat(nmax - 1.0));
    let zero = iscale.splat(0.0);
    let (mut sumlx, mut suml2) = (zero, zero);
    for i in 0..N {
        let v = iscale * x[i];
        // Of finite elements, |v| <= nmax + 0.9: far from where `nearest_int` wraps.
        let l = if WRAPPING { v.nearest_wrapping().max_gt(lo).min_lt(hi) } else { v.level(lo, hi) };
        sumlx = sumlx + wx[i] * l;
        suml2 = suml2 + w[i] * l * l;
    }
    (sumlx, suml2)
}

//! The search of `IQ4_NL` and `IQ4_XS`: a scale for the 16 uneven levels of ggml's `kvalues_iq4nl`.

use super::{GROUP_MAX_EPS, signed_max};
use crate::grid::IQ4_LEVELS;
use crate::lanes::Lanes;

/// From this value on, level `i + 1` is nearer than `i`. ggml compares the two distances in f32;
/// near the middle both are exact, so the middle decides, and it goes to the upper level.
const MIDDLES: [f32; 15] = {
    let mut m = [0.0; 15];
    let mut i = 0;
    while i < 15 {
        m[i] = (IQ4_LEVELS[i] as f32 + IQ4_LEVELS[i + 1] as f32) * 0.5;
        i += 1;
    }
    m
};

/// The level nearest to `x`, by value. `x` is not NaN.
#[inline(always)]
fn nearest_value<V: Lanes>(x: V) -> V {
    let mut value = x.splat(f32::from(IQ4_LEVELS[0]));
    for i in 0..15 {
        value = V::select(x.ge(x.splat(MIDDLES[i])), x.splat(f32::from(IQ4_LEVELS[i + 1])), value);
    }
    value
}

/// The index of the level nearest to `x`; 15 for NaN, as ggml's bisection ends.
#[inline(always)]
pub(crate) fn iq4_index(x: f32) -> u8 {
    let mut index = 15;
    for m in MIDDLES {
        index -= u8::from(x < m);
    }
    index
}

/// The scale that ggml's search with `ntry` 7 finds for 32 elements under weights `w`.
#[inline(always)]
pub(crate) fn iq4_scale<V: Lanes>(x: &[V; 32], w: &[V; 32]) -> V {
    let zero = x[0].splat(0.0);
    let (amax, max) = signed_max(x);
    let dead = amax.lt(zero.splat(GROUP_MAX_EPS));
    if zero.all(dead) {
        return zero;
    }
    let first = f32::from(IQ4_LEVELS[0]);
    let (sumqx, sumq2) = sums(x, w, zero.splat(1.0) / (-max / zero.splat(first)));
    let mut scale = V::select(sumq2.gt(zero), sumqx / sumq2, zero);
    let mut best = scale * sumqx;
    for step in -7..=7_i8 {
        let (sumqx, sumq2) = sums(x, w, zero.splat(f32::from(step) + first) / max);
        let better = sumq2.gt(zero) & (sumqx * sumqx).gt(best * sumq2);
        let fitted = sumqx / sumq2;
        scale = V::select(better, fitted, scale);
        best = V::select(better, fitted * sumqx, best);
    }
    V::select(dead, zero, scale)
}

/// `sum w*q*x` and `sum w*q*q` over the levels of one inverse scale.
#[inline(always)]
fn sums<V: Lanes>(x: &[V; 32], w: &[V; 32], iscale: V) -> (V, V) {
    let zero = iscale.splat(0.0);
    let (mut sumqx, mut sumq2) = (zero, zero);
    for i in 0..32 {
        let q = nearest_value(iscale * x[i]);
        let wq = w[i] * q;
        sumqx = sumqx + wq * x[i];
        sumq2 = sumq2 + wq * q;
    }
    (sumqx, sumq2)
}

//! ggml's `make_q3_quants` with `do_rmse`: levels `-nmax..nmax` of 16 elements, refined one by one
//! until a pass changes nothing.
//!
//! A pass is a chain through two running sums. Few elements want another level, so a group of
//! lanes skips the update with a predicted branch, which takes it off the chain. A lane that is
//! done repeats a pass without effect while its neighbours go on.

use super::{GROUP_MAX_EPS, signed_max};
use crate::lanes::Lanes;

/// The scale and, in `levels`, one level per element (`-nmax` where all is zero: ggml's stored 0).
#[inline(always)]
pub(crate) fn q3<V: Lanes>(x: &[V; 16], nmax: f32, levels: &mut [V; 16]) -> V {
    let zero = x[0].splat(0.0);
    let (lo, hi) = (zero.splat(-nmax), zero.splat(nmax - 1.0));
    let (amax, max) = signed_max(x);
    let dead = amax.lt(zero.splat(GROUP_MAX_EPS));
    *levels = [lo; 16];
    if zero.all(dead) {
        return zero;
    }
    let live = !dead;
    let iscale = lo / max;
    let (mut w, mut wx, mut l) = ([zero; 16], [zero; 16], [zero; 16]);
    let (mut sumlx, mut suml2) = (zero, zero);
    for i in 0..16 {
        l[i] = (iscale * x[i]).level(lo, hi);
        w[i] = x[i] * x[i];
        wx[i] = w[i] * x[i];
        sumlx = sumlx + wx[i] * l[i];
        suml2 = suml2 + w[i] * l[i] * l[i];
    }
    for _ in 0..5 {
        let mut changed = false;
        for i in 0..16 {
            let slx = sumlx - wx[i] * l[i];
            let sl2 = suml2 - w[i] * l[i] * l[i];
            let new = (x[i] * sl2 / slx).nearest_wrapping().max_gt(lo).min_lt(hi);
            let wants = slx.gt(zero) & live & new.ne(l[i]);
            if zero.any(wants) {
                let slx = slx + wx[i] * new;
                let sl2 = sl2 + w[i] * new * new;
                let better = wants & sl2.gt(zero) & (slx * slx * suml2).gt(sumlx * sumlx * sl2);
                changed |= zero.any(better);
                l[i] = V::select(better, new, l[i]);
                sumlx = V::select(better, slx, sumlx);
                suml2 = V::select(better, sl2, suml2);
            }
        }
        if !changed {
            break;
        }
    }
    for i in 0..16 {
        levels[i] = V::select(dead, lo, l[i]);
    }
    V::select(dead, zero, V::select(suml2.gt(zero), sumlx / suml2, zero))
}

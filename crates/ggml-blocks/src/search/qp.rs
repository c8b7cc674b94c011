//! ggml's `make_qp_quants`: non-negative levels `0..=nmax` for the scales (or minima) of a
//! super-block, refined level by level under weights.

use super::GROUP_MAX_EPS;
use crate::lanes::Lanes;

/// The block scale and, in `levels`, one level per element. ggml keeps levels in a `uint8_t`, so a
/// negative one wraps there.
#[inline(always)]
pub(crate) fn qp<V: Lanes, const N: usize>(x: &[V; N], w: &[V; N], nmax: f32, levels: &mut [V; N]) -> V {
    let zero = x[0].splat(0.0);
    let top = zero.splat(nmax);
    *levels = [zero; N];
    let mut max = zero;
    for &v in x {
        max = max.max_gt(v);
    }
    let dead = max.lt(zero.splat(GROUP_MAX_EPS));
    if zero.all(dead) {
        return zero;
    }
    let mut iscale = top / max;
    let scale = zero.splat(1.0) / iscale;
    let mut best = zero;
    for i in 0..N {
        let diff = x[i] - scale * as_u8((iscale * x[i]).nearest_wrapping());
        best = best + w[i] * diff * diff;
    }
    for step in -4..=4_i8 {
        if step == 0 {
            continue;
        }
        let candidate = zero.splat(0.1 * f32::from(step) + nmax) / max;
        let scale = zero.splat(1.0) / candidate;
        let mut err = zero;
        for i in 0..N {
            let diff = x[i] - scale * (candidate * x[i]).nearest_wrapping().min_lt(top);
            err = err + w[i] * diff * diff;
        }
        let better = err.lt(best);
        best = V::select(better, err, best);
        iscale = V::select(better, candidate, iscale);
    }
    let (mut sumlx, mut suml2) = (zero, zero);
    for i in 0..N {
        let l = (iscale * x[i]).nearest_wrapping().min_lt(top);
        levels[i] = as_u8(l);
        sumlx = sumlx + w[i] * x[i] * l;
        suml2 = suml2 + w[i] * l * l;
    }
    for _ in 0..5 {
        let mut changed = false;
        // A second buffer: a select onto memory would become a masked store, slow on AMD.
        let mut next = [zero; N];
        for i in 0..N {
            let (wx, l) = (w[i] * x[i], levels[i]);
            let slx = sumlx - wx * l;
            let sl2 = suml2 - w[i] * l * l;
            let new = (x[i] * sl2 / slx).nearest_wrapping().min_lt(top);
            let slx2 = slx + wx * new;
            let sl22 = sl2 + w[i] * new * new;
            let better =
                slx.gt(zero) & sl2.gt(zero) & new.ne(l) & (slx2 * slx2 * suml2).gt(sumlx * sumlx * sl22);
            next[i] = V::select(better, as_u8(new), l);
            sumlx = V::select(better, slx2, sumlx);
            suml2 = V::select(better, sl22, suml2);
            changed |= zero.any(better);
        }
        *levels = next;
        if !changed {
            break;
        }
    }
    for l in levels.iter_mut() {
        *l = V::select(dead, zero, *l);
    }
    V::select(dead, zero, V::select(suml2.gt(zero), sumlx / suml2, zero))
}

/// An integer of 24 bits stored in a `uint8_t`: its value modulo 256.
#[inline(always)]
fn as_u8<V: Lanes>(l: V) -> V {
    // Round to a multiple of 256 below: exact, since |l| < 2^23.
    let (step, inverse) = (l.splat(256.0), l.splat(1.0 / 256.0));
    let mut down = (l * inverse).nearest() * step;
    down = V::select(down.gt(l), down - step, down);
    l - down
}

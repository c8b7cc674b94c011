//! The searches that the encoders share: for one sub-block per lane, the scale (and offset) that
//! ggml's scalar search would find, by the same f32 operations in the same order.
//!
//! Products keep ggml's grouping (`w*x*l` is `(w*x)*l`), nothing is fused, and comparisons are the
//! ordered ones: false with NaN.

mod codebook;
mod q3;
mod qkx;
mod qp;
mod qx;

pub(crate) use codebook::{iq4_index, iq4_scale};
pub(crate) use q3::q3;
pub(crate) use qkx::{Fit, qkx, steps};
pub(crate) use qp::qp;
pub(crate) use qx::qx;

use crate::lanes::Lanes;

/// Sub-blocks whose largest magnitude is below this count as all zero.
pub(crate) const GROUP_MAX_EPS: f32 = 1e-15;

/// The largest magnitude and the first element that has it.
#[inline(always)]
fn signed_max<V: Lanes, const N: usize>(x: &[V; N]) -> (V, V) {
    let zero = x[0].splat(0.0);
    let (mut amax, mut max) = (zero, zero);
    for &v in x {
        let a = v.abs();
        let more = a.gt(amax);
        max = V::select(more, v, max);
        amax = V::select(more, a, amax);
    }
    (amax, max)
}

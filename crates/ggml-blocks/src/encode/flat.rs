//! Reductions and roundings over the weights of one block, in loops that vectorise.

/// The largest magnitude. A maximum of finite numbers is the same in any order.
#[inline(always)]
pub(crate) fn largest_magnitude<const N: usize>(x: &[f32; N]) -> f32 {
    reduce(x, |v| v.abs(), |a, b| if a > b { a } else { b })
}

/// Smallest and largest weight. Of zeros, the smallest is the first and the largest has no sign.
#[inline(always)]
pub(crate) fn extremes<const N: usize>(x: &[f32; N]) -> (f32, f32) {
    let min = reduce(x, |v| v, |a, b| if a < b { a } else { b });
    let max = reduce(x, |v| v, |a, b| if a > b { a } else { b });
    (if min == 0.0 { first_zero(x) } else { min }, max + 0.0)
}

#[cold]
#[inline(never)]
fn first_zero(x: &[f32]) -> f32 {
    x.iter().copied().find(|&v| v == 0.0).unwrap_or(0.0)
}

/// The first weight of the largest magnitude, with its sign; 0.0 for zeros of any sign.
#[inline(always)]
pub(crate) fn signed_largest<const N: usize>(x: &[f32; N]) -> f32 {
    let min = reduce(x, |v| v, |a, b| if a < b { a } else { b });
    let max = reduce(x, |v| v, |a, b| if a > b { a } else { b });
    if max > -min {
        max
    } else if max < -min {
        min
    } else if max == 0.0 {
        0.0
    } else {
        first_of(x, max)
    }
}

/// Both `m` and `-m` occur: the first wins.
#[cold]
#[inline(never)]
fn first_of(x: &[f32], m: f32) -> f32 {
    x.iter().copied().find(|v| v.abs() == m).unwrap_or(m)
}

/// Eight running results, then a tree.
#[inline(always)]
fn reduce<const N: usize>(x: &[f32; N], of: impl Fn(f32) -> f32, op: impl Fn(f32, f32) -> f32) -> f32 {
    let mut acc: [f32; 8] = core::array::from_fn(|i| of(x[i]));
    for c in 1..N / 8 {
        for i in 0..8 {
            acc[i] = op(acc[i], of(x[8 * c + i]));
        }
    }
    for width in [4, 2, 1] {
        for i in 0..width {
            acc[i] = op(acc[i], acc[width + i]);
        }
    }
    acc[0]
}

/// `1 / d`, or 0 for 0. Infinite where `d` is below 2^-128: callers give such blocks the levels
/// that ggml's conversion of infinities and NaN to integers gives.
#[inline(always)]
pub(crate) fn inverse(d: f32) -> f32 {
    if d == 0.0 { 0.0 } else { 1.0 / d }
}

/// Rounds half away from zero, as `roundf`, to a signed byte. `|v|` is below 2^22.
#[inline(always)]
pub(crate) fn round_away(v: f32) -> i8 {
    // The largest number below a half: adding it cannot carry a smaller fraction over.
    const BELOW_HALF: f32 = 0.5_f32.next_down();
    truncate(v + BELOW_HALF.copysign(v)) as i8
}

/// The integer part of a number within ±2^22.
#[inline(always)]
pub(crate) fn truncate(v: f32) -> i32 {
    v as i32
}

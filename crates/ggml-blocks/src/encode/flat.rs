//! Reductions and roundings over the weights of eight blocks: what a block has one of, its extremes
//! and its scale, stands in vectors with a lane per block.

use crate::half::F16;
use crate::simd::{F8, M8, Simd, each};

/// Scales from here on round to infinity in f16.
const F16_OVERFLOW: f32 = 65520.0;

/// The largest magnitude of each block; not finite where a weight is not.
#[inline(always)]
pub(crate) fn magnitudes<S: Simd, const N: usize>(simd: S, x: &[[f32; N]; 8]) -> F8 {
    let [largest] = fold(
        simd,
        x,
        #[inline(always)]
        |x| [each(x, f32::abs)],
        // As integers, which order NaN above infinity.
        #[inline(always)]
        |[a], [b]| {
            [core::array::from_fn(
                #[inline(always)]
                |i| f32::from_bits(a[i].to_bits().max(b[i].to_bits())),
            )]
        },
    );
    largest
}

/// Smallest and largest weight of each block. Of zeros, the smallest is the first and the largest has
/// no sign.
#[inline(always)]
pub(crate) fn extremes<S: Simd, const N: usize>(simd: S, x: &[[f32; N]; 8]) -> (F8, F8) {
    let (mut min, max) = min_and_max(simd, x);
    if simd.any(simd.eq(min, simd.splat(0.0))) {
        min = first_zeros(x, min);
    }
    (min, simd.add(max, simd.splat(0.0)))
}

#[cold]
#[inline(never)]
fn first_zeros<const N: usize>(x: &[[f32; N]; 8], mut min: F8) -> F8 {
    for (min, x) in min.iter_mut().zip(x) {
        if *min == 0.0 {
            *min = first_of(x, 0.0);
        }
    }
    min
}

/// The first weight of the largest magnitude of each block, with its sign; 0.0 for zeros of any sign.
#[inline(always)]
pub(crate) fn signed_largest<S: Simd, const N: usize>(simd: S, x: &[[f32; N]; 8]) -> F8 {
    let (min, max) = min_and_max(simd, x);
    let opposite = each(
        min,
        #[inline(always)]
        |min| -min,
    );
    let largest = simd.select(simd.gt(max, opposite), max, min);
    if simd.any(simd.eq(max, opposite)) { first_largest(x, largest, opposite) } else { largest }
}

/// Both signs of the largest magnitude occur: the first wins.
#[cold]
#[inline(never)]
fn first_largest<const N: usize>(x: &[[f32; N]; 8], mut largest: F8, opposite: F8) -> F8 {
    for b in 0..8 {
        if largest[b].abs() == opposite[b] {
            largest[b] = if opposite[b] == 0.0 { 0.0 } else { first_of(&x[b], opposite[b]) };
        }
    }
    largest
}

/// Smallest and largest weight of each block; which of two zeros is not said.
#[inline(always)]
fn min_and_max<S: Simd, const N: usize>(simd: S, x: &[[f32; N]; 8]) -> (F8, F8) {
    let [min, max] = fold(
        simd,
        x,
        #[inline(always)]
        |x| [x, x],
        #[inline(always)]
        |a, b| [simd.min(a[0], b[0]), simd.max(a[1], b[1])],
    );
    (min, max)
}

/// The first weight of the magnitude `m`, which occurs.
fn first_of(x: &[f32], m: f32) -> f32 {
    x.iter().copied().find(|v| v.abs() == m).unwrap_or(m)
}

/// Folds each block to one lane of `K` vectors. Maximum and minimum of finite numbers are the same in
/// any order.
#[inline(always)]
fn fold<S: Simd, const N: usize, const K: usize>(
    simd: S,
    x: &[[f32; N]; 8],
    of: impl Fn(F8) -> [F8; K],
    op: impl Fn([F8; K], [F8; K]) -> [F8; K],
) -> [F8; K] {
    let mut fours = [[[0.0; 8]; K]; 2];
    for (four, x) in fours.iter_mut().zip(x.as_chunks::<4>().0) {
        let mut twos = [[[0.0; 8]; K]; 2];
        for (two, x) in twos.iter_mut().zip(x.as_chunks::<2>().0) {
            let (a, b) = (fold_one(&x[0], &of, &op), fold_one(&x[1], &of, &op));
            let (low, high) = unzip(
                a,
                b,
                #[inline(always)]
                |a, b| simd.halves_of_fours(a, b),
            );
            *two = op(low, high);
        }
        let (low, high) = unzip(
            twos[0],
            twos[1],
            #[inline(always)]
            |a, b| simd.halves_of_twos(a, b),
        );
        *four = op(low, high);
    }
    let (low, high) = unzip(
        fours[0],
        fours[1],
        #[inline(always)]
        |a, b| simd.halves_of_eights(a, b),
    );
    op(low, high)
}

#[inline(always)]
fn fold_one<const N: usize, const K: usize>(
    x: &[f32; N],
    of: impl Fn(F8) -> [F8; K],
    op: impl Fn([F8; K], [F8; K]) -> [F8; K],
) -> [F8; K] {
    let chunks = x.as_chunks::<8>().0;
    let mut acc = of(chunks[0]);
    for &chunk in &chunks[1..] {
        acc = op(acc, of(chunk));
    }
    acc
}

#[inline(always)]
fn unzip<const K: usize>(a: [F8; K], b: [F8; K], halves: impl Fn(F8, F8) -> [F8; 2]) -> ([F8; K], [F8; K]) {
    let (mut low, mut high) = (a, b);
    for k in 0..K {
        [low[k], high[k]] = halves(a[k], b[k]);
    }
    (low, high)
}

/// `1 / d`, or 0 where that is infinite, and whether `d` is not 0 there: below 2^-128. Callers give
/// such blocks the levels that ggml's conversion of infinities and NaN to integers gives.
#[inline(always)]
pub(crate) fn inverses<S: Simd>(simd: S, d: F8) -> (F8, M8) {
    let k = simd.div(simd.splat(1.0), d);
    let infinite = simd.eq(each(k, f32::abs), simd.splat(f32::INFINITY));
    let zero = simd.eq(d, simd.splat(0.0));
    let mut overflow = infinite;
    for b in 0..8 {
        overflow[b] &= !zero[b];
    }
    (simd.select(infinite, simd.splat(0.0), k), overflow)
}

/// Eight numbers rounded to f16, and where they overflow. NaN is not told.
#[inline(always)]
pub(crate) fn halves<S: Simd>(simd: S, x: F8) -> ([F16; 8], M8) {
    let overflow = simd.ge(each(x, f32::abs), simd.splat(F16_OVERFLOW));
    (each(simd.round8(x), F16::from_bits), overflow)
}

/// Where numbers are NaN or infinite.
#[inline(always)]
pub(crate) fn non_finite(x: F8) -> M8 {
    each(
        x,
        #[inline(always)]
        |x| if x.to_bits() & 0x7FFF_FFFF >= f32::INFINITY.to_bits() { u32::MAX } else { 0 },
    )
}

/// Where either is set.
#[inline(always)]
pub(crate) fn either(a: M8, b: M8) -> M8 {
    let mut out = a;
    for i in 0..8 {
        out[i] |= b[i];
    }
    out
}

/// `of` eight weights at a time.
#[inline(always)]
pub(crate) fn by_eights(x: &[f32; 32], of: impl Fn(F8) -> [i32; 8]) -> [[i32; 8]; 4] {
    let mut out = [[0; 8]; 4];
    for (out, x) in out.iter_mut().zip(x.as_chunks().0) {
        *out = of(*x);
    }
    out
}

/// Rounds half away from zero, as `roundf`. Magnitudes are below 2^22.
#[inline(always)]
pub(crate) fn round_away<S: Simd>(simd: S, v: F8) -> [i32; 8] {
    // The largest number below a half: adding it cannot carry a smaller fraction over.
    const BELOW_HALF: u32 = 0.5_f32.next_down().to_bits();
    let nudge = each(
        v,
        #[inline(always)]
        |v| f32::from_bits(v.to_bits() & 1 << 31 | BELOW_HALF),
    );
    simd.truncate(simd.add(v, nudge))
}

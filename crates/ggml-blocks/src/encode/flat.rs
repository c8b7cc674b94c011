//! Reductions and roundings over the weights of one block, in loops that vectorise.

use crate::half::F16;
use crate::simd::{F8, Simd, each};

/// The largest magnitude. A maximum of finite numbers is the same in any order.
#[inline(always)]
pub(crate) fn largest_magnitude<S: Simd, const N: usize>(simd: S, x: &[f32; N]) -> f32 {
    reduce(
        simd,
        x,
        #[inline(always)]
        |x| each(x, f32::abs),
        S::max,
    )
}

/// Smallest and largest weight. Of zeros, the smallest is the first and the largest has no sign.
#[inline(always)]
pub(crate) fn extremes<S: Simd, const N: usize>(simd: S, x: &[f32; N]) -> (f32, f32) {
    let (min, max) = min_and_max(simd, x);
    (if min == 0.0 { first_zero(x) } else { min }, max + 0.0)
}

/// Smallest and largest weight; which of two zeros is not said. The last steps take both at once: the
/// largest is the smallest of the negated.
#[inline(always)]
fn min_and_max<S: Simd, const N: usize>(simd: S, x: &[f32; N]) -> (f32, f32) {
    let (chunks, _) = x.as_chunks::<8>();
    let (mut lo, mut hi) = (chunks[0], chunks[0]);
    for &chunk in &chunks[1..] {
        lo = simd.min(lo, chunk);
        hi = simd.max(hi, chunk);
    }
    let [a, b, c, d, e, f, g, h] = lo;
    lo = simd.min(lo, [e, f, g, h, a, b, c, d]);
    let [a, b, c, d, e, f, g, h] = hi;
    hi = simd.max(hi, [e, f, g, h, a, b, c, d]);
    let [a, b, c, d, ..] = lo;
    let [e, f, g, h, ..] = hi;
    let both = simd.min([a, b, c, d, -e, -f, -g, -h], [c, d, a, b, -g, -h, -e, -f]);
    let [a, b, _, _, e, f, ..] = both;
    let both = simd.min([a, a, a, a, e, e, e, e], [b, b, b, b, f, f, f, f]);
    (both[0], -both[4])
}

#[cold]
#[inline(never)]
fn first_zero(x: &[f32]) -> f32 {
    x.iter().copied().find(|&v| v == 0.0).unwrap_or(0.0)
}

/// The first weight of the largest magnitude, with its sign; 0.0 for zeros of any sign.
#[inline(always)]
pub(crate) fn signed_largest<S: Simd, const N: usize>(simd: S, x: &[f32; N]) -> f32 {
    let (min, max) = min_and_max(simd, x);
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

/// Eight running results, then halves of them.
#[inline(always)]
fn reduce<S: Simd, const N: usize>(
    simd: S,
    x: &[f32; N],
    of: impl Fn(F8) -> F8,
    op: impl Fn(S, F8, F8) -> F8,
) -> f32 {
    let (chunks, _) = x.as_chunks::<8>();
    let mut acc = of(chunks[0]);
    for &chunk in &chunks[1..] {
        acc = op(simd, acc, of(chunk));
    }
    let [a, b, c, d, e, f, g, h] = acc;
    acc = op(simd, acc, [e, f, g, h, a, b, c, d]);
    let [a, b, c, d, ..] = acc;
    acc = op(simd, acc, [c, d, a, b, c, d, a, b]);
    let [a, b, ..] = acc;
    op(simd, acc, [b, a, b, a, b, a, b, a])[0]
}

/// `1 / d`, or 0 for 0. Infinite where `d` is below 2^-128: callers give such blocks the levels
/// that ggml's conversion of infinities and NaN to integers gives.
#[inline(always)]
pub(crate) fn inverse(d: f32) -> f32 {
    if d == 0.0 { 0.0 } else { 1.0 / d }
}

/// Two numbers rounded to f16 at once.
#[inline(always)]
pub(crate) fn halves<S: Simd>(simd: S, a: f32, b: f32) -> (F16, F16) {
    let h = simd.round8([a, b, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    (F16::from_bits(h[0]), F16::from_bits(h[1]))
}

/// `of` eight weights at a time, narrowed to bytes: it gives integers of -128..=127.
#[inline(always)]
pub(crate) fn bytes_of<S: Simd, const N: usize>(
    simd: S,
    x: &[f32; N],
    of: impl Fn(F8) -> [i32; 8],
) -> [u8; N] {
    let mut out = [0; N];
    for (out, x) in out.chunks_mut(32).zip(x.chunks(32)) {
        let mut wide = [[0; 8]; 4];
        for (wide, x) in wide.iter_mut().zip(x.as_chunks().0) {
            *wide = of(*x);
        }
        let bytes: [u8; 32] = bytemuck::must_cast(simd.narrow32(wide));
        out.copy_from_slice(&bytes[..out.len()]);
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

/// The low four bits of two levels per byte, 16 weights apart. In words: bytes would be moved one by
/// one.
#[inline(always)]
pub(crate) fn nibbles(levels: &[u8; 32]) -> [u8; 16] {
    const LOW: u64 = 0x0F0F_0F0F_0F0F_0F0F;
    let [a, b, c, d]: [u64; 4] = bytemuck::must_cast(*levels);
    bytemuck::must_cast([a & LOW | (c & LOW) << 4, b & LOW | (d & LOW) << 4])
}

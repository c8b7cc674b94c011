//! Steps that the super-block encoders share: rounding all 256 weights once the scales are known,
//! and packing levels.

use crate::lanes::nearest_int;

/// Rounds `(x + min) / scale` to levels `lo..=hi`, plus `-lo`, for sub-blocks of `SUB` weights.
///
/// Sub-blocks with scale 0 come out as if it were 1: the caller fills them. One loop over all 256
/// weights vectorises; loops over 16 or 32 are unrolled into something slower.
#[inline(always)]
pub(crate) fn requantize<const SUB: usize, const J: usize>(
    x: &[f32; 256],
    scale: &[f32; J],
    min: &[f32; J],
    lo: i32,
    hi: i32,
) -> [u8; 256] {
    let (mut scales, mut mins) = ([0.0; 256], [0.0; 256]);
    for j in 0..J {
        scales[SUB * j..SUB * (j + 1)].fill(if scale[j] == 0.0 { 1.0 } else { scale[j] });
        mins[SUB * j..SUB * (j + 1)].fill(min[j]);
    }
    let mut levels = [0; 256];
    for i in 0..256 {
        levels[i] = (nearest_int((x[i] + mins[i]) / scales[i]).min(hi).max(lo) - lo) as u8;
    }
    levels
}

/// [`requantize`] without minimum: `x / scale`, so that -0.0 stays out of it.
#[inline(always)]
pub(crate) fn requantize_signed<const SUB: usize, const J: usize>(
    x: &[f32; 256],
    scale: &[f32; J],
    lo: i32,
    hi: i32,
) -> [u8; 256] {
    let mut scales = [0.0; 256];
    for j in 0..J {
        scales[SUB * j..SUB * (j + 1)].fill(if scale[j] == 0.0 { 1.0 } else { scale[j] });
    }
    let mut levels = [0; 256];
    for i in 0..256 {
        levels[i] = (nearest_int(x[i] / scales[i]).min(hi).max(lo) - lo) as u8;
    }
    levels
}

/// Two-bit levels, 128 weights in 32 bytes: weight `i` of a quarter in byte `i`.
#[inline(always)]
pub(crate) fn pack_two_bits(levels: &[u8; 256]) -> [u8; 64] {
    let mut out = [0; 64];
    for half in 0..2 {
        let (l, q) = (&levels[128 * half..128 * half + 128], &mut out[32 * half..32 * half + 32]);
        for i in 0..32 {
            q[i] = l[i] | l[32 + i] << 2 | l[64 + i] << 4 | l[96 + i] << 6;
        }
    }
    out
}

/// The sub-block scale of the largest magnitude, the first of equals, and that magnitude. NaN never wins.
#[inline(always)]
pub(crate) fn dominant<const J: usize>(scales: &[f32; J]) -> (f32, f32) {
    let (mut max, mut amax) = (0.0, 0.0);
    for &s in scales {
        if s.abs() > amax {
            (max, amax) = (s, s.abs());
        }
    }
    (max, amax)
}

/// The largest value above 0, else 0.
#[inline(always)]
pub(crate) fn largest<const J: usize>(values: &[f32; J]) -> f32 {
    values.iter().fold(0.0, |max, &v| if v > max { v } else { max })
}

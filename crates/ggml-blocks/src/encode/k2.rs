//! Encoder of `Q2_K`.

use super::superblock::{largest, pack_two_bits, requantize};
use super::{Batch, EncodeLanes, batches, in_lanes};
use crate::block::{Encode, Rows};
use crate::error::EncodeError;
use crate::formats::q2_k::Q2K;
use crate::half::F16;
use crate::lanes::{Lanes, nearest_int};
use crate::search::{Fit, qkx, qp, steps};
use crate::simd::{Simd, each};

/// The fits of the sixteen sub-blocks of every lane.
type Fits<V> = [Fit<V>; 16];

/// Scales and minimums of a super-block, rounded under weights, in every lane.
struct Weighted<V> {
    d: V,
    dmin: V,
    scales: [V; 16],
    mins: [V; 16],
}

impl EncodeLanes for Q2K {
    #[inline(always)]
    fn encode_lanes<V: Lanes>(zero: V, src: Rows<'_>, out: &mut [Self]) {
        let numerators = steps::<16>(-0.5, 0.1, 3.0);
        let weighted_numerators = steps::<37>(-0.9, 0.05, 3.0);
        batches(
            zero,
            src,
            out,
            #[inline(always)]
            |batch, out| {
                let (fits, weighted);
                if src.importance.is_some() {
                    let found = search_weighted::<V>(batch, &weighted_numerators);
                    (fits, weighted) = (found.0, Some(found.1));
                } else {
                    (fits, weighted) = (search::<V>(batch, &numerators), None);
                }
                for (lane, block) in out.iter_mut().enumerate() {
                    match &weighted {
                        Some(found) => scales_weighted(found, lane, block),
                        None => scales_plain(&fits, lane, block),
                    }
                    levels(batch.block(lane), &fits, lane, weighted.is_some(), block);
                }
            },
        );
    }
}

impl Encode for Q2K {
    /// Importance that overflows the search (sums beyond f32) is left out for the block it hits.
    #[inline(always)]
    fn encode<S: Simd>(simd: S, src: Rows<'_>, out: &mut [Self]) -> Result<(), EncodeError> {
        in_lanes(simd, src, out)
    }
}

/// The search without importance: weights are the magnitudes, errors absolute.
#[inline(always)]
fn search<V: Lanes>(batch: &Batch<'_, V>, numerators: &[f32]) -> Fits<V> {
    let zero = batch.zero;
    let mut fits = [Fit::flat(zero); 16];
    let mut x = [zero; 16];
    for j in 0..16 {
        batch.values(16 * j, &mut x);
        let mut w = x;
        for w in &mut w {
            *w = w.abs();
        }
        fits[j] = qkx::<V, 16, true, false>(&x, &w, 3.0, numerators);
    }
    fits
}

#[inline(always)]
fn search_weighted<V: Lanes>(batch: &Batch<'_, V>, numerators: &[f32]) -> (Fits<V>, Weighted<V>) {
    let zero = batch.zero;
    let mut fits = [Fit::flat(zero); 16];
    let mut sums = [zero; 16];
    let (mut x, mut w) = ([zero; 16], [zero; 16]);
    let sigma2 = batch.sum_of_squares() / zero.splat(256.0);
    for j in 0..16 {
        batch.values(16 * j, &mut x);
        batch.importance(16 * j, &mut w);
        for i in 0..16 {
            w[i] = w[i] * (sigma2 + x[i] * x[i]).sqrt();
            sums[j] = sums[j] + w[i];
        }
        fits[j] = qkx::<V, 16, false, true>(&x, &w, 3.0, numerators);
    }
    let (mut scales, mut mins) = ([zero; 16], [zero; 16]);
    let d = qp(
        &core::array::from_fn(
            #[inline(always)]
            |j| fits[j].scale,
        ),
        &sums,
        15.0,
        &mut scales,
    );
    let dmin = qp(
        &core::array::from_fn(
            #[inline(always)]
            |j| fits[j].min,
        ),
        &sums,
        15.0,
        &mut mins,
    );
    (fits, Weighted { d, dmin, scales, mins })
}

#[inline(always)]
fn scales_weighted<V: Lanes>(found: &Weighted<V>, lane: usize, block: &mut Q2K) {
    for j in 0..16 {
        let (scale, min) = (found.scales[j].get(lane) as u8, found.mins[j].get(lane) as u8);
        block.scales[j] = scale | min << 4;
    }
    block.d = F16::from_f32(found.d.get(lane));
    block.dmin = F16::from_f32(found.dmin.get(lane));
}

#[inline(always)]
fn scales_plain<V: Lanes>(fits: &Fits<V>, lane: usize, block: &mut Q2K) {
    let scales: [f32; 16] = core::array::from_fn(|j| fits[j].scale.get(lane));
    let mins: [f32; 16] = core::array::from_fn(|j| fits[j].min.get(lane));
    let (max_scale, max_min) = (largest(&scales), largest(&mins));
    block.scales = [0; 16];
    if max_scale > 0.0 {
        block.scales = each(
            scales,
            #[inline(always)]
            |s| nearest_int(15.0 / max_scale * s) as u8,
        );
    }
    if max_min > 0.0 {
        for j in 0..16 {
            block.scales[j] |= (nearest_int(15.0 / max_min * mins[j]) << 4) as u8;
        }
    }
    block.d = F16::from_f32(max_scale / 15.0);
    block.dmin = F16::from_f32(max_min / 15.0);
}

/// Rounds all weights with the scales as a decoder will see them.
#[inline(always)]
fn levels<V: Lanes>(x: &[f32; 256], fits: &Fits<V>, lane: usize, clamp_first: bool, block: &mut Q2K) {
    let (d, dmin) = (block.d.to_f32(), block.dmin.to_f32());
    let scales = each(
        block.scales,
        #[inline(always)]
        |s| d * f32::from(s & 15),
    );
    let mins = each(
        block.scales,
        #[inline(always)]
        |s| dmin * f32::from(s >> 4),
    );
    let mut levels = requantize::<16, 16>(x, &scales, &mins, 0, 3);
    for j in 0..16 {
        if scales[j] == 0.0 {
            let span = 16 * j..16 * (j + 1);
            fits[j].search_levels(lane, &x[span.clone()], clamp_first, 3, &mut levels[span]);
        }
    }
    block.qs = pack_two_bits(&levels);
}

//! Encoders of `Q4_K` and `Q5_K`: the same search and scales, one more bit.

use super::superblock::{largest, requantize};
use super::{Batch, EncodeLanes, batches, in_lanes};
use crate::block::{Encode, Rows};
use crate::error::EncodeError;
use crate::formats::q4_k::{Q4K, scales_and_mins};
use crate::formats::q5_k::Q5K;
use crate::half::F16;
use crate::lanes::{Lanes, nearest_int};
use crate::search::{Fit, qkx, qp, steps};
use crate::simd::{Simd, each};

/// What the search gives one block.
struct Scales {
    d: F16,
    dmin: F16,
    packed: [u8; 12],
}

/// The fits of the eight sub-blocks of every lane.
struct Fits<V: Lanes>([Fit<V>; 8]);

impl<V: Lanes> Fits<V> {
    /// One number per sub-block of a lane.
    #[inline(always)]
    fn lane(&self, lane: usize, of: impl Fn(&Fit<V>) -> V) -> [f32; 8] {
        core::array::from_fn(
            #[inline(always)]
            |j| of(&self.0[j]).get(lane),
        )
    }
}

impl EncodeLanes for Q4K {
    #[inline(always)]
    fn encode_lanes<V: Lanes>(zero: V, src: Rows<'_>, out: &mut [Self]) {
        let numerators = steps::<21>(-1.0, 0.1, 15.0);
        encode::<V, Self, 15>(
            zero,
            src,
            out,
            &numerators,
            #[inline(always)]
            |block, scales, levels| {
                block.d = scales.d;
                block.dmin = scales.dmin;
                block.scales = scales.packed;
                for c in 0..4 {
                    for i in 0..32 {
                        block.qs[32 * c + i] = levels[64 * c + i] | levels[64 * c + 32 + i] << 4;
                    }
                }
            },
        );
    }
}

impl EncodeLanes for Q5K {
    #[inline(always)]
    fn encode_lanes<V: Lanes>(zero: V, src: Rows<'_>, out: &mut [Self]) {
        let numerators = steps::<16>(-0.5, 0.1, 31.0);
        encode::<V, Self, 31>(
            zero,
            src,
            out,
            &numerators,
            #[inline(always)]
            |block, scales, levels| {
                block.d = scales.d;
                block.dmin = scales.dmin;
                block.scales = scales.packed;
                let mut high = [0; 32];
                for c in 0..4 {
                    for i in 0..32 {
                        let (a, b) = (levels[64 * c + i], levels[64 * c + 32 + i]);
                        block.qs[32 * c + i] = (a & 15) | (b & 15) << 4;
                        high[i] |= (a >> 4) << (2 * c) | (b >> 4) << (2 * c + 1);
                    }
                }
                block.qh = high;
            },
        );
    }
}

impl Encode for Q4K {
    /// Importance that overflows the search (sums beyond f32) is left out for the block it hits.
    #[inline(always)]
    fn encode<S: Simd>(simd: S, src: Rows<'_>, out: &mut [Self]) -> Result<(), EncodeError> {
        in_lanes(simd, src, out)
    }
}

impl Encode for Q5K {
    /// Importance that overflows the search (sums beyond f32) is left out for the block it hits.
    #[inline(always)]
    fn encode<S: Simd>(simd: S, src: Rows<'_>, out: &mut [Self]) -> Result<(), EncodeError> {
        in_lanes(simd, src, out)
    }
}

#[inline(always)]
fn encode<V: Lanes, B: EncodeLanes, const TOP: i32>(
    zero: V,
    src: Rows<'_>,
    out: &mut [B],
    numerators: &[f32],
    fill: impl Fn(&mut B, &Scales, &[u8; 256]),
) {
    let weighted = src.importance.is_some();
    let weighted_numerators = steps::<37>(-0.9, 0.05, TOP as f32);
    batches(
        zero,
        src,
        out,
        #[inline(always)]
        |batch, out| {
            let (fits, weighted_scales);
            if weighted {
                let sums;
                (fits, sums) = search_weighted::<V, TOP>(batch, &weighted_numerators);
                weighted_scales = Some(scales_weighted(&fits, &sums));
            } else {
                fits = search::<V, TOP>(batch, numerators);
                weighted_scales = None;
            }
            for (lane, block) in out.iter_mut().enumerate() {
                let scales = match &weighted_scales {
                    Some(found) => found.lane(lane, if TOP == 31 { 63 } else { u8::MAX }),
                    None => scales_plain(&fits, lane),
                };
                let levels = levels::<V, TOP>(batch.block(lane), &scales, &fits, lane, weighted);
                fill(block, &scales, &levels);
            }
        },
    );
}

/// The search without importance: weights are the magnitude plus the sub-block's RMS.
#[inline(always)]
fn search<V: Lanes, const TOP: i32>(batch: &Batch<'_, V>, numerators: &[f32]) -> Fits<V> {
    let zero = batch.zero;
    let mut fits = [Fit::flat(zero); 8];
    let (mut x, mut w) = ([zero; 32], [zero; 32]);
    for j in 0..8 {
        batch.values(32 * j, &mut x);
        let mut sum = zero;
        for v in x {
            sum = sum + v * v;
        }
        let rms = (sum / zero.splat(32.0)).sqrt();
        for i in 0..32 {
            w[i] = rms + x[i].abs();
        }
        fits[j] = qkx::<V, 32, false, false>(&x, &w, TOP as f32, numerators);
    }
    Fits(fits)
}

/// The search with importance, and the sum of weights of each sub-block.
#[inline(always)]
fn search_weighted<V: Lanes, const TOP: i32>(batch: &Batch<'_, V>, numerators: &[f32]) -> (Fits<V>, [V; 8]) {
    let zero = batch.zero;
    let mut fits = [Fit::flat(zero); 8];
    let mut sums = [zero; 8];
    let (mut x, mut w) = ([zero; 32], [zero; 32]);
    let sigma2 = zero.splat(2.0) * batch.sum_of_squares() / zero.splat(256.0);
    for j in 0..8 {
        batch.values(32 * j, &mut x);
        batch.importance(32 * j, &mut w);
        for i in 0..32 {
            w[i] = w[i] * (sigma2 + x[i] * x[i]).sqrt();
            sums[j] = sums[j] + w[i];
        }
        fits[j] = qkx::<V, 32, false, true>(&x, &w, TOP as f32, numerators);
    }
    (Fits(fits), sums)
}

/// Scales and minima as the weighted search of a super-block rounds them.
struct Weighted<V> {
    d: V,
    dmin: V,
    scales: [V; 8],
    mins: [V; 8],
}

impl<V: Lanes> Weighted<V> {
    #[inline(always)]
    fn lane(&self, lane: usize, cap: u8) -> Scales {
        // Of a level that went below 0, ggml keeps the low byte; for `Q5_K` it then takes the minimum.
        let byte = |v: &[V; 8]| core::array::from_fn(|j| (v[j].get(lane) as u8).min(cap));
        Scales {
            d: F16::from_f32(self.d.get(lane)),
            dmin: F16::from_f32(self.dmin.get(lane)),
            packed: pack(&byte(&self.scales), &byte(&self.mins)),
        }
    }
}

#[inline(always)]
fn scales_weighted<V: Lanes>(fits: &Fits<V>, sums: &[V; 8]) -> Weighted<V> {
    let (mut scales, mut mins) = (*sums, *sums);
    let d = qp(
        &core::array::from_fn(
            #[inline(always)]
            |j| fits.0[j].scale,
        ),
        sums,
        63.0,
        &mut scales,
    );
    let dmin = qp(
        &core::array::from_fn(
            #[inline(always)]
            |j| fits.0[j].min,
        ),
        sums,
        63.0,
        &mut mins,
    );
    Weighted { d, dmin, scales, mins }
}

#[inline(always)]
fn scales_plain<V: Lanes>(fits: &Fits<V>, lane: usize) -> Scales {
    let (scales, mins) = (fits.lane(lane, |f| f.scale), fits.lane(lane, |f| f.min));
    let (max_scale, max_min) = (largest(&scales), largest(&mins));
    let inverse = |max: f32| if max > 0.0 { 63.0 / max } else { 0.0 };
    // ggml stores the rounded value in a byte before it takes the minimum.
    let six_bits = |inverse: f32, v: [f32; 8]| {
        each(
            v,
            #[inline(always)]
            |v| (nearest_int(inverse * v) as u8).min(63),
        )
    };
    Scales {
        d: F16::from_f32(max_scale / 63.0),
        dmin: F16::from_f32(max_min / 63.0),
        packed: pack(&six_bits(inverse(max_scale), scales), &six_bits(inverse(max_min), mins)),
    }
}

/// Rounds all weights with the scales as a decoder will see them.
#[inline(always)]
fn levels<V: Lanes, const TOP: i32>(
    x: &[f32; 256],
    scales: &Scales,
    fits: &Fits<V>,
    lane: usize,
    clamp_first: bool,
) -> [u8; 256] {
    let (d, dmin) = (scales.d.to_f32(), scales.dmin.to_f32());
    let [sub_scales, sub_mins] = each(scales_and_mins(&scales.packed), u64::to_le_bytes);
    let sub_scales = each(
        sub_scales,
        #[inline(always)]
        |s| d * f32::from(s),
    );
    let sub_mins = each(
        sub_mins,
        #[inline(always)]
        |m| dmin * f32::from(m),
    );
    let mut levels = requantize::<32, 8>(x, &sub_scales, &sub_mins, 0, TOP);
    for j in 0..8 {
        if sub_scales[j] == 0.0 {
            let span = 32 * j..32 * (j + 1);
            fits.0[j].search_levels(lane, &x[span.clone()], clamp_first, TOP, &mut levels[span]);
        }
    }
    levels
}

/// Packs eight scales and eight minima of 6 bits. Wider ones leave their upper bits as ggml does.
#[inline(always)]
fn pack(scales: &[u8; 8], mins: &[u8; 8]) -> [u8; 12] {
    let mut out = [0; 12];
    for j in 0..4 {
        out[j] = scales[j] | (scales[j + 4] >> 4) << 6;
        out[j + 4] = mins[j] | (mins[j + 4] >> 4) << 6;
        out[j + 8] = (scales[j + 4] & 15) | (mins[j + 4] & 15) << 4;
    }
    out
}

//! Encoder of `Q3_K`.

use super::superblock::{dominant, pack_two_bits, requantize_signed};
use super::{Batch, EncodeLanes, batches, in_lanes};
use crate::block::{Encode, Rows};
use crate::error::EncodeError;
use crate::formats::q3_k::Q3K;
use crate::half::F16;
use crate::lanes::{Lanes, nearest_int};
use crate::search::{q3, qx};
use crate::simd::{Simd, each};

impl EncodeLanes for Q3K {
    const NARROW: bool = true;

    #[inline(always)]
    fn encode_lanes<V: Lanes>(zero: V, src: Rows<'_>, out: &mut [Self]) {
        batches(
            zero,
            src,
            out,
            #[inline(always)]
            |batch, out| {
                if src.importance.is_some() { weighted::<V>(batch, out) } else { plain::<V>(batch, out) }
            },
        );
    }
}

impl Encode for Q3K {
    /// Importance that overflows the search (sums beyond f32) is left out for the block it hits.
    #[inline(always)]
    fn encode<S: Simd>(simd: S, src: Rows<'_>, out: &mut [Self]) -> Result<(), EncodeError> {
        in_lanes(simd, src, out)
    }
}

#[inline(always)]
fn plain<V: Lanes>(batch: &Batch<'_, V>, out: &mut [Q3K]) {
    let zero = batch.zero;
    let (mut scales, mut levels) = ([zero; 16], [[zero; 16]; 16]);
    let mut x = [zero; 16];
    for j in 0..16 {
        batch.values(16 * j, &mut x);
        scales[j] = q3(&x, 4.0, &mut levels[j]);
    }
    for (lane, block) in out.iter_mut().enumerate() {
        let scales: [f32; 16] = core::array::from_fn(|j| scales[j].get(lane));
        let (max, _) = dominant(&scales);
        let (mut six, mut d) = ([0; 16], 0.0);
        if max != 0.0 {
            let iscale = -32.0 / max;
            // ggml keeps the rounded value in a signed byte before it clamps.
            six = each(
                scales,
                #[inline(always)]
                |s| (nearest_int(iscale * s) as i8).clamp(-32, 31) + 32,
            );
            d = 1.0 / iscale;
        }
        finish(
            batch.block(lane),
            d,
            six,
            block,
            #[inline(always)]
            |i| (levels[i / 16][i % 16].get(lane) + 4.0) as u8,
        );
    }
}

#[inline(always)]
fn weighted<V: Lanes>(batch: &Batch<'_, V>, out: &mut [Q3K]) {
    let zero = batch.zero;
    let (mut scales, mut iscales, mut sums) = ([zero; 16], [zero; 16], [zero; 16]);
    let (mut x, mut w) = ([zero; 16], [zero; 16]);
    let sigma2 = zero.splat(2.0) * batch.sum_of_squares() / zero.splat(256.0);
    for j in 0..16 {
        batch.values(16 * j, &mut x);
        batch.importance(16 * j, &mut w);
        for i in 0..16 {
            w[i] = w[i] * (sigma2 + x[i] * x[i]).sqrt();
            sums[j] = sums[j] + w[i];
        }
        (scales[j], iscales[j]) = qx::<V, 16, false>(&x, &w, 4.0);
    }
    let (d, iscale) = qx::<V, 16, true>(&scales, &sums, 32.0);
    for (lane, block) in out.iter_mut().enumerate() {
        let x = batch.block(lane);
        let k = iscale.get(lane);
        // An all-zero super-block keeps ggml's level 0, which is not the 32 of a zero scale.
        let six = |s: &V| if k.is_nan() { 0 } else { level(k, s.get(lane), 32) as i8 };
        let six: [i8; 16] = core::array::from_fn(|j| six(&scales[j]));
        finish(
            x,
            d.get(lane),
            six,
            block,
            #[inline(always)]
            |i| {
                let k = iscales[i / 16].get(lane);
                if k.is_nan() { 0 } else { level(k, x[i], 4) }
            },
        );
    }
}

/// The level of one element under a search's inverse scale, plus `nmax`.
#[inline(always)]
fn level(iscale: f32, x: f32, nmax: i32) -> u8 {
    (nearest_int(iscale * x).clamp(-nmax, nmax - 1) + nmax) as u8
}

/// Writes the block. `six` are the scales plus 32; `searched` gives the search's level of an
/// element, for sub-blocks whose scale is 0.
#[inline(always)]
fn finish(x: &[f32; 256], d: f32, six: [i8; 16], block: &mut Q3K, searched: impl Fn(usize) -> u8) {
    block.d = F16::from_f32(d);
    block.scales = [0; 12];
    for j in 0..16 {
        let s = six[j] as u8;
        block.scales[j % 8] |= (s & 15) << (4 * (j / 8));
        block.scales[8 + j % 4] |= (s >> 4) << (2 * (j / 4));
    }
    let d = block.d.to_f32();
    let sub_scales = each(
        six,
        #[inline(always)]
        |s| d * f32::from(s - 32),
    );
    let mut levels = requantize_signed::<16, 16>(x, &sub_scales, -4, 3);
    for j in 0..16 {
        if sub_scales[j] == 0.0 {
            for i in 16 * j..16 * (j + 1) {
                levels[i] = searched(i);
            }
        }
    }
    let mut high = [0; 32];
    for c in 0..8 {
        for i in 0..32 {
            high[i] |= (levels[32 * c + i] >> 2) << c;
        }
    }
    block.hmask = high;
    block.qs = pack_two_bits(&each(
        levels,
        #[inline(always)]
        |l| l & 3,
    ));
}

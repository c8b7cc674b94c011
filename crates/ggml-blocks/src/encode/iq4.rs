//! Encoders of `IQ4_NL` and `IQ4_XS`.

use super::superblock::dominant;
use super::{Batch, EncodeLanes, batches, in_lanes};
use crate::block::{Encode, Rows};
use crate::error::EncodeError;
use crate::formats::iq4_nl::Iq4Nl;
use crate::formats::iq4_xs::Iq4Xs;
use crate::half::F16;
use crate::lanes::{Lanes, nearest_int};
use crate::search::{iq4_index, iq4_scale};
use crate::simd::{Simd, each};

impl EncodeLanes for Iq4Nl {
    #[inline(always)]
    fn encode_lanes<V: Lanes>(zero: V, src: Rows<'_>, out: &mut [Self]) {
        batches(
            zero,
            src,
            out,
            #[inline(always)]
            |batch, out| {
                let mut x = [zero; 32];
                batch.values(0, &mut x);
                let sigma2 = if src.importance.is_some() { sum_of_squares(&x) } else { zero };
                let scale = scale(batch, 0, &x, sigma2 * zero.splat(2.0 / 32.0), src.importance.is_some());
                for (lane, block) in out.iter_mut().enumerate() {
                    let d = scale.get(lane);
                    block.d = F16::from_f32(d);
                    let inverse = if d == 0.0 { 0.0 } else { 1.0 / d };
                    pack(batch.block::<32>(lane), inverse, &mut block.qs);
                }
            },
        );
    }
}

impl EncodeLanes for Iq4Xs {
    #[inline(always)]
    fn encode_lanes<V: Lanes>(zero: V, src: Rows<'_>, out: &mut [Self]) {
        batches(
            zero,
            src,
            out,
            #[inline(always)]
            |batch, out| {
                let weighted = src.importance.is_some();
                let sigma2 = if weighted { batch.sum_of_squares() } else { zero };
                let sigma2 = sigma2 * zero.splat(2.0 / 256.0);
                let (mut x, mut scales) = ([zero; 32], [zero; 8]);
                for j in 0..8 {
                    batch.values(32 * j, &mut x);
                    scales[j] = scale(batch, 32 * j, &x, sigma2, weighted);
                }
                for (lane, block) in out.iter_mut().enumerate() {
                    finish(
                        batch.block(lane),
                        &each(
                            scales,
                            #[inline(always)]
                            |s| s.get(lane),
                        ),
                        block,
                    );
                }
            },
        );
    }
}

impl Encode for Iq4Nl {
    /// Importance that overflows the search (sums beyond f32) is left out for the block it hits.
    #[inline(always)]
    fn encode<S: Simd>(simd: S, src: Rows<'_>, out: &mut [Self]) -> Result<(), EncodeError> {
        in_lanes(simd, src, out)
    }
}

impl Encode for Iq4Xs {
    /// Importance that overflows the search (sums beyond f32) is left out for the block it hits.
    #[inline(always)]
    fn encode<S: Simd>(simd: S, src: Rows<'_>, out: &mut [Self]) -> Result<(), EncodeError> {
        in_lanes(simd, src, out)
    }
}

#[inline(always)]
fn sum_of_squares<V: Lanes>(x: &[V; 32]) -> V {
    let mut sum = x[0].splat(0.0);
    for &v in x {
        sum = sum + v * v;
    }
    sum
}

/// The scale of 32 weights that start at `offset` in each lane's block.
#[inline(always)]
fn scale<V: Lanes>(batch: &Batch<'_, V>, offset: usize, x: &[V; 32], sigma2: V, weighted: bool) -> V {
    let mut w = [batch.zero; 32];
    if weighted {
        batch.importance(offset, &mut w);
        for i in 0..32 {
            w[i] = w[i] * (sigma2 + x[i] * x[i]).sqrt();
        }
    } else {
        for i in 0..32 {
            w[i] = x[i] * x[i];
        }
    }
    iq4_scale(x, &w)
}

#[inline(always)]
fn finish(x: &[f32; 256], scales: &[f32; 8], block: &mut Iq4Xs) {
    let d = -dominant(scales).0 / 32.0;
    block.d = F16::from_f32(d);
    let inverse = if d == 0.0 { 0.0 } else { 1.0 / d };
    let (mut low, mut high) = ([0; 4], 0);
    for j in 0..8 {
        let l = nearest_int(inverse * scales[j]).clamp(-32, 31);
        // ggml rounds with the scale before its own rounding to f16.
        let sub_scale = d * l as f32;
        let inverse = if sub_scale == 0.0 { 0.0 } else { 1.0 / sub_scale };
        let (x, _) = x[32 * j..].split_first_chunk().expect("eight sub-blocks of 32");
        let (q, _) = block.qs[16 * j..].split_first_chunk_mut().expect("eight sub-blocks of 16 bytes");
        pack(x, inverse, q);
        let six = (l + 32) as u16;
        low[j / 2] |= ((six & 15) as u8) << (4 * (j % 2));
        high |= (six >> 4) << (2 * j);
    }
    block.scales_l = low;
    block.scales_h = high.into();
}

/// The nearest levels of 32 weights, two per byte, 16 weights apart.
#[inline(always)]
fn pack(x: &[f32; 32], inverse: f32, qs: &mut [u8; 16]) {
    let mut l = [0; 32];
    for i in 0..32 {
        l[i] = iq4_index(inverse * x[i]);
    }
    for i in 0..16 {
        qs[i] = l[i] | l[16 + i] << 4;
    }
}

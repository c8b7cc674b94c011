//! Encoders of `Q4_0`, `Q4_1`, `Q5_0` and `Q5_1`: a rule per block without importance, a search with.

use super::flat::{bytes_of, extremes, halves, inverse, nibbles, signed_largest};
use super::{EncodeFlat, EncodeLanes, batches, in_lanes, in_order, sigma2};
use crate::block::{Block, Encode, Rows};
use crate::error::EncodeError;
use crate::formats::q4_0::Q4_0;
use crate::formats::q4_1::Q4_1;
use crate::formats::q5_0::Q5_0;
use crate::formats::q5_1::Q5_1;
use crate::half::F16;
use crate::lanes::{Lanes, nearest_int};
use crate::search::{qkx, qx, steps};
use crate::simd::{Portable, Simd, each};

/// Levels 0..=31 of a block and where they go.
trait Put: Block<Weights = [f32; 32]> {
    /// The highest level.
    const TOP: i32;
    /// Stores scale, minimum (where the format has one) and levels.
    fn put(&mut self, d: F16, m: F16, levels: &[u8; 32]);
}

impl Put for Q4_0 {
    const TOP: i32 = 15;
    #[inline(always)]
    fn put(&mut self, d: F16, _: F16, levels: &[u8; 32]) {
        *self = Self { d, qs: nibbles(levels) };
    }
}

impl Put for Q4_1 {
    const TOP: i32 = 15;
    #[inline(always)]
    fn put(&mut self, d: F16, m: F16, levels: &[u8; 32]) {
        *self = Self { d, m, qs: nibbles(levels) };
    }
}

impl Put for Q5_0 {
    const TOP: i32 = 31;
    #[inline(always)]
    fn put(&mut self, d: F16, _: F16, levels: &[u8; 32]) {
        *self = Self { d, qh: fifth_bits(levels), qs: nibbles(levels) };
    }
}

impl Put for Q5_1 {
    const TOP: i32 = 31;
    #[inline(always)]
    fn put(&mut self, d: F16, m: F16, levels: &[u8; 32]) {
        *self = Self { d, m, qh: fifth_bits(levels), qs: nibbles(levels) };
    }
}

/// Bit 4 of each level, the first lowest.
#[inline(always)]
fn fifth_bits(levels: &[u8; 32]) -> [u8; 4] {
    let words: [u64; 4] = bytemuck::must_cast(*levels);
    each(
        words,
        #[inline(always)]
        |word| {
            let bits = (word.to_le() >> 4) & 0x0101_0101_0101_0101;
            // The product gathers bit 0 of each byte in the top byte, the first byte's lowest.
            (bits.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
        },
    )
}

/// `Q4_0` and `Q5_0`: the first weight of the largest magnitude becomes the lowest level.
#[inline(always)]
fn symmetric<S: Simd, B: Put>(simd: S, x: &[f32; 32], out: &mut B) {
    let half = ((B::TOP + 1) / 2) as f32;
    let d = signed_largest(simd, x) / -half;
    let k = inverse(d);
    // An infinite inverse leaves level 0: ggml's conversion of infinities and NaN.
    let (k, middle) = if k.is_finite() { (k, half + 0.5) } else { (0.0, 0.0) };
    let (k, middle) = (simd.splat(k), simd.splat(middle));
    let levels = bytes_of(
        simd,
        x,
        #[inline(always)]
        |x| {
            each(
                simd.truncate(simd.add(simd.mul(x, k), middle)),
                #[inline(always)]
                |l| l.min(B::TOP),
            )
        },
    );
    out.put(halves(simd, d, 0.0).0, F16::from_bits(0), &levels);
}

/// `Q4_1` and `Q5_1`: the smallest weight becomes level 0, the largest the highest.
#[inline(always)]
fn affine<S: Simd, B: Put>(simd: S, x: &[f32; 32], out: &mut B) {
    let (min, max) = extremes(simd, x);
    let d = (max - min) / B::TOP as f32;
    let k = inverse(d);
    let (k, least) = (simd.splat(if k.is_finite() { k } else { 0.0 }), simd.splat(min));
    let half = simd.splat(0.5);
    let levels = bytes_of(
        simd,
        x,
        #[inline(always)]
        |x| {
            let v = simd.mul(simd.sub(x, least), k);
            each(
                simd.truncate(simd.add(v, half)),
                #[inline(always)]
                |l| l.min(B::TOP),
            )
        },
    );
    let (d, m) = halves(simd, d, min);
    out.put(d, m, &levels);
}

/// `Q4_0` and `Q5_0` under importance.
#[inline(always)]
fn symmetric_weighted<V: Lanes, B: Put>(zero: V, src: Rows<'_>, out: &mut [B]) {
    let half = (B::TOP + 1) / 2;
    weighted::<V, B, _>(
        zero,
        src,
        out,
        #[inline(always)]
        |x, w| {
            let (scale, iscale) = qx::<V, 32, false>(x, w, half as f32);
            move |lane: usize, x: &[f32; 32], block: &mut B| {
                let k = iscale.get(lane);
                let mut levels = [0; 32];
                if !k.is_nan() {
                    for i in 0..32 {
                        levels[i] = (nearest_int(k * x[i]).clamp(-half, half - 1) + half) as u8;
                    }
                }
                block.put(F16::from_f32(scale.get(lane)), F16::from_bits(0), &levels);
            }
        },
    );
}

/// `Q4_1` and `Q5_1` under importance.
#[inline(always)]
fn affine_weighted<V: Lanes, B: Put>(zero: V, src: Rows<'_>, out: &mut [B]) {
    let numerators = steps::<37>(-0.9, 0.05, B::TOP as f32);
    weighted::<V, B, _>(
        zero,
        src,
        out,
        #[inline(always)]
        |x, w| {
            let fit = qkx::<V, 32, false, true>(x, w, B::TOP as f32, &numerators);
            move |lane: usize, x: &[f32; 32], block: &mut B| {
                let mut levels = [0; 32];
                fit.search_levels(lane, x, true, B::TOP, &mut levels);
                block.put(F16::from_f32(fit.scale.get(lane)), F16::from_f32(-fit.min.get(lane)), &levels);
            }
        },
    );
}

/// Hands values and weights of each batch to `search`, and what it gives back every block.
#[inline(always)]
fn weighted<V: Lanes, B: Put, F: Fn(usize, &[f32; 32], &mut B)>(
    zero: V,
    src: Rows<'_>,
    out: &mut [B],
    search: impl Fn(&[V; 32], &[V; 32]) -> F,
) {
    let sigma2 = sigma2(zero, src);
    batches(
        zero,
        src,
        out,
        #[inline(always)]
        |batch, out| {
            let (mut x, mut w) = ([zero; 32], [zero; 32]);
            batch.values(0, &mut x);
            batch.importance(0, &mut w);
            let mut sigma = zero;
            for lane in 0..V::N {
                sigma.set(lane, sigma2[batch.row(lane)]);
            }
            for i in 0..32 {
                w[i] = w[i] * (sigma + x[i] * x[i]).sqrt();
            }
            let store = search(&x, &w);
            for (lane, block) in out.iter_mut().enumerate() {
                store(lane, batch.block(lane), block);
            }
        },
    );
}

macro_rules! legacy {
    ($($name:ident $flat:ident $weighted:ident)+) => { $(
        impl EncodeFlat for $name {
            #[inline(always)]
            fn encode_flat<S: Simd>(simd: S, x: &[f32; 32], out: &mut Self) {
                $flat(simd, x, out);
            }
        }

        impl EncodeLanes for $name {
            #[inline(always)]
            fn encode_lanes<V: Lanes>(zero: V, src: Rows<'_>, out: &mut [Self]) {
                if src.importance.is_some() {
                    $weighted(zero, src, out);
                } else {
                    for (x, block) in src.values.as_chunks().0.iter().zip(out) {
                        $flat(Portable, x, block);
                    }
                }
            }
        }

        impl Encode for $name {
            /// Importance that overflows the search (sums beyond f32) is left out for the block it hits.
            #[inline(always)]
            fn encode<S: Simd>(simd: S, src: Rows<'_>, out: &mut [Self]) -> Result<(), EncodeError> {
                if src.importance.is_some() { in_lanes(simd, src, out) } else { in_order(simd, src.values, out) }
            }
        }
    )+ };
}
legacy! {
    Q4_0 symmetric symmetric_weighted
    Q5_0 symmetric symmetric_weighted
    Q4_1 affine affine_weighted
    Q5_1 affine affine_weighted
}

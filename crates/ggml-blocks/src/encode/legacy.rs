//! Encoders of `Q4_0`, `Q4_1`, `Q5_0` and `Q5_1`: a rule per block without importance, a search with.

use super::flat::{by_eights, either, extremes, halves, inverses, signed_largest};
use super::{EncodeFlat, EncodeLanes, batches, in_eights, in_lanes, sigma2};
use crate::block::{Block, Encode, Rows};
use crate::error::EncodeError;
use crate::formats::q4_0::Q4_0;
use crate::formats::q4_1::Q4_1;
use crate::formats::q5_0::Q5_0;
use crate::formats::q5_1::Q5_1;
use crate::half::F16;
use crate::lanes::{Lanes, nearest_int};
use crate::search::{qkx, qx, steps};
use crate::simd::{F8, M8, Portable, Simd};

/// Levels 0..=31 of a block and where they go.
trait Put: Block<Weights = [f32; 32]> {
    /// The highest level.
    const TOP: i32;
    /// Stores scale, minimum (where the format has one) and levels.
    fn put<S: Simd>(&mut self, simd: S, d: F16, m: F16, levels: [u8; 32]);
}

impl Put for Q4_0 {
    const TOP: i32 = 15;
    #[inline(always)]
    fn put<S: Simd>(&mut self, simd: S, d: F16, _: F16, levels: [u8; 32]) {
        *self = Self { d, qs: simd.nibbles(levels) };
    }
}

impl Put for Q4_1 {
    const TOP: i32 = 15;
    #[inline(always)]
    fn put<S: Simd>(&mut self, simd: S, d: F16, m: F16, levels: [u8; 32]) {
        *self = Self { d, m, qs: simd.nibbles(levels) };
    }
}

impl Put for Q5_0 {
    const TOP: i32 = 31;
    #[inline(always)]
    fn put<S: Simd>(&mut self, simd: S, d: F16, _: F16, levels: [u8; 32]) {
        *self = Self { d, qh: simd.fifth_bits(levels), qs: simd.nibbles(levels) };
    }
}

impl Put for Q5_1 {
    const TOP: i32 = 31;
    #[inline(always)]
    fn put<S: Simd>(&mut self, simd: S, d: F16, m: F16, levels: [u8; 32]) {
        *self = Self { d, m, qh: simd.fifth_bits(levels), qs: simd.nibbles(levels) };
    }
}

/// Of eight blocks: the numbers that they store, and those that make levels of weights.
#[derive(Clone, Copy, Default)]
pub(crate) struct Scales {
    d: [F16; 8],
    m: [F16; 8],
    /// The inverse scale.
    k: F8,
    /// What level 0 stands for, or which level and a half stand for 0.
    middle: F8,
}

/// `Q4_0` and `Q5_0`: the first weight of the largest magnitude becomes the lowest level.
#[inline(always)]
fn symmetric_scales<S: Simd, B: Put>(simd: S, x: &[[f32; 32]; 8]) -> (Scales, M8) {
    let half = ((B::TOP + 1) / 2) as f32;
    let d = simd.div(signed_largest(simd, x), simd.splat(-half));
    let (k, overflow) = inverses(simd, d);
    // An infinite inverse leaves level 0: ggml's conversion of infinities and NaN.
    let middle = simd.select(overflow, simd.splat(0.0), simd.splat(half + 0.5));
    let (d, too_large) = halves(simd, d);
    (Scales { d, m: [F16::from_bits(0); 8], k, middle }, too_large)
}

#[inline(always)]
fn symmetric<S: Simd, B: Put>(simd: S, x: &[f32; 32], s: &Scales, lane: usize, out: &mut B) -> [i32; 8] {
    let (k, middle) = (simd.splat(s.k[lane]), simd.splat(s.middle[lane]));
    put_levels(
        simd,
        x,
        (s.d[lane], s.m[lane]),
        out,
        #[inline(always)]
        |x| simd.add(simd.mul(x, k), middle),
    )
}

/// `Q4_1` and `Q5_1`: the smallest weight becomes level 0, the largest the highest.
#[inline(always)]
fn affine_scales<S: Simd, B: Put>(simd: S, x: &[[f32; 32]; 8]) -> (Scales, M8) {
    let (min, max) = extremes(simd, x);
    let d = simd.div(simd.sub(max, min), simd.splat(B::TOP as f32));
    let (k, _) = inverses(simd, d);
    let (d, large_d) = halves(simd, d);
    let (m, large_m) = halves(simd, min);
    (Scales { d, m, k, middle: min }, either(large_d, large_m))
}

#[inline(always)]
fn affine<S: Simd, B: Put>(simd: S, x: &[f32; 32], s: &Scales, lane: usize, out: &mut B) -> [i32; 8] {
    let (k, least, half) = (simd.splat(s.k[lane]), simd.splat(s.middle[lane]), simd.splat(0.5));
    put_levels(
        simd,
        x,
        (s.d[lane], s.m[lane]),
        out,
        #[inline(always)]
        |x| simd.add(simd.mul(simd.sub(x, least), k), half),
    )
}

/// Stores the integer parts of `level(weights)`. They are negative for NaN alone, which every weight
/// that is not finite makes, itself or by way of the scale.
#[inline(always)]
fn put_levels<S: Simd, B: Put>(
    simd: S,
    x: &[f32; 32],
    (d, m): (F16, F16),
    out: &mut B,
    level: impl Fn(F8) -> F8,
) -> [i32; 8] {
    let levels = by_eights(
        x,
        #[inline(always)]
        |x| simd.truncate(level(x)),
    );
    let bytes = bytemuck::must_cast(simd.narrow32(levels));
    out.put(simd, d, m, simd.at_most(bytes, B::TOP as u8));
    let [mut seen, rest @ ..] = levels;
    for levels in rest {
        for i in 0..8 {
            seen[i] |= levels[i];
        }
    }
    seen
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
                block.put(Portable, F16::from_f32(scale.get(lane)), F16::from_bits(0), levels);
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
                let (d, m) = (F16::from_f32(fit.scale.get(lane)), F16::from_f32(-fit.min.get(lane)));
                block.put(Portable, d, m, levels);
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
    ($($name:ident $scales:ident $flat:ident $weighted:ident)+) => { $(
        impl EncodeFlat for $name {
            type Scales = Scales;

            #[inline(always)]
            fn scales<S: Simd>(simd: S, x: &[[f32; 32]; 8]) -> (Scales, M8) {
                $scales::<S, Self>(simd, x)
            }

            #[inline(always)]
            fn encode_flat<S: Simd>(
                simd: S,
                x: &[f32; 32],
                scales: &Scales,
                lane: usize,
                out: &mut Self,
            ) -> [i32; 8] {
                $flat(simd, x, scales, lane, out)
            }
        }

        impl EncodeLanes for $name {
            #[inline(always)]
            fn encode_lanes<V: Lanes>(zero: V, src: Rows<'_>, out: &mut [Self]) {
                if src.importance.is_some() {
                    $weighted(zero, src, out);
                } else {
                    // Only blocks that are not finite in f16 give an error, and the caller looks.
                    let _bad = in_eights(Portable, src.values, out);
                }
            }
        }

        impl Encode for $name {
            /// Importance that overflows the search (sums beyond f32) is left out for the block it hits.
            #[inline(always)]
            fn encode<S: Simd>(simd: S, src: Rows<'_>, out: &mut [Self]) -> Result<(), EncodeError> {
                if src.importance.is_some() { in_lanes(simd, src, out) } else { in_eights(simd, src.values, out) }
            }
        }
    )+ };
}
legacy! {
    Q4_0 symmetric_scales symmetric symmetric_weighted
    Q5_0 symmetric_scales symmetric symmetric_weighted
    Q4_1 affine_scales affine affine_weighted
    Q5_1 affine_scales affine affine_weighted
}

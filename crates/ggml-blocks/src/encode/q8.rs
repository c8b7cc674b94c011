//! Encoders of `Q8_0` and of the activation formats `Q8_1` and `Q8_K`.

use super::flat::{by_eights, either, halves, inverses, magnitudes, non_finite, round_away, signed_largest};
use super::{EncodeFlat, flat_encoders};
use crate::formats::q8_0::Q8_0;
use crate::formats::q8_1::Q8_1;
use crate::formats::q8_k::Q8K;
use crate::half::F16;
use crate::lanes::nearest_int;
use crate::simd::{F8, M8, Simd};

/// Of eight blocks: the scale, as f16 too, and its inverse.
#[derive(Clone, Copy, Default)]
pub(crate) struct Scales {
    d: F8,
    d16: [F16; 8],
    k: F8,
}

#[inline(always)]
fn scales<S: Simd>(simd: S, x: &[[f32; 32]; 8]) -> (Scales, M8) {
    let largest = magnitudes(simd, x);
    let d = simd.div(largest, simd.splat(127.0));
    // Where the inverse is infinite, ggml's conversion of infinities and NaN gives level 0.
    let (k, _) = inverses(simd, d);
    let (d16, too_large) = halves(simd, d);
    (Scales { d, d16, k }, either(too_large, non_finite(largest)))
}

/// The bytes of a block.
#[inline(always)]
fn bytes<S: Simd>(simd: S, x: &[f32; 32], k: f32) -> [i8; 32] {
    let k = simd.splat(k);
    let levels = by_eights(
        x,
        #[inline(always)]
        |x| round_away(simd, simd.mul(x, k)),
    );
    simd.narrow32(levels)
}

impl EncodeFlat for Q8_0 {
    type Scales = Scales;

    #[inline(always)]
    fn scales<S: Simd>(simd: S, x: &[[f32; 32]; 8]) -> (Scales, M8) {
        scales(simd, x)
    }

    #[inline(always)]
    fn encode_flat<S: Simd>(simd: S, x: &[f32; 32], s: &Scales, lane: usize, out: &mut Self) -> [i32; 8] {
        *out = Self { d: s.d16[lane], qs: bytes(simd, x, s.k[lane]) };
        [0; 8]
    }
}

impl EncodeFlat for Q8_1 {
    type Scales = Scales;

    #[inline(always)]
    fn scales<S: Simd>(simd: S, x: &[[f32; 32]; 8]) -> (Scales, M8) {
        scales(simd, x)
    }

    #[inline(always)]
    fn encode_flat<S: Simd>(simd: S, x: &[f32; 32], s: &Scales, lane: usize, out: &mut Self) -> [i32; 8] {
        let qs = bytes(simd, x, s.k[lane]);
        let sum: i32 = qs.iter().map(|&q| i32::from(q)).sum();
        let (sums, too_large) = halves(simd, simd.splat(sum as f32 * s.d[lane]));
        *out = Self { d: s.d16[lane], s: sums[0], qs };
        too_large.map(u32::cast_signed)
    }
}

impl EncodeFlat for Q8K {
    /// The first weight of the largest magnitude.
    type Scales = F8;

    #[inline(always)]
    fn scales<S: Simd>(simd: S, x: &[[f32; 256]; 8]) -> (F8, M8) {
        (signed_largest(simd, x), non_finite(magnitudes(simd, x)))
    }

    /// ggml leaves the sums of an all-zero block unwritten; here they are 0.
    #[inline(always)]
    fn encode_flat<S: Simd>(_: S, x: &[f32; 256], max: &F8, lane: usize, out: &mut Self) -> [i32; 8] {
        let max = max[lane];
        if max == 0.0 {
            *out = Self { d: 0.0.into(), qs: [0; 256], bsums: [0.into(); 16] };
            return [0; 8];
        }
        let iscale = -127.0 / max;
        for i in 0..256 {
            out.qs[i] = nearest_int(iscale * x[i]).min(127) as i8;
        }
        for (sum, qs) in out.bsums.iter_mut().zip(out.qs.as_chunks::<16>().0) {
            *sum = qs.iter().map(|&q| i16::from(q)).sum::<i16>().into();
        }
        out.d = (1.0 / iscale).into();
        [0; 8]
    }
}

flat_encoders! { Q8_0 Q8_1 Q8K }

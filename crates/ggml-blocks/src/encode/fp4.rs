//! Encoders of MXFP4 and NVFP4: a scale from the largest magnitude, then the nearest of the E2M1
//! numbers.

use super::flat::{by_eights, either, magnitudes, non_finite};
use super::{EncodeFlat, flat_encoders};
use crate::formats::mxfp4::{self, Mxfp4};
use crate::formats::nvfp4::{self, Nvfp4};
use crate::grid::E2M1_DOUBLED;
use crate::simd::{F8, Levels, M8, Portable, Simd, each};

/// Halfway between neighbours of the doubled numbers 0, 1, 2, 3, 4, 6, 8, 12.
const MIDDLES: [f32; 7] = [0.5, 1.5, 2.5, 3.5, 5.0, 7.0, 10.0];

/// Beyond this multiple of the scale, distances to different levels may round to the same.
const FAR: f32 = 65536.0;

/// The index of the number nearest to each weight; `d` is half the scale.
///
/// ggml takes the first of the 16 whose distance is the least in f32. Near a middle both distances
/// are exact and the middle itself goes to the smaller magnitude, so comparing with the middles is
/// the same, unless a distance overflows or loses its last bits: then all distances are computed.
#[inline(always)]
fn nearest<S: Simd>(simd: S, x: &[f32; 16], amax: f32, d: f32) -> [u8; 16] {
    if d == 0.0 || d * 12.0 == f32::INFINITY || amax > d * FAR {
        return nearest_of_all(x, d);
    }
    let middles = each(
        MIDDLES,
        #[inline(always)]
        |m| simd.splat(m * d),
    );
    let mut wide = [[0; 8]; 4];
    for (wide, x) in wide.iter_mut().zip(x.as_chunks::<8>().0) {
        let a = each(*x, f32::abs);
        let mut index = [0_u32; 8];
        for m in middles {
            // A true mask is -1.
            let beyond = simd.gt(a, m);
            for i in 0..8 {
                index[i] = index[i].wrapping_sub(beyond[i]);
            }
        }
        let sign = each(
            *x,
            #[inline(always)]
            |x| x.to_bits() >> 28 & 8,
        );
        *wide = core::array::from_fn(
            #[inline(always)]
            |i| (index[i] | if index[i] == 0 { 0 } else { sign[i] }) as i32,
        );
    }
    let [indices, _]: [[u8; 16]; 2] = bytemuck::must_cast(simd.narrow32(wide));
    indices
}

#[cold]
#[inline(never)]
fn nearest_of_all<const N: usize>(x: &[f32; N], d: f32) -> [u8; N] {
    each(*x, |x| {
        let distance = |i: usize| (f32::from(E2M1_DOUBLED[i]) * d - x).abs();
        let mut best = 0;
        for i in 1..16 {
            if distance(i) < distance(best) {
                best = i;
            }
        }
        best as u8
    })
}

/// Of eight MXFP4 blocks.
#[derive(Clone, Copy, Default)]
pub(crate) struct Exponents {
    e: M8,
    /// By what to multiply weights to count in quarters of the scale; NaN where [`mxfp4_of_all`] has
    /// to look.
    k: F8,
}

impl EncodeFlat for Mxfp4 {
    type Scales = Exponents;

    #[inline(always)]
    fn scales<S: Simd>(simd: S, x: &[[f32; 32]; 8]) -> (Exponents, M8) {
        let largest = magnitudes(simd, x);
        (exponents(largest), non_finite(largest))
    }

    #[inline(always)]
    fn encode_flat<S: Simd>(simd: S, x: &[f32; 32], s: &Exponents, lane: usize, out: &mut Self) -> [i32; 8] {
        if s.k[lane].is_nan() {
            *out = mxfp4_of_all(x);
            return [0; 8];
        }
        let k = simd.splat(s.k[lane]);
        // The scale is a power of two, so the steps are exact and comparing them with the middles is
        // what `nearest` does.
        let steps = by_eights(
            x,
            #[inline(always)]
            |x| simd.away(simd.mul(x, k)),
        );
        *out = Self { e: s.e[lane] as u8, qs: simd.nibbles(simd.e2m1(simd.narrow32(steps))) };
        [0; 8]
    }
}

/// Exponents by the largest magnitudes.
#[inline(always)]
fn exponents(largest: F8) -> Exponents {
    /// No weight this far below a power of two has its logarithm rounded up.
    const FAR_FROM_POWER: u32 = 0x0080_0000 - 1 - REACH[7];
    let mut out = Exponents::default();
    for b in 0..8 {
        let bits = largest[b].to_bits();
        let exponent = bits >> 23;
        // Far from where scales are subnormal or distances overflow.
        let usual = exponent.wrapping_sub(8) < 240 && bits & 0x007F_FFFF < FAR_FROM_POWER;
        let k = if usual { 258_u32.wrapping_sub(exponent) << 23 } else { f32::NAN.to_bits() };
        (out.e[b], out.k[b]) =
            if bits == 0 { (0, 0.0) } else { (exponent.wrapping_sub(2), f32::from_bits(k)) };
    }
    out
}

/// Weights below 2^-125 give ggml a negative exponent, which wraps in its byte: levels are 0 there.
/// Where it wraps to 255, ggml's NaN, the exponent here is 0.
#[cold]
#[inline(never)]
fn mxfp4_of_all(x: &[f32; 32]) -> Mxfp4 {
    let amax = x.iter().fold(0.0, |max: f32, x| max.max(x.abs()));
    let e = if amax > 0.0 { (floor_log2(amax) - 2 + 127) as u8 } else { 0 };
    let e = if e == 255 { 0 } else { e };
    let levels = nearest_of_all(x, mxfp4::half_scale(e));
    Mxfp4 { e, qs: Portable.nibbles(levels) }
}

impl EncodeFlat for Nvfp4 {
    /// The largest magnitudes of the sub-blocks.
    type Scales = [f32; 32];

    #[inline(always)]
    fn scales<S: Simd>(simd: S, x: &[[f32; 64]; 8]) -> ([f32; 32], M8) {
        let mut largest = [[0.0; 8]; 4];
        let mut bad = [0; 8];
        // Eight sub-blocks of 16 are two blocks.
        let subs: &[[[f32; 16]; 8]; 4] = bytemuck::must_cast_ref(x);
        for (largest, subs) in largest.iter_mut().zip(subs) {
            *largest = magnitudes(simd, subs);
            bad = either(bad, non_finite(*largest));
        }
        (bytemuck::must_cast(largest), bad)
    }

    #[inline(always)]
    fn encode_flat<S: Simd>(
        simd: S,
        x: &[f32; 64],
        amax: &[f32; 32],
        lane: usize,
        out: &mut Self,
    ) -> [i32; 8] {
        for (s, x) in x.as_chunks::<16>().0.iter().enumerate() {
            let amax = amax[4 * lane + s];
            out.d[s] = to_ue4m3(amax / 6.0);
            let levels = nearest(simd, x, amax, nvfp4::half_scale(out.d[s]));
            let [low, high]: [u64; 2] = bytemuck::must_cast(levels);
            out.qs.as_chunks_mut().0[s] = bytemuck::must_cast::<u64, [u8; 8]>(low | high << 4);
        }
        [0; 8]
    }
}

flat_encoders! { Mxfp4 Nvfp4 }

/// How many 2^-24 parts below 2^(k+1) still round up in [`floor_log2`], for |k| (or |k+1|, below 1)
/// in 2^p..2^(p+1): the integer part of 2^p ln 2.
const REACH: [u32; 8] = [0, 1, 2, 5, 11, 22, 44, 88];

/// `floorf(log2f(x))` for positive finite `x`, with `log2f` rounded to nearest as glibc's is here:
/// just below a power of two it rounds up to the integer.
#[inline(always)]
fn floor_log2(x: f32) -> i32 {
    let bits = x.to_bits();
    // Subnormals are scaled up first: exact.
    let (bits, bias) = if bits < 0x0080_0000 { ((x * 16_777_216.0).to_bits(), 151) } else { (bits, 127) };
    let k = (bits >> 23) as i32 - bias;
    let below = 0x0080_0000 - (bits & 0x007F_FFFF);
    let nearby = if k >= 0 { k } else { k + 1 }.unsigned_abs();
    let reach = REACH[nearby.checked_ilog2().unwrap_or(0) as usize];
    k + i32::from(below <= reach)
}

/// ggml's conversion to UE4M3: halves of the last place round up, above 448 saturates.
#[inline(always)]
fn to_ue4m3(x: f32) -> u8 {
    // Below 2^-6 the byte counts 512ths, at most 7 of them.
    let subnormal = ((x * 512.0 + 0.5) as i32).min(7) as u8;
    let bits = x.min(448.0).to_bits();
    let exponent = (bits >> 23) as i32 - 127 + 7;
    // Three bits of mantissa and the one that rounds; a carry moves on into the exponent.
    let rounded = ((exponent.max(0) as u32) << 3) + ((((bits >> 19) & 15) + 1) >> 1);
    if exponent <= 0 {
        subnormal
    } else if rounded >= 0x78 {
        // ggml gives the whole top binade its largest number.
        0x7E
    } else {
        rounded as u8
    }
}

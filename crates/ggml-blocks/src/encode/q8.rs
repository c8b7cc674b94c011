//! Encoders of `Q8_0` and of the activation formats `Q8_1` and `Q8_K`.

use super::flat::{inverse, largest_magnitude, round_away, signed_largest};
use super::{EncodeFlat, in_order};
use crate::block::{Encode, Rows};
use crate::error::EncodeError;
use crate::formats::q8_0::Q8_0;
use crate::formats::q8_1::Q8_1;
use crate::formats::q8_k::Q8K;
use crate::half::F16;
use crate::lanes::nearest_int;
use crate::simd::Simd;

/// The scale of 32 signed bytes, and the bytes.
#[inline(always)]
fn bytes(x: &[f32; 32]) -> (f32, [i8; 32]) {
    let d = largest_magnitude(x) / 127.0;
    let k = inverse(d);
    if k == f32::INFINITY {
        // The scale is 0 in f16 and ggml's conversion of infinities and NaN gives 0.
        return (d, [0; 32]);
    }
    let mut qs = [0; 32];
    for i in 0..32 {
        qs[i] = round_away(x[i] * k);
    }
    (d, qs)
}

impl EncodeFlat for Q8_0 {
    #[inline(always)]
    fn encode_flat<S: Simd>(_: S, x: &[f32; 32], out: &mut Self) {
        let (d, qs) = bytes(x);
        out.d = F16::from_f32(d);
        out.qs = qs;
    }
}

impl EncodeFlat for Q8_1 {
    #[inline(always)]
    fn encode_flat<S: Simd>(_: S, x: &[f32; 32], out: &mut Self) {
        let (d, qs) = bytes(x);
        let sum: i32 = qs.iter().map(|&q| i32::from(q)).sum();
        out.d = F16::from_f32(d);
        out.s = F16::from_f32(sum as f32 * d);
        out.qs = qs;
    }
}

impl EncodeFlat for Q8K {
    /// ggml leaves the sums of an all-zero block unwritten; here they are 0.
    #[inline(always)]
    fn encode_flat<S: Simd>(_: S, x: &[f32; 256], out: &mut Self) {
        let max = signed_largest(x);
        if max == 0.0 {
            *out = Self { d: 0.0.into(), qs: [0; 256], bsums: [0.into(); 16] };
            return;
        }
        let iscale = -127.0 / max;
        for i in 0..256 {
            out.qs[i] = nearest_int(iscale * x[i]).min(127) as i8;
        }
        for (sum, qs) in out.bsums.iter_mut().zip(out.qs.as_chunks::<16>().0) {
            *sum = qs.iter().map(|&q| i16::from(q)).sum::<i16>().into();
        }
        out.d = (1.0 / iscale).into();
    }
}

impl Encode for Q8_0 {
    #[inline(always)]
    fn encode<S: Simd>(simd: S, src: Rows<'_>, out: &mut [Self]) -> Result<(), EncodeError> {
        in_order(simd, src.values, out)
    }
}

impl Encode for Q8_1 {
    #[inline(always)]
    fn encode<S: Simd>(simd: S, src: Rows<'_>, out: &mut [Self]) -> Result<(), EncodeError> {
        in_order(simd, src.values, out)
    }
}

impl Encode for Q8K {
    #[inline(always)]
    fn encode<S: Simd>(simd: S, src: Rows<'_>, out: &mut [Self]) -> Result<(), EncodeError> {
        in_order(simd, src.values, out)
    }
}

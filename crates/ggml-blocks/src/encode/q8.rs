//! Encoders of `Q8_0` and of the activation formats `Q8_1` and `Q8_K`.

use super::flat::{bytes_of, halves, inverse, largest_magnitude, round_away, signed_largest};
use super::{EncodeFlat, in_order};
use crate::block::{Encode, Rows};
use crate::error::EncodeError;
use crate::formats::q8_0::Q8_0;
use crate::formats::q8_1::Q8_1;
use crate::formats::q8_k::Q8K;
use crate::lanes::nearest_int;
use crate::simd::{Simd, each};

/// The scale of 32 signed bytes, and the bytes.
#[inline(always)]
fn bytes<S: Simd>(simd: S, x: &[f32; 32]) -> (f32, [i8; 32]) {
    let d = largest_magnitude(simd, x) / 127.0;
    let k = inverse(d);
    // Where the inverse is infinite, ggml's conversion of infinities and NaN gives level 0.
    let k = simd.splat(if k == f32::INFINITY { 0.0 } else { k });
    let qs = bytes_of(
        simd,
        x,
        #[inline(always)]
        |x| round_away(simd, simd.mul(x, k)),
    );
    (d, each(qs, u8::cast_signed))
}

impl EncodeFlat for Q8_0 {
    #[inline(always)]
    fn encode_flat<S: Simd>(simd: S, x: &[f32; 32], out: &mut Self) {
        let (d, qs) = bytes(simd, x);
        out.d = halves(simd, d, 0.0).0;
        out.qs = qs;
    }
}

impl EncodeFlat for Q8_1 {
    #[inline(always)]
    fn encode_flat<S: Simd>(simd: S, x: &[f32; 32], out: &mut Self) {
        let (d, qs) = bytes(simd, x);
        let sum: i32 = qs.iter().map(|&q| i32::from(q)).sum();
        (out.d, out.s) = halves(simd, d, sum as f32 * d);
        out.qs = qs;
    }
}

impl EncodeFlat for Q8K {
    /// ggml leaves the sums of an all-zero block unwritten; here they are 0.
    #[inline(always)]
    fn encode_flat<S: Simd>(simd: S, x: &[f32; 256], out: &mut Self) {
        let max = signed_largest(simd, x);
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

//! Encoders of the ternary formats `TQ1_0` and `TQ2_0`, and of `Q2_0`, whose encoder uses three of its
//! four levels.

use super::flat::{halves, inverse, largest_magnitude};
use super::{EncodeFlat, in_order};
use crate::block::{Encode, Rows};
use crate::error::EncodeError;
use crate::formats::q2_0::Q2_0;
use crate::formats::tq1_0::Tq1_0;
use crate::formats::tq2_0::Tq2_0;
use crate::half::F16;
use crate::simd::Simd;

/// The scale, and `round(x / scale) + 1` for each weight: 0, 1 or 2, halves away from zero.
///
/// `overflow` is the level where the inverse scale is infinite, which each format's integer
/// conversion in ggml makes of infinities and NaN.
#[inline(always)]
fn trits<S: Simd, const N: usize>(simd: S, x: &[f32; N], overflow: u8) -> (F16, [u8; N]) {
    let d = largest_magnitude(simd, x);
    let k = inverse(d);
    let mut trits = [overflow; N];
    if k != f32::INFINITY {
        for i in 0..N {
            let v = x[i] * k;
            trits[i] = 1 + u8::from(v >= 0.5) - u8::from(v <= -0.5);
        }
    }
    (halves(simd, d, 0.0).0, trits)
}

impl EncodeFlat for Q2_0 {
    #[inline(always)]
    fn encode_flat<S: Simd>(simd: S, x: &[f32; 64], out: &mut Self) {
        let trits;
        (out.d, trits) = self::trits(simd, x, 0);
        for (byte, t) in out.qs.iter_mut().zip(trits.as_chunks::<4>().0) {
            *byte = t[0] | t[1] << 2 | t[2] << 4 | t[3] << 6;
        }
    }
}

impl EncodeFlat for Tq2_0 {
    #[inline(always)]
    fn encode_flat<S: Simd>(simd: S, x: &[f32; 256], out: &mut Self) {
        let trits;
        (out.d, trits) = self::trits(simd, x, 1);
        out.qs = super::superblock::pack_two_bits(&trits);
    }
}

impl EncodeFlat for Tq1_0 {
    #[inline(always)]
    fn encode_flat<S: Simd>(simd: S, x: &[f32; 256], out: &mut Self) {
        let trits;
        (out.d, trits) = self::trits(simd, x, 1);
        let (first, rest) = trits.split_at(160);
        let (second, last) = rest.split_at(80);
        for i in 0..32 {
            out.qs[i] = base_three([first[i], first[32 + i], first[64 + i], first[96 + i], first[128 + i]]);
        }
        for i in 0..16 {
            out.qs[32 + i] =
                base_three([second[i], second[16 + i], second[32 + i], second[48 + i], second[64 + i]]);
        }
        for i in 0..4 {
            out.qh[i] = base_three([last[i], last[4 + i], last[8 + i], last[12 + i], 0]);
        }
    }
}

/// Five trits, the first most significant, as a fraction of 243 in 256ths, rounded up.
#[inline(always)]
#[expect(clippy::manual_div_ceil, reason = "one multiplication, where `div_ceil` adds a comparison")]
fn base_three(trits: [u8; 5]) -> u8 {
    let mut q = 0;
    for t in trits {
        q = q * 3 + u16::from(t);
    }
    ((q * 256 + 242) / 243) as u8
}

impl Encode for Q2_0 {
    #[inline(always)]
    fn encode<S: Simd>(simd: S, src: Rows<'_>, out: &mut [Self]) -> Result<(), EncodeError> {
        in_order(simd, src.values, out)
    }
}

impl Encode for Tq1_0 {
    #[inline(always)]
    fn encode<S: Simd>(simd: S, src: Rows<'_>, out: &mut [Self]) -> Result<(), EncodeError> {
        in_order(simd, src.values, out)
    }
}

impl Encode for Tq2_0 {
    #[inline(always)]
    fn encode<S: Simd>(simd: S, src: Rows<'_>, out: &mut [Self]) -> Result<(), EncodeError> {
        in_order(simd, src.values, out)
    }
}

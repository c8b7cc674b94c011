//! Encoders of the ternary formats `TQ1_0` and `TQ2_0`, and of `Q2_0`, whose encoder uses three of its
//! four levels.

use super::flat::{either, halves, inverses, magnitudes, non_finite};
use super::{EncodeFlat, flat_encoders};
use crate::formats::q2_0::Q2_0;
use crate::formats::tq1_0::Tq1_0;
use crate::formats::tq2_0::Tq2_0;
use crate::half::F16;
use crate::simd::{F8, M8, Simd};

/// Of eight blocks: the scale, its inverse, and where that is infinite.
#[derive(Clone, Copy, Default)]
pub(crate) struct Scales {
    d: [F16; 8],
    k: F8,
    infinite: M8,
}

#[inline(always)]
fn scales<S: Simd, const N: usize>(simd: S, x: &[[f32; N]; 8]) -> (Scales, M8) {
    let largest = magnitudes(simd, x);
    let (k, infinite) = inverses(simd, largest);
    let (d, too_large) = halves(simd, largest);
    (Scales { d, k, infinite }, either(too_large, non_finite(largest)))
}

/// `round(x / scale) + 1` for each weight: 0, 1 or 2, halves away from zero.
///
/// `overflow` is the level where the inverse scale is infinite, which each format's integer
/// conversion in ggml makes of infinities and NaN.
#[inline(always)]
fn trits<const N: usize>(x: &[f32; N], s: &Scales, lane: usize, overflow: u8) -> [u8; N] {
    let mut trits = [overflow; N];
    if s.infinite[lane] == 0 {
        let k = s.k[lane];
        for i in 0..N {
            let v = x[i] * k;
            trits[i] = 1 + u8::from(v >= 0.5) - u8::from(v <= -0.5);
        }
    }
    trits
}

/// Stamps [`EncodeFlat`]: the level of overflows, and how trits are packed.
macro_rules! ternary {
    ($($name:ident $len:literal $overflow:literal $pack:ident)+) => { $(
        impl EncodeFlat for $name {
            type Scales = Scales;

            #[inline(always)]
            fn scales<S: Simd>(simd: S, x: &[[f32; $len]; 8]) -> (Scales, M8) {
                scales(simd, x)
            }

            #[inline(always)]
            fn encode_flat<S: Simd>(_: S, x: &[f32; $len], s: &Scales, lane: usize, out: &mut Self) -> [i32; 8] {
                out.d = s.d[lane];
                $pack(&trits(x, s, lane, $overflow), out);
                [0; 8]
            }
        }
    )+ };
}
ternary! {
    Q2_0 64 0 pack_q2_0
    Tq1_0 256 1 pack_tq1_0
    Tq2_0 256 1 pack_tq2_0
}

#[inline(always)]
fn pack_q2_0(trits: &[u8; 64], out: &mut Q2_0) {
    for (byte, t) in out.qs.iter_mut().zip(trits.as_chunks::<4>().0) {
        *byte = t[0] | t[1] << 2 | t[2] << 4 | t[3] << 6;
    }
}

#[inline(always)]
fn pack_tq2_0(trits: &[u8; 256], out: &mut Tq2_0) {
    out.qs = super::superblock::pack_two_bits(trits);
}

#[inline(always)]
fn pack_tq1_0(trits: &[u8; 256], out: &mut Tq1_0) {
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

flat_encoders! { Q2_0 Tq1_0 Tq2_0 }

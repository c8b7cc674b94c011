//! The encoder of `IQ1_S`.

use zerocopy::little_endian::U16;

use super::block::{SuperBlock, Weights, block_scale, larger, part, scale_level, sigma2, weigh};
use super::codebook::{self, Codebook};
use super::split::{DOWN, Estimate, Split, Sums, UP, best_split};
use super::ternary::{levels, max_abs, none_negative, order, ranks, snap, value};
use crate::F16;
use crate::formats::iq1_s::Iq1S;
use crate::simd::Simd;

/// Sub-blocks whose largest magnitude is below this are zero.
const TINY: f32 = 1e-12;

impl SuperBlock for Iq1S {
    fn book() -> &'static Codebook {
        codebook::iq1()
    }

    #[inline(always)]
    fn encode_one<S: Simd>(
        simd: S,
        book: &Codebook,
        x: &Weights,
        importance: Option<&Weights>,
    ) -> Option<Self> {
        block(simd, book, x, importance?)
    }
}

#[inline(always)]
fn block<S: Simd>(simd: S, book: &Codebook, x: &Weights, importance: &Weights) -> Option<Iq1S> {
    let sigma2 = sigma2(x, 2.0);
    let mut scales = [0.0; 8];
    let mut down = [false; 8];
    let mut qs = [0; 32];
    let mut qh = [0_u16; 8];
    for ib in 0..8 {
        let x = part(x, ib);
        let w = weigh(x, part(importance, ib), sigma2);
        if max_abs(x) < TINY {
            continue;
        }
        let ranks = ranks(x);
        let Some(split) = split(simd, x, &w, &ranks) else { continue };
        let mirrored = split.scale < 0.0;
        down[ib] = (split.shift == 1) != mirrored;
        let mut scale = if mirrored { -split.scale } else { split.scale };
        let levels = levels(&ranks, split.bounds, mirrored);
        let values = if down[ib] { &DOWN } else { &UP };
        let mut codes = [0; 4];
        let mut all_on = true;
        let (groups, ws) = (x.as_chunks().0, w.as_chunks().0);
        for k in 0..4 {
            let (code, on) = snap(simd, book, &levels.as_chunks().0[k], (&groups[k], &ws[k]), scale, values);
            codes[k] = code;
            all_on &= on;
        }
        if !all_on {
            let (mut sumqx, mut sumq2) = (0.0, 0.0);
            for i in 0..32 {
                let q = value(codes[i / 8], i % 8, values);
                sumqx += w[i] * q * x[i];
                sumq2 += w[i] * q * q;
            }
            if sumqx > 0.0 && sumq2 > 0.0 {
                scale = sumqx / sumq2;
            }
        }
        for k in 0..4 {
            let [low, high] = book.index(codes[k]).to_le_bytes();
            qs[4 * ib + k] = low;
            qh[ib] |= u16::from(high) << (3 * k);
        }
        scales[ib] = scale;
    }
    let max_scale = scales.into_iter().fold(0.0, larger);
    let mut d16 = F16::from_bits(0);
    if max_scale != 0.0 {
        let d = max_scale / 15.0;
        d16 = block_scale(d, 1.125)?;
        let id = 1.0 / d;
        for ib in 0..8 {
            let level = scale_level(id, scales[ib], 7) | u8::from(down[ib]) << 3;
            qh[ib] |= u16::from(level) << 12;
        }
    }
    Some(Iq1S { d: d16, qs, qh: qh.map(U16::new) })
}

/// `weight * x` and `weight` summed up to each of the 33 bounds.
struct Prefix {
    x: [f32; 33],
    w: [f32; 33],
}

impl Sums<2> for Prefix {
    #[inline(always)]
    fn exact(&self, i1: usize, i2: usize, k: usize) -> (f32, f32) {
        let Self { x, w } = self;
        let q = if k == 0 { UP } else { DOWN };
        (
            (x[i1] - x[0]) * q[0] + (x[i2] - x[i1]) * q[1] + (x[32] - x[i2]) * q[2],
            (w[i1] - w[0]) * q[0] * q[0] + (w[i2] - w[i1]) * q[1] * q[1] + (w[32] - w[i2]) * q[2] * q[2],
        )
    }
}

#[inline(always)]
fn split<S: Simd>(simd: S, x: &[f32; 32], w: &[f32; 32], ranks: &[i32; 32]) -> Option<Split> {
    let mut sums = Prefix { x: [0.0; 33], w: [0.0; 33] };
    for (j, &i) in order(ranks).iter().enumerate() {
        let i = usize::from(i) % 32;
        sums.x[j + 1] = sums.x[j] + w[i] * x[i];
        sums.w[j + 1] = sums.w[j] + w[i];
    }
    let mut estimate = Estimate::<2, 40> {
        at: [0.0; 40],
        x: [0.0; 2],
        w: [0.0; 2],
        first: [[0.0; 40]; 2],
        second: [[f32::NAN; 40]; 2],
    };
    estimate.at[..33].copy_from_slice(&sums.x);
    for (k, q) in [UP, DOWN].into_iter().enumerate() {
        estimate.x[k] = sums.x[32] * q[2];
        estimate.w[k] = sums.w[32] * q[2] * q[2];
        for i in 0..33 {
            estimate.first[k][i] = sums.w[i] * (q[0] * q[0] - q[1] * q[1]);
            estimate.second[k][i] = sums.w[i] * (q[1] * q[1] - q[2] * q[2]);
        }
    }
    let estimate = none_negative(w).then_some(&estimate);
    best_split(simd, &sums, 32, estimate, sums.w[32])
}

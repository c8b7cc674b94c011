//! The encoder of `IQ1_M`.

use super::block::{SuperBlock, Weights, block_scale, larger, part, scale_level, sigma2, weigh};
use super::codebook::{self, Codebook};
use super::split::{DOWN, Estimate, Split, Sums, UP, best_split};
use super::ternary::{levels, max_abs, none_negative, order, ranks, snap, value};
use crate::formats::iq1_m::Iq1M;
use crate::simd::Simd;

/// Sub-blocks whose largest magnitude is below this are zero.
const TINY: f32 = 1e-7;

impl SuperBlock for Iq1M {
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
        block(simd, book, x, importance)
    }
}

/// The values of the two groups of a sub-block. Shifts count 0 to 3: up-up, up-down, down-up, down-down.
#[inline(always)]
fn values(shift: usize) -> [&'static [f32; 3]; 2] {
    let of = |down| if down { &DOWN } else { &UP };
    [of(shift & 2 != 0), of(shift & 1 != 0)]
}

#[inline(always)]
fn block<S: Simd>(simd: S, book: &Codebook, x: &Weights, importance: Option<&Weights>) -> Option<Iq1M> {
    let sigma2 = sigma2(x, 2.0);
    let mut scales = [0.0; 16];
    let mut shifts = [0; 16];
    let mut codes = [[0; 2]; 16];
    let mut weights = [[0.0; 16]; 16];
    let (mut qs, mut qh) = ([0; 32], [0; 16]);
    for ib in 0..16 {
        let x = part(x, ib);
        let w = match importance {
            Some(importance) => weigh(x, part(importance, ib), sigma2),
            None => x.map(
                #[inline(always)]
                |x| x * x,
            ),
        };
        weights[ib] = w;
        if max_abs(x) < TINY {
            continue;
        }
        let ranks = ranks(x);
        let Some(split) = split(simd, x, &w, &ranks) else { continue };
        let mirrored = split.scale < 0.0;
        shifts[ib] = if mirrored { 3 - split.shift } else { split.shift };
        let mut scale = if mirrored { -split.scale } else { split.scale };
        let levels = levels(&ranks, split.bounds, mirrored);
        let values = values(shifts[ib]);
        let mut all_on = true;
        let (groups, ws) = (x.as_chunks().0, w.as_chunks().0);
        for k in 0..2 {
            let (code, on) =
                snap(simd, book, &levels.as_chunks().0[k], (&groups[k], &ws[k]), scale, values[k]);
            codes[ib][k] = code;
            all_on &= on;
        }
        if !all_on {
            let (mut sumqx, mut sumq2) = (0.0, 0.0);
            for i in 0..16 {
                let q = value(codes[ib][i / 8], i % 8, values[i / 8]);
                sumqx += w[i] * q * x[i];
                sumq2 += w[i] * q * q;
            }
            if sumqx > 0.0 && sumq2 > 0.0 {
                scale = sumqx / sumq2;
            }
        }
        for k in 0..2 {
            let [low, high] = book.index(codes[ib][k]).to_le_bytes();
            qs[2 * ib + k] = low;
            qh[ib] |= high << (4 * k);
        }
        scales[ib] = scale;
    }
    let max_scale = scales.into_iter().fold(0.0, larger);
    let mut words = [0_u16; 4];
    if max_scale != 0.0 {
        let mut d = max_scale / 15.0;
        let id = 1.0 / d;
        let (mut sumqx, mut sumq2) = (0.0, 0.0);
        for ib in 0..16 {
            let level = scale_level(id, scales[ib], 7);
            words[ib / 4] |= u16::from(level) << (3 * (ib % 4));
            qh[ib] |= [0x00, 0x80, 0x08, 0x88][shifts[ib] % 4];
            let values = values(shifts[ib]);
            let x = part::<16>(x, ib);
            for i in 0..16 {
                let w = weights[ib][i];
                let q = value(codes[ib][i / 8], i % 8, values[i / 8]) * f32::from(2 * level + 1);
                sumqx += w * q * x[i];
                sumq2 += w * q * q;
            }
        }
        if sumq2 > 0.0 {
            d = sumqx / sumq2;
        }
        let d = block_scale(d, 1.1125)?.to_bits();
        for (i, word) in words.iter_mut().enumerate() {
            *word |= (d >> (4 * i) & 15) << 12;
        }
    }
    let mut bytes = [0; 8];
    for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
    Some(Iq1M { qs, qh, scales: bytes })
}

/// `weight * x` and `weight` of each group summed up to each of the 17 bounds.
struct Prefix {
    x: [[f32; 17]; 2],
    w: [[f32; 17]; 2],
}

/// What a bound adds to `sumq2` per weight before it.
#[inline(always)]
fn steps(q: &[f32; 3]) -> (f32, f32) {
    (q[0] * q[0] - q[1] * q[1], q[1] * q[1] - q[2] * q[2])
}

impl Sums<4> for Prefix {
    #[inline(always)]
    fn exact(&self, i1: usize, i2: usize, k: usize) -> (f32, f32) {
        let (mut qx, mut q2) = ([0.0; 2], [0.0; 2]);
        for (h, q) in values(k).into_iter().enumerate() {
            let (x, w) = (&self.x[h], &self.w[h]);
            let (c1, c2) = steps(q);
            qx[h] = x[16] * q[2] - (x[i1] + x[i2]);
            q2[h] = w[16] * q[2] * q[2] + w[i1] * c1 + w[i2] * c2;
        }
        (qx[0] + qx[1], q2[0] + q2[1])
    }
}

#[inline(always)]
fn split<S: Simd>(simd: S, x: &[f32; 16], w: &[f32; 16], ranks: &[i32; 16]) -> Option<Split> {
    let mut sums = Prefix { x: [[0.0; 17]; 2], w: [[0.0; 17]; 2] };
    // A sum is never -0.0, so that adding 0.0 leaves it as it is.
    let (mut sumx, mut sumw) = ([0.0; 2], [0.0; 2]);
    for (j, &i) in order(ranks).iter().enumerate() {
        let i = usize::from(i) % 16;
        for h in 0..2 {
            sumx[h] += if i / 8 == h { w[i] * x[i] } else { 0.0 };
            sumw[h] += if i / 8 == h { w[i] } else { 0.0 };
            (sums.x[h][j + 1], sums.w[h][j + 1]) = (sumx[h], sumw[h]);
        }
    }
    let mut estimate = Estimate::<4, 24> {
        at: [0.0; 24],
        x: [0.0; 4],
        w: [0.0; 4],
        first: [[0.0; 24]; 4],
        second: [[f32::NAN; 24]; 4],
    };
    for i in 0..17 {
        estimate.at[i] = sums.x[0][i] + sums.x[1][i];
    }
    for k in 0..4 {
        let [a, b] = values(k);
        estimate.x[k] = sums.x[0][16] * a[2] + sums.x[1][16] * b[2];
        estimate.w[k] = sums.w[0][16] * a[2] * a[2] + sums.w[1][16] * b[2] * b[2];
        for i in 0..17 {
            estimate.first[k][i] = sums.w[0][i] * steps(a).0 + sums.w[1][i] * steps(b).0;
            estimate.second[k][i] = sums.w[0][i] * steps(a).1 + sums.w[1][i] * steps(b).1;
        }
    }
    let estimate = none_negative(w).then_some(&estimate);
    best_split(simd, &sums, 16, estimate, sums.w[0][16] + sums.w[1][16])
}

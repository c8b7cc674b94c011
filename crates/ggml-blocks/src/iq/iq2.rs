//! The encoders of `IQ2_XXS`, `IQ2_XS` and `IQ2_S`: groups of eight weights on grids of the levels 1, 3, 5.

use super::block::{SuperBlock, Weights, block_scale, larger, nibbles, part, scale_level, sigma2, weigh};
use super::codebook::{self, Codebook};
use super::steps::{Again, Found, Steps, Sub, search};
use zerocopy::little_endian::U16;

use crate::F16;
use crate::formats::{iq2_s::Iq2S, iq2_xs::Iq2Xs, iq2_xxs::Iq2Xxs};
use crate::lanes::{Lanes, Wide};
use crate::search::qp;
use crate::simd::Simd;

const XXS: Steps = Steps { first: -6, count: 13, by: 0.1, again: Again::All };
const XS: Steps = Steps { first: -9, count: 19, by: 0.1, again: Again::Off };

impl SuperBlock for Iq2Xxs {
    fn book() -> &'static Codebook {
        codebook::iq2_xxs()
    }

    #[inline(always)]
    fn encode_one<S: Simd>(
        simd: S,
        book: &Codebook,
        x: &Weights,
        importance: Option<&Weights>,
    ) -> Option<Self> {
        iq2_xxs(simd, book, x, importance?)
    }
}

/// Sub-blocks whose largest magnitude is below this are zero.
const TINY_XXS: f32 = 1e-15;
const TINY_S: f32 = 1e-8;

#[inline(always)]
fn iq2_xxs<S: Simd>(simd: S, book: &Codebook, x: &Weights, importance: &Weights) -> Option<Iq2Xxs> {
    let sigma2 = sigma2(x, 1.0);
    let mut subs = [const { Sub { x: [0.0; 32], w: [0.0; 32], root: [0.0; 32] } }; 8];
    let mut signs = [0; 8];
    for ib in 0..8 {
        let x = part(x, ib);
        let (sub, bits) = Sub::new(x, weigh(x, part(importance, ib), sigma2));
        subs[ib] = sub;
        signs[ib] = subs[ib].even_signs(bits);
    }
    // The first scales, of all eight sub-blocks at once.
    let zero = Wide::<S, 1>::zero(simd);
    let (mut xs, mut ws) = ([zero; 32], [zero; 32]);
    for i in 0..32 {
        for ib in 0..8 {
            xs[i].set(ib, subs[ib].x[i]);
            ws[i].set(ib, subs[ib].w[i]);
        }
    }
    let first = qp(&xs, &ws, 4.0, &mut [zero; 32]);

    let mut scales = [0.0; 8];
    let mut max_scale = 0.0;
    let mut words = [[0_u32; 2]; 8];
    for ib in 0..8 {
        let scale = first.get(ib);
        let eff_max = scale * 3.0;
        // A NaN goes on, as in ggml.
        if subs[ib].max() < TINY_XXS || eff_max <= 0.0 {
            continue;
        }
        let found: Found<4> = search::<S, 2, 8, 32, 4, 16>(simd, book, &XXS, &subs[ib], eff_max, scale);
        for k in 0..4 {
            words[ib][0] |= u32::from(book.index(found.codes[k])) << (8 * k);
            let signs = flip(signs[ib], found.scale) >> (8 * k) & 127;
            words[ib][1] |= signs << (7 * k);
        }
        scales[ib] = found.scale.abs();
        max_scale = larger(max_scale, scales[ib]);
    }
    if max_scale == 0.0 {
        return Some(Iq2Xxs { d: F16::from_bits(0), qs: [U16::ZERO; 32] });
    }
    let d = max_scale / 31.0;
    let id = 1.0 / d;
    let mut qs = [U16::ZERO; 32];
    for ib in 0..8 {
        words[ib][1] |= u32::from(scale_level(id, scales[ib], 15)) << 28;
        for (i, word) in words[ib].into_iter().enumerate() {
            qs[4 * ib + 2 * i] = U16::new(word as u16);
            qs[4 * ib + 2 * i + 1] = U16::new((word >> 16) as u16);
        }
    }
    Some(Iq2Xxs { d: block_scale(d, 1.0)?, qs })
}

/// A negative scale stands for all signs changed.
#[inline(always)]
pub(super) fn flip(signs: u32, scale: f32) -> u32 {
    if scale < 0.0 { !signs } else { signs }
}

impl SuperBlock for Iq2Xs {
    fn book() -> &'static Codebook {
        codebook::iq2_xs()
    }

    #[inline(always)]
    fn encode_one<S: Simd>(
        simd: S,
        book: &Codebook,
        x: &Weights,
        importance: Option<&Weights>,
    ) -> Option<Self> {
        iq2_xs(simd, book, x, importance?)
    }
}

#[inline(always)]
fn iq2_xs<S: Simd>(simd: S, book: &Codebook, x: &Weights, importance: &Weights) -> Option<Iq2Xs> {
    let sigma2 = sigma2(x, 1.0);
    let mut scales = [0.0; 16];
    let mut qs = [U16::ZERO; 32];
    for ib in 0..16 {
        let x = part(x, ib);
        let (mut sub, signs) = Sub::new(x, weigh(x, part(importance, ib), sigma2));
        let signs = sub.even_signs(signs);
        let max = sub.max();
        if max < TINY_XXS {
            continue;
        }
        let found: Found<2> = search::<S, 2, 8, 16, 2, 24>(simd, book, &XS, &sub, max, max / 5.0);
        for k in 0..2 {
            let signs = flip(signs, found.scale) >> (8 * k) & 127;
            qs[2 * ib + k] = U16::new(book.index(found.codes[k]) | (signs as u16) << 9);
        }
        scales[ib] = found.scale.abs();
    }
    let max_scale = scales.into_iter().fold(0.0, larger);
    if max_scale == 0.0 {
        return Some(Iq2Xs { d: F16::from_bits(0), qs: [U16::ZERO; 32], scales: [0; 8] });
    }
    let d = max_scale / 31.0;
    Some(Iq2Xs { d: block_scale(d, 1.0)?, qs, scales: nibbles(1.0 / d, &scales) })
}

impl SuperBlock for Iq2S {
    fn book() -> &'static Codebook {
        codebook::iq2_s()
    }

    #[inline(always)]
    fn encode_one<S: Simd>(
        simd: S,
        book: &Codebook,
        x: &Weights,
        importance: Option<&Weights>,
    ) -> Option<Self> {
        iq2_s(simd, book, x, importance)
    }
}

#[inline(always)]
fn iq2_s<S: Simd>(simd: S, book: &Codebook, x: &Weights, importance: Option<&Weights>) -> Option<Iq2S> {
    let sigma2 = sigma2(x, 2.0);
    let mut scales = [0.0; 16];
    let (mut qs, mut bits) = ([0; 32], [0; 32]);
    let mut qh = [0; 8];
    for ib in 0..16 {
        let x = part(x, ib);
        let w = match importance {
            Some(importance) => weigh(x, part(importance, ib), sigma2),
            None => x.map(
                #[inline(always)]
                |x| 0.25 * sigma2 + x * x,
            ),
        };
        let (sub, signs) = Sub::new(x, w);
        let max = sub.max();
        if max < TINY_S {
            continue;
        }
        let found: Found<2> = search::<S, 2, 8, 16, 2, 24>(simd, book, &XS, &sub, max, max / 5.0);
        let signs = flip(signs, found.scale);
        for k in 0..2 {
            let group = 2 * ib + k;
            let [low, high] = book.index(found.codes[k]).to_le_bytes();
            qs[group] = low;
            qh[group / 4] |= high << (2 * (group % 4));
            bits[group] = (signs >> (8 * k)) as u8;
        }
        scales[ib] = found.scale.abs();
    }
    let max_scale = scales.into_iter().fold(0.0, larger);
    if max_scale == 0.0 {
        return Some(Iq2S { d: F16::from_bits(0), qs, signs: bits, qh, scales: [0; 8] });
    }
    let d = max_scale / 31.0;
    Some(Iq2S { d: block_scale(d, 0.9875)?, qs, signs: bits, qh, scales: nibbles(1.0 / d, &scales) })
}

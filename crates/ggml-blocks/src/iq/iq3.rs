//! The encoders of `IQ3_XXS` and `IQ3_S`: groups of four weights on grids of the levels 1, 3 .. 15.

use super::block::{SuperBlock, Weights, block_scale, larger, nibbles, part, scale_level, sigma2, weigh};
use super::codebook::{self, Codebook};
use super::iq2::flip;
use super::steps::{Again, Found, Steps, Sub, search};
use crate::F16;
use crate::formats::{iq3_s::Iq3S, iq3_xxs::Iq3Xxs};
use crate::simd::Simd;

const XXS: Steps = Steps { first: -15, count: 31, by: 0.2, again: Again::Off };
const S: Steps = Steps { first: -9, count: 19, by: 0.2, again: Again::AllIfAny };

/// `IQ3_XXS` sub-blocks whose largest magnitude is below this are zero.
const TINY_XXS: f32 = 1e-8;

#[inline(always)]
fn weights(x: &[f32; 32], importance: Option<&Weights>, ib: usize, sigma2: f32) -> [f32; 32] {
    match importance {
        Some(importance) => weigh(x, part(importance, ib), sigma2),
        None => x.map(
            #[inline(always)]
            |x| x * x,
        ),
    }
}

impl SuperBlock for Iq3Xxs {
    fn book() -> &'static Codebook {
        codebook::iq3_xxs()
    }

    #[inline(always)]
    fn encode_one<S: Simd>(
        simd: S,
        book: &Codebook,
        x: &Weights,
        importance: Option<&Weights>,
    ) -> Option<Self> {
        iq3_xxs(simd, book, x, importance)
    }
}

#[inline(always)]
fn iq3_xxs<S: Simd>(simd: S, book: &Codebook, x: &Weights, importance: Option<&Weights>) -> Option<Iq3Xxs> {
    let sigma2 = sigma2(x, 2.0);
    let mut scales = [0.0; 8];
    let mut words = [0_u32; 8];
    let (mut qs, mut scales_and_signs) = ([0; 64], [0; 32]);
    for ib in 0..8 {
        let x = part(x, ib);
        let (mut sub, signs) = Sub::new(x, weights(x, importance, ib, sigma2));
        let signs = sub.even_signs(signs);
        let max = sub.max();
        if max < TINY_XXS {
            continue;
        }
        let found: Found<8> = search::<_, 3, 4, 32, 8, 32>(simd, book, &XXS, &sub, max, max / 15.0);
        for k in 0..8 {
            qs[8 * ib + k] = book.index(found.codes[k]) as u8;
        }
        let signs = flip(signs, found.scale);
        for k in 0..4 {
            words[ib] |= (signs >> (8 * k) & 127) << (7 * k);
        }
        scales[ib] = found.scale.abs();
    }
    let max_scale = scales.into_iter().fold(0.0, larger);
    if max_scale == 0.0 {
        return Some(Iq3Xxs { d: F16::from_bits(0), qs: [0; 64], scales_and_signs: [0; 32] });
    }
    let d = max_scale / 31.0;
    let id = 1.0 / d;
    for ib in 0..8 {
        words[ib] |= u32::from(scale_level(id, scales[ib], 15)) << 28;
        scales_and_signs[4 * ib..4 * ib + 4].copy_from_slice(&words[ib].to_le_bytes());
    }
    Some(Iq3Xxs { d: block_scale(d, 1.0125)?, qs, scales_and_signs })
}

impl SuperBlock for Iq3S {
    fn book() -> &'static Codebook {
        codebook::iq3_s()
    }

    #[inline(always)]
    fn encode_one<S: Simd>(
        simd: S,
        book: &Codebook,
        x: &Weights,
        importance: Option<&Weights>,
    ) -> Option<Self> {
        iq3_s(simd, book, x, importance)
    }
}

#[inline(always)]
fn iq3_s<S: Simd>(simd: S, book: &Codebook, x: &Weights, importance: Option<&Weights>) -> Option<Iq3S> {
    let sigma2 = sigma2(x, 2.0);
    let mut scales = [0.0; 8];
    // Kept as in ggml: a sub-block of zeros takes no place in `qs` and `signs`, so that those after it
    // move down, while their bits in `qh` and their scales do not. Such blocks decode to other weights.
    let mut place = 0;
    let mut block = Iq3S { d: F16::from_bits(0), qs: [0; 64], qh: [0; 8], signs: [0; 32], scales: [0; 4] };
    for ib in 0..8 {
        let x = part(x, ib);
        let (sub, signs) = Sub::new(x, weights(x, importance, ib, sigma2));
        let max = sub.max();
        if max == 0.0 {
            continue;
        }
        let found: Found<8> = search::<_, 3, 4, 32, 8, 24>(simd, book, &S, &sub, max, max / 15.0);
        for k in 0..8 {
            let [low, high] = book.index(found.codes[k]).to_le_bytes();
            block.qs[8 * place + k] = low;
            block.qh[ib] |= high << k;
        }
        block.signs[4 * place..4 * place + 4].copy_from_slice(&flip(signs, found.scale).to_le_bytes());
        place += 1;
        scales[ib] = found.scale.abs();
    }
    let max_scale = scales.into_iter().fold(0.0, larger);
    if max_scale == 0.0 {
        return Some(block);
    }
    let d = max_scale / 31.0;
    block.d = block_scale(d, 1.033)?;
    block.scales = nibbles(1.0 / d, &scales);
    Some(block)
}

//! The codebooks: data that came with ggml's format definitions.
//!
//! A grid entry holds four or eight magnitudes, one per byte, the first weight's in the lowest.
//! `IQ4_LEVELS` are the 16 levels of `IQ4_NL` and `IQ4_XS`, `E2M1_DOUBLED` the values of the 4-bit
//! float E2M1, doubled so that they are integers.

mod iq1s;
mod iq2s;
mod iq2xs;
mod iq2xxs;
mod iq3s;
mod iq3xxs;
mod levels;

pub(crate) use iq1s::IQ1S;
pub(crate) use iq2s::IQ2S;
pub(crate) use iq2xs::IQ2XS;
pub(crate) use iq2xxs::IQ2XXS;
pub(crate) use iq3s::IQ3S;
pub(crate) use iq3xxs::IQ3XXS;
pub(crate) use levels::{E2M1_DOUBLED, IQ4_LEVELS};

/// How far `IQ1_S` and `IQ1_M` shift a group of levels, up or down.
pub(crate) const IQ1_DELTA: f32 = 0.125;

/// Eight sign bits from seven: the eighth makes their number even.
pub(crate) static SIGNS: [u8; 128] = {
    let mut table = [0; 128];
    let mut i = 0;
    while i < 128 {
        let seven = i as u8;
        table[i] = seven | ((seven.count_ones() as u8 & 1) << 7);
        i += 1;
    }
    table
};

/// Eight signs for seven sign bits: -1 where a weight is negative, else 1, the first weight's in the lowest byte.
pub(crate) static PLUS_MINUS: [u64; 128] = {
    let mut table = [0; 128];
    let mut i = 0;
    while i < 128 {
        let mut weight = 0;
        while weight < 8 {
            let sign: u64 = if SIGNS[i] >> weight & 1 == 1 { 0xFF } else { 1 };
            table[i] |= sign << (8 * weight);
            weight += 1;
        }
        i += 1;
    }
    table
};

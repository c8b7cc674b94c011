//! The codebooks: data that came with ggml's format definitions.
//!
//! A grid entry holds four or eight magnitudes, one per byte, the first weight's in the lowest.

mod iq1s;
mod iq2s;
mod iq2xs;
mod iq2xxs;
mod iq3s;
mod iq3xxs;

pub(crate) use iq1s::IQ1S;
pub(crate) use iq2s::IQ2S;
pub(crate) use iq2xs::IQ2XS;
pub(crate) use iq2xxs::IQ2XXS;
pub(crate) use iq3s::IQ3S;
pub(crate) use iq3xxs::IQ3XXS;

/// The 16 levels of `IQ4_NL` and `IQ4_XS`.
pub(crate) static IQ4_LEVELS: [i8; 16] =
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// The 16 values of the 4-bit float E2M1, doubled so that they are integers.
pub(crate) static E2M1_DOUBLED: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

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

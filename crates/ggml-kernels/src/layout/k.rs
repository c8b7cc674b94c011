//! Packed layouts of 256-weight units.
//!
//! ```text
//! d       f16 per column, f32 for codebook formats, whose d takes a power of two
//! dmin    f16 per column                                          Q4_K Q5_K Q2_K
//! mins    for each two sub-blocks, for each column: 2 u8          Q4_K Q5_K
//! scales  for each two sub-blocks, for each column: 2 i8          all but TQ2_0 and folded planes; Q2_K has
//!                                                                 the scale in the low nibble, the
//!                                                                 minimum above
//! then 8 chunks of 32 weights:
//! fours   4 vectors, vector v: low nibbles quad v, high nibbles quad 4 + v     Q4_K Q5_K Q6_K IQ4_XS,
//!                                                                 codebook formats, folded planes
//! twos    2 vectors, vector h: bits 2i..2i+2 quad 4h + i          Q6_K (the high bits) Q2_K Q3_K TQ2_0
//! ones    1 vector: bit i quad i                                  Q5_K Q3_K (the high bit)
//! ```
//!
//! A vector is four bytes of each of eight columns.

use super::nibble::nibble;
use super::{SuperLayout, at, floats};
use crate::isa::Isa;

/// `Q4_K`, 1184 bytes for 8 columns, 1152 in the file.
pub(crate) struct Q4Kx8;
/// `Q5_K`, 1440 bytes for 8 columns, 1408 in the file.
pub(crate) struct Q5Kx8;
/// `Q6_K`, 1680 bytes for 8 columns, as in the file.
pub(crate) struct Q6Kx8;
/// `IQ4_XS`, 1104 bytes for 8 columns, 1088 in the file.
pub(crate) struct Iq4Xsx8;
/// `Q2_K`, 672 bytes for 8 columns, as in the file.
pub(crate) struct Q2Kx8;
/// `Q3_K`, 912 bytes for 8 columns, 880 in the file.
pub(crate) struct Q3Kx8;
/// The codebook formats, 1184 bytes for 8 columns, 400 to 880 in the file: each level's place in a table.
pub(crate) struct Codesx8;
/// `TQ2_0`, 528 bytes for 8 columns, as in the file; `TQ1_0` as well, 432 in the file.
pub(crate) struct Tq2x8;
/// Two tied planes of `TQ2_0`, 1040 bytes for 8 columns, 1056 in the file: the level is three times the
/// coarse plane's plus the fine one's, the scale is the fine one's.
pub(crate) struct Foldedx8;

/// Two-bit fields of quad `i`, vectors from the start of `data` on, moved `up` bits.
#[inline(always)]
pub(super) fn two<I: Isa>(isa: I, data: &[u8], i: usize, up: i32) -> I::B {
    let four = isa.bytes(at(data, i / 4 * 32));
    moved(isa, four, up - 2 * (i % 4) as i32, 3 << up)
}

/// Bit `i` of each byte, moved to bit `up`.
#[inline(always)]
pub(super) fn one<I: Isa>(isa: I, data: &[u8], i: usize, up: i32) -> I::B {
    moved(isa, isa.bytes(at(data, 0)), up - i as i32, 1 << up)
}

#[inline(always)]
fn moved<I: Isa>(isa: I, x: I::B, by: i32, mask: u8) -> I::B {
    let x = if by > 0 {
        isa.shl(x, by)
    } else if by < 0 {
        isa.shr(x, -by)
    } else {
        x
    };
    isa.and(x, isa.splat_byte(mask))
}

/// What `Q4_K` and `Q5_K` share.
macro_rules! with_mins {
    () => {
        const OFFSET: i32 = 0;
        const DATA: usize = 160;
        const SUBS: usize = 8;
        const MINS: bool = true;

        #[inline(always)]
        fn dmin<I: Isa>(isa: I, unit: &[u8]) -> I::F {
            isa.widen(at(unit, 16))
        }

        #[inline(always)]
        fn min_pairs<I: Isa>(isa: I, unit: &[u8], p: usize) -> I::I {
            isa.pairs_u8(at(unit, 32 + 16 * p))
        }

        #[inline(always)]
        fn scale_pairs<I: Isa>(isa: I, unit: &[u8], p: usize) -> I::I {
            isa.pairs_i8(at(unit, 96 + 16 * p))
        }
    };
}

/// What `Q6_K`, `Q3_K` and `IQ4_XS` share: the scale of scales, then the scales.
macro_rules! with_scales {
    ($subs:literal) => {
        const DATA: usize = 16 + 8 * $subs;
        const SUBS: usize = $subs;

        #[inline(always)]
        fn scale_pairs<I: Isa>(isa: I, unit: &[u8], p: usize) -> I::I {
            isa.pairs_i8(at(unit, 16 + 16 * p))
        }
    };
}

/// What `TQ2_0` and folded planes share: one scale for all.
macro_rules! without_scales {
    () => {
        const DATA: usize = 16;
        const SUBS: usize = 8;
        const SCALED: bool = false;

        #[inline(always)]
        fn scale_pairs<I: Isa>(isa: I, _: &[u8], _: usize) -> I::I {
            isa.splat_i32(0x0001_0001)
        }
    };
}

impl SuperLayout for Q4Kx8 {
    const MAX: u32 = 15;
    const UNIT: usize = 160 + 8 * 128;
    const CHUNK: usize = 128;
    with_mins! {}

    #[inline(always)]
    fn level<I: Isa>(isa: I, _: I::B, chunk: &[u8], i: usize) -> I::B {
        nibble(isa, chunk, i)
    }
}

impl SuperLayout for Q5Kx8 {
    const WORD_ROWS: usize = 16;
    const MAX: u32 = 31;
    const UNIT: usize = 160 + 8 * 160;
    const CHUNK: usize = 160;
    with_mins! {}

    #[inline(always)]
    fn level<I: Isa>(isa: I, _: I::B, chunk: &[u8], i: usize) -> I::B {
        isa.or(nibble(isa, chunk, i), one(isa, &chunk[128..], i, 4))
    }
}

impl SuperLayout for Q6Kx8 {
    const WORD_ROWS: usize = 16;
    const MAX: u32 = 63;
    const OFFSET: i32 = 32;
    const UNIT: usize = 144 + 8 * 192;
    const CHUNK: usize = 192;
    with_scales! { 16 }

    #[inline(always)]
    fn level<I: Isa>(isa: I, _: I::B, chunk: &[u8], i: usize) -> I::B {
        isa.or(nibble(isa, chunk, i), two(isa, &chunk[128..], i, 4))
    }
}

impl SuperLayout for Iq4Xsx8 {
    const WORD_ROWS: usize = 8;
    const MAX: u32 = 255;
    const OFFSET: i32 = 128;
    const UNIT: usize = 80 + 8 * 128;
    const CHUNK: usize = 128;
    with_scales! { 8 }

    #[inline(always)]
    fn level<I: Isa>(isa: I, table: I::B, chunk: &[u8], i: usize) -> I::B {
        isa.lookup(table, nibble(isa, chunk, i))
    }
}

impl SuperLayout for Codesx8 {
    const WORD_ROWS: usize = 32;
    const MAX: u32 = 127;
    const OFFSET: i32 = 64;
    const UNIT: usize = 160 + 8 * 128;
    const DATA: usize = 160;
    const CHUNK: usize = 128;
    const SUBS: usize = 16;

    #[inline(always)]
    fn d<I: Isa>(isa: I, unit: &[u8]) -> I::F {
        floats(isa, unit, 0)
    }

    #[inline(always)]
    fn scale_pairs<I: Isa>(isa: I, unit: &[u8], p: usize) -> I::I {
        isa.pairs_i8(at(unit, 32 + 16 * p))
    }

    #[inline(always)]
    fn level<I: Isa>(isa: I, table: I::B, chunk: &[u8], i: usize) -> I::B {
        isa.lookup(table, nibble(isa, chunk, i))
    }
}

impl SuperLayout for Q3Kx8 {
    const WORD_ROWS: usize = 32;
    const MAX: u32 = 7;
    const OFFSET: i32 = 4;
    const UNIT: usize = 144 + 8 * 96;
    const CHUNK: usize = 96;
    with_scales! { 16 }

    #[inline(always)]
    fn level<I: Isa>(isa: I, _: I::B, chunk: &[u8], i: usize) -> I::B {
        isa.or(two(isa, chunk, i, 0), one(isa, &chunk[64..], i, 2))
    }
}

impl SuperLayout for Q2Kx8 {
    const MAX: u32 = 3;
    const OFFSET: i32 = 0;
    const UNIT: usize = 160 + 8 * 64;
    const DATA: usize = 160;
    const CHUNK: usize = 64;
    const SUBS: usize = 16;
    const MINS: bool = true;

    #[inline(always)]
    fn dmin<I: Isa>(isa: I, unit: &[u8]) -> I::F {
        isa.widen(at(unit, 16))
    }

    #[inline(always)]
    fn min_pairs<I: Isa>(isa: I, unit: &[u8], p: usize) -> I::I {
        isa.pairs_nibble(at(unit, 32 + 16 * p), true)
    }

    #[inline(always)]
    fn scale_pairs<I: Isa>(isa: I, unit: &[u8], p: usize) -> I::I {
        isa.pairs_nibble(at(unit, 32 + 16 * p), false)
    }

    #[inline(always)]
    fn level<I: Isa>(isa: I, _: I::B, chunk: &[u8], i: usize) -> I::B {
        two(isa, chunk, i, 0)
    }
}

impl SuperLayout for Tq2x8 {
    const MAX: u32 = 3;
    const OFFSET: i32 = 1;
    const UNIT: usize = 16 + 8 * 64;
    const CHUNK: usize = 64;
    without_scales! {}

    #[inline(always)]
    fn level<I: Isa>(isa: I, _: I::B, chunk: &[u8], i: usize) -> I::B {
        two(isa, chunk, i, 0)
    }
}

impl SuperLayout for Foldedx8 {
    // Trits are 0..=3 in a byte that no encoder wrote.
    const MAX: u32 = 12;
    const OFFSET: i32 = 4;
    const UNIT: usize = 16 + 8 * 128;
    const CHUNK: usize = 128;
    without_scales! {}

    #[inline(always)]
    fn level<I: Isa>(isa: I, _: I::B, chunk: &[u8], i: usize) -> I::B {
        nibble(isa, chunk, i)
    }
}

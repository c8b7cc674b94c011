//! Packed layouts of 32-weight units: `Q8_0` keeps its bytes, the others put the levels of several quads into a byte.
//!
//! ```text
//! d       f16 per column, bf16 for MXFP4
//! d2      f16 per column, of the second 16 weights       NVFP4
//! m       f16 per column                                 Q4_1 Q5_1
//! quads   for each four k: 4 levels, plus 128            Q8_0
//! fours   4 vectors, vector v: low nibbles quad v, high nibbles quad 4 + v     Q4_0 Q4_1 Q5_0 Q5_1 IQ4_NL MXFP4 NVFP4
//! twos    2 vectors, vector h: bits 2i..2i+2 quad 4h + i                       Q2_0
//! ones    1 vector: bit i quad i                                               Q5_0 Q5_1 (the high bit) Q1_0
//! ```
//!
//! A vector is four bytes of each of eight columns.

use super::k::{one, two};
use super::{FlatLayout, at};
use crate::isa::Isa;
use crate::unpack::LIFT;

/// `Q8_0`, 272 bytes for 8 columns, as in the file.
pub(crate) struct Q8x8;
/// `Q4_0`, 144 bytes for 8 columns, as in the file.
pub(crate) struct Q4x8;
/// `IQ4_NL`, 144 bytes for 8 columns, as in the file.
pub(crate) struct Iq4Nlx8;
/// `MXFP4`, 144 bytes for 8 columns, 136 in the file.
pub(crate) struct Mxfp4x8;
/// `Q4_1`, 160 bytes for 8 columns, as in the file.
pub(crate) struct Q41x8;
/// `Q5_0`, 176 bytes for 8 columns, as in the file; with minimums `Q5_1`, 192 bytes.
pub(crate) struct Q5x8<const MIN: bool>;
/// `NVFP4`, 160 bytes for 8 columns, 144 in the file.
pub(crate) struct Nvfp4x8;
/// `Q1_0`, 48 bytes for 8 columns, 36 in the file.
pub(crate) struct Q1x8;
/// `Q2_0`, 80 bytes for 8 columns, 72 in the file.
pub(crate) struct Q2x8;

/// Nibbles of quad `i`, vectors of 32 bytes from the start of `data` on.
#[inline(always)]
pub(super) fn nibble<I: Isa>(isa: I, data: &[u8], i: usize) -> I::B {
    let both = isa.bytes(at(data, i % 4 * 32));
    isa.and(if i < 4 { both } else { isa.shr(both, 4) }, isa.splat_byte(15))
}

impl FlatLayout for Q8x8 {
    const WORD_ROWS: usize = 64;
    const MAX: u32 = 255;
    const OFFSET: i32 = 128;
    const UNIT: usize = 272;
    const DATA: usize = 16;

    #[inline(always)]
    fn level<I: Isa>(isa: I, _: I::B, data: &[u8], i: usize) -> I::B {
        isa.bytes(at(data, 32 * i))
    }
}

impl FlatLayout for Q4x8 {
    const MAX: u32 = 15;
    const OFFSET: i32 = 8;
    const UNIT: usize = 144;
    const DATA: usize = 16;

    #[inline(always)]
    fn level<I: Isa>(isa: I, _: I::B, data: &[u8], i: usize) -> I::B {
        nibble(isa, data, i)
    }
}

impl FlatLayout for Iq4Nlx8 {
    const WORD_ROWS: usize = 16;
    const MAX: u32 = 255;
    const OFFSET: i32 = 128;
    const UNIT: usize = 144;
    const DATA: usize = 16;

    #[inline(always)]
    fn level<I: Isa>(isa: I, table: I::B, data: &[u8], i: usize) -> I::B {
        isa.lookup(table, nibble(isa, data, i))
    }
}

impl FlatLayout for Mxfp4x8 {
    const MAX: u32 = 24;
    const OFFSET: i32 = LIFT as i32;
    const UNIT: usize = 144;
    const DATA: usize = 16;

    #[inline(always)]
    fn scale<I: Isa>(isa: I, unit: &[u8], _: usize) -> I::F {
        isa.widen_bf16(at(unit, 0))
    }

    #[inline(always)]
    fn level<I: Isa>(isa: I, table: I::B, data: &[u8], i: usize) -> I::B {
        isa.lookup(table, nibble(isa, data, i))
    }
}

impl FlatLayout for Q41x8 {
    const MAX: u32 = 15;
    const OFFSET: i32 = 0;
    const UNIT: usize = 160;
    const DATA: usize = 32;
    const MIN: bool = true;

    #[inline(always)]
    fn min<I: Isa>(isa: I, unit: &[u8]) -> I::F {
        isa.widen(at(unit, 16))
    }

    #[inline(always)]
    fn level<I: Isa>(isa: I, _: I::B, data: &[u8], i: usize) -> I::B {
        nibble(isa, data, i)
    }
}

impl<const MIN: bool> FlatLayout for Q5x8<MIN> {
    const WORD_ROWS: usize = 64;
    const MAX: u32 = 31;
    const OFFSET: i32 = if MIN { 0 } else { 16 };
    const UNIT: usize = Self::DATA + 160;
    const DATA: usize = if MIN { 32 } else { 16 };
    const MIN: bool = MIN;

    #[inline(always)]
    fn min<I: Isa>(isa: I, unit: &[u8]) -> I::F {
        isa.widen(at(unit, 16))
    }

    #[inline(always)]
    fn level<I: Isa>(isa: I, _: I::B, data: &[u8], i: usize) -> I::B {
        isa.or(nibble(isa, data, i), one(isa, &data[128..], i, 4))
    }
}

impl FlatLayout for Nvfp4x8 {
    const WORD_ROWS: usize = 64;
    const MAX: u32 = 24;
    const OFFSET: i32 = LIFT as i32;
    const UNIT: usize = 160;
    const DATA: usize = 32;
    const HALVES: bool = true;

    #[inline(always)]
    fn scale<I: Isa>(isa: I, unit: &[u8], half: usize) -> I::F {
        isa.widen(at(unit, 16 * half))
    }

    #[inline(always)]
    fn level<I: Isa>(isa: I, table: I::B, data: &[u8], i: usize) -> I::B {
        isa.lookup(table, nibble(isa, data, i))
    }
}

impl FlatLayout for Q1x8 {
    const MAX: u32 = 2;
    const OFFSET: i32 = 1;
    const UNIT: usize = 48;
    const DATA: usize = 16;

    #[inline(always)]
    fn level<I: Isa>(isa: I, _: I::B, data: &[u8], i: usize) -> I::B {
        one(isa, data, i, 1)
    }
}

impl FlatLayout for Q2x8 {
    const MAX: u32 = 3;
    const OFFSET: i32 = 1;
    const UNIT: usize = 80;
    const DATA: usize = 16;

    #[inline(always)]
    fn level<I: Isa>(isa: I, _: I::B, data: &[u8], i: usize) -> I::B {
        two(isa, data, i, 0)
    }
}

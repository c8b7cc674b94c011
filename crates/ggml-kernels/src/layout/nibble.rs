//! Packed layouts of 32-weight units: `Q8_0` keeps its bytes, the others two levels to a byte.
//!
//! ```text
//! Q8_0    0  d      f16 per column
//!        16  quads  for each four k, for each column: 4 levels, plus 128
//! others  0  d      f16 per column, bf16 for MXFP4
//!        16  quads  vector v: for each column 4 bytes, low nibbles quad v, high nibbles quad 4 + v
//! ```

use ggml_blocks::formats::iq4_nl::Iq4Nl;

use super::{FlatLayout, at};
use crate::isa::Isa;
use crate::unpack::{LIFT, lifted};

/// `Q8_0`, 272 bytes for 8 columns, as in the file.
pub(crate) struct Q8x8;
/// `Q4_0`, 144 bytes for 8 columns, as in the file.
pub(crate) struct Q4x8;
/// `IQ4_NL`, 144 bytes for 8 columns, as in the file.
pub(crate) struct Iq4Nlx8;
/// `MXFP4`, 144 bytes for 8 columns, 136 in the file.
pub(crate) struct Mxfp4x8;

/// A table of levels, each plus `offset`.
pub(super) fn raised(levels: &[i8; 16], offset: i32) -> [i8; 16] {
    levels.map(|q| (i32::from(q) + offset) as i8)
}

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
    fn scale<I: Isa>(isa: I, unit: &[u8], _: usize) -> I::F {
        isa.widen(at(unit, 0))
    }

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
    fn scale<I: Isa>(isa: I, unit: &[u8], _: usize) -> I::F {
        isa.widen(at(unit, 0))
    }

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

    fn table() -> [i8; 16] {
        raised(Iq4Nl::levels(), Self::OFFSET)
    }

    #[inline(always)]
    fn scale<I: Isa>(isa: I, unit: &[u8], _: usize) -> I::F {
        isa.widen(at(unit, 0))
    }

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

    fn table() -> [i8; 16] {
        lifted()
    }

    #[inline(always)]
    fn scale<I: Isa>(isa: I, unit: &[u8], _: usize) -> I::F {
        isa.widen_bf16(at(unit, 0))
    }

    #[inline(always)]
    fn level<I: Isa>(isa: I, table: I::B, data: &[u8], i: usize) -> I::B {
        isa.lookup(table, nibble(isa, data, i))
    }
}

//! Weights as the tiles read them: eight columns interleaved, a lane each, unit after unit.
//!
//! A *quad* is four levels of one column that follow one another in k; a vector of 32 bytes holds the
//! same quad of eight columns. A layout says where a unit's scales stand and how quad `i` comes out of
//! its bytes; the kernels are generic over it. Levels are unsigned: `OFFSET` more than their value.

use crate::isa::Isa;

pub(crate) mod byte;
pub(crate) mod k;
mod nibble;
pub(crate) mod pack;
pub(crate) mod word;

/// Units of 32 weights.
pub(crate) trait FlatLayout: 'static {
    /// The largest level.
    const MAX: u32;
    /// What is added to the levels.
    const OFFSET: i32;
    /// Bytes of a unit of eight columns.
    const UNIT: usize;
    /// Where the levels start in it.
    const DATA: usize;
    /// Whether 16 weights have a scale of their own.
    const HALVES: bool = false;
    /// Whether there is a minimum.
    const MIN: bool = false;
    /// Fewest rows that are multiplied faster with [`word`]s, where an instruction set has it so.
    const WORD_ROWS: usize = usize::MAX;
    /// The scales of half `half`, if there are halves.
    #[inline(always)]
    fn scale<I: Isa>(isa: I, unit: &[u8], _half: usize) -> I::F {
        isa.widen(at(unit, 0))
    }
    /// The minimums.
    fn min<I: Isa>(isa: I, _unit: &[u8]) -> I::F {
        isa.splat(0.0)
    }
    /// Quad `i` of 8. `table` is the format's, where levels are looked up.
    fn level<I: Isa>(isa: I, table: I::B, data: &[u8], i: usize) -> I::B;
}

/// Units of 256 weights.
pub(crate) trait SuperLayout: 'static {
    /// The largest level.
    const MAX: u32;
    /// What is added to the levels.
    const OFFSET: i32;
    /// Bytes of a unit of eight columns.
    const UNIT: usize;
    /// Where the levels start in it.
    const DATA: usize;
    /// Bytes of the levels of 32 weights of eight columns.
    const CHUNK: usize;
    /// Sub-blocks: 8 or 16.
    const SUBS: usize;
    /// Whether sub-blocks have scales.
    const SCALED: bool = true;
    /// Whether there are minimums.
    const MINS: bool = false;
    /// Fewest rows that are multiplied faster with [`word`]s, where an instruction set has it so.
    const WORD_ROWS: usize = usize::MAX;
    /// The scales of the scales.
    #[inline(always)]
    fn d<I: Isa>(isa: I, unit: &[u8]) -> I::F {
        isa.widen(at(unit, 0))
    }
    /// The scales of the minimums.
    fn dmin<I: Isa>(isa: I, _unit: &[u8]) -> I::F {
        isa.splat(0.0)
    }
    /// The minimums of sub-blocks `2p` and `2p + 1`.
    fn min_pairs<I: Isa>(isa: I, _unit: &[u8], _p: usize) -> I::I {
        isa.splat_i32(0)
    }
    /// The scales of sub-blocks `2p` and `2p + 1`.
    fn scale_pairs<I: Isa>(isa: I, unit: &[u8], p: usize) -> I::I;
    /// Quad `i` of the 8 of a chunk. `table` is the format's, where levels are looked up.
    fn level<I: Isa>(isa: I, table: I::B, chunk: &[u8], i: usize) -> I::B;
}

/// How far ahead of the weights that are being multiplied others are asked for, in bytes: what memory
/// delivers while one line is on its way, and some. Between 2 and 4 KiB the rate is the same.
pub(crate) const AHEAD: usize = 3072;

/// Asks for the cache lines of `len` bytes from `start` on of what lies ahead, of none where it ends before
/// that. `len` is a constant to the caller: no more than a comparison is left besides the prefetches.
#[inline(always)]
pub(crate) fn fetch<I: Isa>(isa: I, ahead: &[u8], start: usize, len: usize) {
    let lines = len.div_ceil(64);
    if let Some(part) = ahead.get(start..start + 64 * lines) {
        for i in 0..lines {
            isa.prefetch(&part[64 * i]);
        }
    }
}

/// `N` bytes from `at` on: the caller's slice holds them.
#[inline(always)]
pub(crate) fn at<const N: usize>(bytes: &[u8], at: usize) -> &[u8; N] {
    bytes[at..at + N].as_array().unwrap_or(&[0; N])
}

/// Eight f32 of a unit, from byte `start` on.
#[inline(always)]
pub(crate) fn floats<I: Isa>(isa: I, unit: &[u8], start: usize) -> I::F {
    let mut x = [0.0; 8];
    for (x, b) in x.iter_mut().zip(at::<32>(unit, start).as_chunks::<4>().0) {
        *x = f32::from_le_bytes(*b);
    }
    isa.floats(&x)
}

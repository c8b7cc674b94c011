//! Layouts of whole bytes: every format can be expanded into one of them, so that no format lacks a
//! tiled product. A level takes a byte, plus 128.
//!
//! ```text
//! Flat, 32 weights of 8 columns    0  d      f32 per column
//!                                 32  d2     f32 per column, of the second 16 weights
//!                                 64  m      f32 per column
//!                                 96  quads  for each four k, for each column: 4 levels
//! Super, 256 weights of 8 columns  0  d      f32 per column
//!                                 32  dmin   f32 per column
//!                                 64  mins   for each two sub-blocks of 16, for each column: 2 u8
//!                                192  scales for each two sub-blocks of 16, for each column: 2 i8
//!                                320  quads  for each four k, for each column: 4 levels
//! ```

use super::{FlatLayout, SuperLayout, at};
use crate::isa::Isa;
use crate::unpack::{Flat, FlatUnit, Super, SuperUnit};

/// Units of 32 weights, a byte per level.
pub(crate) struct FlatBytes<const HALVES: bool, const MIN: bool>;

/// Units of 256 weights, a byte per level.
pub(crate) struct SuperBytes<const MINS: bool>;

#[inline(always)]
fn floats<I: Isa>(isa: I, bytes: &[u8], start: usize) -> I::F {
    let mut x = [0.0; 8];
    for (x, b) in x.iter_mut().zip(at::<32>(bytes, start).as_chunks::<4>().0) {
        *x = f32::from_le_bytes(*b);
    }
    isa.floats(&x)
}

impl<const HALVES: bool, const MIN: bool> FlatLayout for FlatBytes<HALVES, MIN> {
    const MAX: u32 = 255;
    const OFFSET: i32 = 128;
    const UNIT: usize = 96 + 256;
    const DATA: usize = 96;
    const HALVES: bool = HALVES;
    const MIN: bool = MIN;

    #[inline(always)]
    fn scale<I: Isa>(isa: I, unit: &[u8], half: usize) -> I::F {
        floats(isa, unit, 32 * half)
    }

    #[inline(always)]
    fn min<I: Isa>(isa: I, unit: &[u8]) -> I::F {
        floats(isa, unit, 64)
    }

    #[inline(always)]
    fn level<I: Isa>(isa: I, _: I::B, data: &[u8], i: usize) -> I::B {
        isa.bytes(at(data, 32 * i))
    }
}

impl<const MINS: bool> SuperLayout for SuperBytes<MINS> {
    const MAX: u32 = 255;
    const OFFSET: i32 = 128;
    const UNIT: usize = 320 + 2048;
    const DATA: usize = 320;
    const CHUNK: usize = 256;
    const SUBS: usize = 16;
    const MINS: bool = MINS;

    #[inline(always)]
    fn d<I: Isa>(isa: I, unit: &[u8]) -> I::F {
        floats(isa, unit, 0)
    }

    #[inline(always)]
    fn dmin<I: Isa>(isa: I, unit: &[u8]) -> I::F {
        floats(isa, unit, 32)
    }

    #[inline(always)]
    fn min_pairs<I: Isa>(isa: I, unit: &[u8], p: usize) -> I::I {
        isa.pairs_u8(at(unit, 64 + 16 * p))
    }

    #[inline(always)]
    fn scale_pairs<I: Isa>(isa: I, unit: &[u8], p: usize) -> I::I {
        isa.pairs_i8(at(unit, 192 + 16 * p))
    }

    #[inline(always)]
    fn level<I: Isa>(isa: I, _: I::B, chunk: &[u8], i: usize) -> I::B {
        isa.bytes(at(chunk, 32 * i))
    }
}

/// Expands one column's row of blocks into lane `c` of its units, `step` bytes apart.
#[inline(always)]
pub(crate) fn expand_flat<I: Isa, B: Flat>(isa: I, row: &[B], c: usize, step: usize, out: &mut [u8]) {
    let mut unit = FlatUnit::ZERO;
    let per_block = B::LEN / 32;
    for (u, out) in out.chunks_mut(step).enumerate() {
        row[u / per_block].unit(isa, u % per_block, &mut unit);
        for (i, x) in [unit.d[0], unit.d[1], unit.m].into_iter().enumerate() {
            out[32 * i + 4 * c..][..4].copy_from_slice(&x.to_le_bytes());
        }
        quads(&unit.levels, c, &mut out[96..96 + 256]);
    }
}

/// [`expand_flat`] for super-blocks.
#[inline(always)]
pub(crate) fn expand_super<I: Isa, B: Super>(isa: I, row: &[B], c: usize, step: usize, out: &mut [u8]) {
    let mut unit = SuperUnit::ZERO;
    for (block, out) in row.iter().zip(out.chunks_mut(step)) {
        block.unit(isa, &mut unit);
        for (i, x) in [unit.d, unit.dmin].into_iter().enumerate() {
            out[32 * i + 4 * c..][..4].copy_from_slice(&x.to_le_bytes());
        }
        for p in 0..8 {
            let (mins, scales) = (&unit.mins[2 * p..], &unit.scales[2 * p..]);
            out[64 + 16 * p + 2 * c..][..2].copy_from_slice(&mins[..2]);
            out[192 + 16 * p + 2 * c] = scales[0] as u8;
            out[192 + 16 * p + 2 * c + 1] = scales[1] as u8;
        }
        quads(&unit.levels, c, &mut out[320..320 + 2048]);
    }
}

/// Puts a column's quads into its lane, plus 128.
#[inline(always)]
fn quads<const N: usize>(levels: &[i8; N], c: usize, out: &mut [u8]) {
    let out = &mut out.as_chunks_mut::<4>().0[c..];
    for (out, q) in out.iter_mut().step_by(8).zip(levels.as_chunks::<4>().0) {
        let word = u32::from_le_bytes([q[0] as u8, q[1] as u8, q[2] as u8, q[3] as u8]);
        *out = (word ^ 0x8080_8080).to_le_bytes();
    }
}

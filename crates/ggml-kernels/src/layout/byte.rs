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

use zerocopy::transmute;

use super::{FlatLayout, SuperLayout, at, floats};
use crate::isa::Isa;
use crate::unpack::{Flat, FlatUnit, Super, SuperUnit};

/// Units of 32 weights, a byte per level.
pub(crate) struct FlatBytes<const HALVES: bool, const MIN: bool>;

/// Units of 256 weights, a byte per level.
pub(crate) struct SuperBytes<const MINS: bool>;

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

/// Expands eight columns of blocks into units that stand `step` bytes apart.
#[inline(always)]
pub(crate) fn expand_flat<I: Isa, B: Flat>(isa: I, columns: [&[B]; 8], step: usize, out: &mut [u8]) {
    let mut units = [FlatUnit::ZERO; 8];
    let per_block = B::LEN / 32;
    for (u, out) in out.chunks_mut(step).enumerate() {
        for c in 0..8 {
            columns[c][u / per_block].unit(isa, u % per_block, &mut units[c]);
            for (i, x) in [units[c].d[0], units[c].d[1], units[c].m].into_iter().enumerate() {
                out[32 * i + 4 * c..][..4].copy_from_slice(&x.to_le_bytes());
            }
        }
        let mut levels = [[0; 32]; 8];
        for c in 0..8 {
            levels[c] = units[c].levels;
        }
        quads(isa, &levels, &mut out[96..96 + 256]);
    }
}

/// [`expand_flat`] for super-blocks.
#[inline(always)]
pub(crate) fn expand_super<I: Isa, B: Super>(isa: I, columns: [&[B]; 8], step: usize, out: &mut [u8]) {
    let mut units = [SuperUnit::ZERO; 8];
    for (u, out) in out.chunks_mut(step).enumerate() {
        for c in 0..8 {
            let unit = &mut units[c];
            columns[c][u].unit(isa, unit);
            for (i, x) in [unit.head.d, unit.head.dmin].into_iter().enumerate() {
                out[32 * i + 4 * c..][..4].copy_from_slice(&x.to_le_bytes());
            }
            for p in 0..8 {
                let (mins, scales) = (&unit.head.mins[2 * p..], &unit.head.scales[2 * p..]);
                out[64 + 16 * p + 2 * c..][..2].copy_from_slice(&mins[..2]);
                out[192 + 16 * p + 2 * c] = scales[0] as u8;
                out[192 + 16 * p + 2 * c + 1] = scales[1] as u8;
            }
        }
        for (i, out) in out[320..].as_chunks_mut::<256>().0[..8].iter_mut().enumerate() {
            quads(isa, &chunk(&units, i), out);
        }
    }
}

/// Levels `32i..32i + 32` of eight columns.
#[inline(always)]
pub(super) fn chunk(units: &[SuperUnit; 8], i: usize) -> [[i8; 32]; 8] {
    let mut levels = [[0; 32]; 8];
    for c in 0..8 {
        levels[c] = units[c].levels.as_chunks().0[i];
    }
    levels
}

/// The quads of 32 levels of eight columns, plus 128.
#[inline(always)]
pub(super) fn interleaved<I: Isa>(isa: I, levels: &[[i8; 32]; 8]) -> [I::B; 8] {
    let raise = isa.splat_byte(128);
    let mut x = [raise; 8];
    for c in 0..8 {
        x[c] = isa.sub_bytes(isa.bytes(&transmute!(levels[c])), raise);
    }
    isa.transpose(x)
}

#[inline(always)]
fn quads<I: Isa>(isa: I, levels: &[[i8; 32]; 8], out: &mut [u8]) {
    let quads = interleaved(isa, levels);
    for (out, x) in out.as_chunks_mut::<32>().0.iter_mut().zip(quads) {
        *out = transmute!(isa.signed(x));
    }
}

//! Units of i16, for instruction sets that multiply words faster than bytes: levels, or levels times the
//! scale of their sub-block. Any format can be expanded into them, and packed ones unpacked.
//!
//! ```text
//! 32 weights          256 weights
//!   0  d                0  d      f32 per column
//!  32  d2              32  dmin   f32 per column; d2 is that of the second 16 weights
//!  64  m                          f32 per column
//!                      64  mins   for each two sub-blocks of 16, for each column: 2 i16
//!  96  quads          320  quads  for each four k: for each column the first and the third weight, then
//!                                 for each column the second and the fourth
//! ```

use super::byte::{chunk, interleaved};
use super::{FlatLayout, SuperLayout};
use crate::isa::Isa;
use crate::unpack::{Flat, FlatUnit, Super, SuperUnit};

/// Where the quads of 32 weights stand.
pub(crate) const FLAT_QUADS: usize = 3 * 32;
/// Bytes of a unit of eight columns, 32 weights each.
pub(crate) const FLAT_UNIT: usize = FLAT_QUADS + 8 * 64;

/// Where the minimums stand.
pub(crate) const MINS: usize = 64;
/// Where the quads stand.
pub(crate) const QUADS: usize = MINS + 8 * 32;
/// Bytes of a unit of eight columns.
pub(crate) const UNIT: usize = QUADS + 64 * 64;

#[inline(always)]
fn put_floats(x: &[f32; 8], out: &mut [u8]) {
    for (out, x) in out.as_chunks_mut::<4>().0.iter_mut().zip(x) {
        *out = x.to_le_bytes();
    }
}

/// A scale of 1 in every word.
#[inline(always)]
fn unscaled<I: Isa>(isa: I) -> I::I {
    isa.splat_i32(0x0001_0001)
}

/// Unpacks a unit of a packed layout of 32-weight units. `table` is what its levels are looked up in.
#[inline(always)]
pub(crate) fn unpack_flat<I: Isa, L: FlatLayout>(isa: I, table: I::B, w: &[u8], out: &mut [u8]) {
    let (head, quads) = out.split_at_mut(FLAT_QUADS);
    put_floats(&isa.array(L::scale(isa, w, 0)), &mut head[..32]);
    if L::HALVES {
        put_floats(&isa.array(L::scale(isa, w, 1)), &mut head[32..64]);
    }
    if L::MIN {
        put_floats(&isa.array(L::min(isa, w)), &mut head[64..]);
    }
    for (i, out) in quads.as_chunks_mut::<32>().0.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        let words = isa.words(L::level(isa, table, &w[L::DATA..L::UNIT], i), L::OFFSET, unscaled(isa));
        *out = [isa.int_bytes(words[0]), isa.int_bytes(words[1])];
    }
}

/// Expands eight columns of blocks into 32-weight units that stand `step` bytes apart.
#[inline(always)]
pub(crate) fn expand_flat<I: Isa, B: Flat>(isa: I, columns: [&[B]; 8], step: usize, out: &mut [u8]) {
    let mut units = [FlatUnit::ZERO; 8];
    let per_block = B::LEN / 32;
    for (u, out) in out.chunks_mut(step).enumerate() {
        let mut levels = [[0; 32]; 8];
        for c in 0..8 {
            columns[c][u / per_block].unit(isa, u % per_block, &mut units[c]);
            for (i, x) in [units[c].d[0], units[c].d[1], units[c].m].into_iter().enumerate() {
                out[32 * i + 4 * c..][..4].copy_from_slice(&x.to_le_bytes());
            }
            levels[c] = units[c].levels;
        }
        let levels = interleaved(isa, &levels);
        let quads = out[FLAT_QUADS..FLAT_UNIT].as_chunks_mut::<32>().0.as_chunks_mut::<2>().0;
        for (out, x) in quads.iter_mut().zip(levels) {
            let words = isa.words(x, 128, unscaled(isa));
            *out = [isa.int_bytes(words[0]), isa.int_bytes(words[1])];
        }
    }
}

/// [`unpack_flat`] for super-blocks.
#[inline(always)]
pub(crate) fn unpack<I: Isa, L: SuperLayout>(isa: I, table: I::B, w: &[u8], out: &mut [u8]) {
    let (head, quads) = out.split_at_mut(QUADS);
    put_floats(&isa.array(L::d(isa, w)), &mut head[..32]);
    if L::MINS {
        put_floats(&isa.array(L::dmin(isa, w)), &mut head[32..MINS]);
        for (p, out) in head[MINS..].as_chunks_mut::<32>().0.iter_mut().enumerate() {
            // A sub-block of 32 is two of 16.
            *out = isa.int_bytes(match L::SUBS {
                8 => isa.twin(L::min_pairs(isa, w, p / 2), p % 2 == 1),
                _ => L::min_pairs(isa, w, p),
            });
        }
    }
    let per_sub = 64 / L::SUBS;
    for (sub, quads) in quads.chunks_exact_mut(64 * per_sub).enumerate() {
        let scale = isa.twin(L::scale_pairs(isa, w, sub / 2), sub % 2 == 1);
        let (chunk, first) = (sub * per_sub / 8, sub * per_sub % 8);
        let data = &w[L::DATA + chunk * L::CHUNK..L::DATA + (chunk + 1) * L::CHUNK];
        for (i, out) in quads.as_chunks_mut::<32>().0.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            let words = isa.words(L::level(isa, table, data, first + i), L::OFFSET, scale);
            *out = [isa.int_bytes(words[0]), isa.int_bytes(words[1])];
        }
    }
}

/// [`expand_flat`] for super-blocks.
#[inline(always)]
pub(crate) fn expand<I: Isa, B: Super>(isa: I, columns: [&[B]; 8], step: usize, out: &mut [u8]) {
    let mut units = [SuperUnit::ZERO; 8];
    for (u, out) in out.chunks_mut(step).enumerate() {
        let mut scales = [[0; 32]; 16];
        for c in 0..8 {
            let unit = &mut units[c];
            columns[c][u].unit(isa, unit);
            for (i, x) in [unit.head.d, unit.head.dmin].into_iter().enumerate() {
                out[32 * i + 4 * c..][..4].copy_from_slice(&x.to_le_bytes());
            }
            if B::MINS {
                for (p, out) in out[MINS..QUADS].as_chunks_mut::<32>().0.iter_mut().enumerate() {
                    out[4 * c..4 * c + 4].copy_from_slice(&[
                        unit.head.mins[2 * p],
                        0,
                        unit.head.mins[2 * p + 1],
                        0,
                    ]);
                }
            }
            for (s, out) in scales.iter_mut().enumerate() {
                let [low, high] = i16::from(unit.head.scales[s]).to_le_bytes();
                out[4 * c..4 * c + 4].copy_from_slice(&[low, high, low, high]);
            }
        }
        let quads = out[QUADS..UNIT].as_chunks_mut::<32>().0.as_chunks_mut::<2>().0;
        for (i, out) in quads.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let levels = interleaved(isa, &chunk(&units, i));
            for g in 0..8 {
                let words = isa.words(levels[g], 128, isa.ints(&scales[2 * i + g / 4]));
                out[g] = [isa.int_bytes(words[0]), isa.int_bytes(words[1])];
            }
        }
    }
}

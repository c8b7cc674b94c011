//! Units of 256 weights as i16: each level times the scale of its sub-block, for instruction sets that
//! multiply words faster than bytes. Any format can be expanded into them, and packed ones unpacked.
//!
//! ```text
//!   0  d      f32 per column
//!  32  dmin   f32 per column
//!  64  mins   for each two sub-blocks of 16, for each column: 2 i16
//! 320  quads  for each four k: for each column the first and the third weight, then for each column the
//!             second and the fourth
//! ```

use super::byte::{chunk, interleaved};
use super::{SuperLayout, at};
use crate::isa::Isa;
use crate::unpack::{Super, SuperUnit};

/// Where the minimums stand.
pub(crate) const MINS: usize = 64;
/// Where the quads stand.
pub(crate) const QUADS: usize = MINS + 8 * 32;
/// Bytes of a unit of eight columns.
pub(crate) const UNIT: usize = QUADS + 64 * 64;

/// Eight f32 of a unit.
#[inline(always)]
pub(crate) fn floats<I: Isa>(isa: I, unit: &[u8], start: usize) -> I::F {
    let mut x = [0.0; 8];
    for (x, b) in x.iter_mut().zip(at::<32>(unit, start).as_chunks::<4>().0) {
        *x = f32::from_le_bytes(*b);
    }
    isa.floats(&x)
}

#[inline(always)]
fn put_floats(x: &[f32; 8], out: &mut [u8]) {
    for (out, x) in out.as_chunks_mut::<4>().0.iter_mut().zip(x) {
        *out = x.to_le_bytes();
    }
}

/// Unpacks a unit of a packed layout.
#[inline(always)]
pub(crate) fn unpack<I: Isa, L: SuperLayout>(isa: I, w: &[u8], out: &mut [u8]) {
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
    let table = isa.twice(&L::table());
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

/// Expands eight columns of blocks into units that stand `step` bytes apart.
#[inline(always)]
pub(crate) fn expand<I: Isa, B: Super>(isa: I, columns: [&[B]; 8], step: usize, out: &mut [u8]) {
    let mut units = [SuperUnit::ZERO; 8];
    for (u, out) in out.chunks_mut(step).enumerate() {
        let mut scales = [[0; 32]; 16];
        for c in 0..8 {
            let unit = &mut units[c];
            columns[c][u].unit(isa, unit);
            for (i, x) in [unit.d, unit.dmin].into_iter().enumerate() {
                out[32 * i + 4 * c..][..4].copy_from_slice(&x.to_le_bytes());
            }
            if B::MINS {
                for (p, out) in out[MINS..QUADS].as_chunks_mut::<32>().0.iter_mut().enumerate() {
                    out[4 * c..4 * c + 4].copy_from_slice(&[unit.mins[2 * p], 0, unit.mins[2 * p + 1], 0]);
                }
            }
            for (s, out) in scales.iter_mut().enumerate() {
                let [low, high] = i16::from(unit.scales[s]).to_le_bytes();
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

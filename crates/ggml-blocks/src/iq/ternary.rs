//! What `IQ1_S` and `IQ1_M` share around the split search: the order of the weights, and snapping to the
//! grid.

use super::codebook::Codebook;
use super::nearest::{nearest, terms};
use crate::simd::Simd;

/// The place of every weight in ascending order; equal ones keep theirs, as in glibc's `qsort`.
#[inline(always)]
pub(super) fn ranks<const N: usize>(x: &[f32; N]) -> [i32; N] {
    // Integers in the order of the numbers; adding zero makes -0.0 equal to 0.0.
    let mut keys = [0; N];
    for i in 0..N {
        let bits = (x[i] + 0.0).to_bits() as i32;
        keys[i] = bits ^ ((bits >> 31) as u32 >> 1) as i32;
    }
    let mut ranks = [0; N];
    for i in 0..N {
        for j in 0..N {
            // An equal weight further on comes later.
            ranks[j] += i32::from(keys[i] - i32::from(i < j) < keys[j]);
        }
    }
    ranks
}

/// The indices in ascending order.
#[inline(always)]
pub(super) fn order<const N: usize>(ranks: &[i32; N]) -> [u8; N] {
    let mut order = [0; N];
    for i in 0..N {
        order[ranks[i] as usize % N] = i as u8;
    }
    order
}

/// The largest magnitude.
#[inline(always)]
pub(super) fn max_abs<const N: usize>(x: &[f32; N]) -> f32 {
    // Finite numbers: a maximum of their bits, in any order.
    f32::from_bits(x.iter().fold(0, |max, x| max.max(x.to_bits() & 0x7FFF_FFFF)))
}

/// Whether no weight is negative.
#[inline(always)]
pub(super) fn none_negative<const N: usize>(w: &[f32; N]) -> bool {
    let mut negative = 0;
    for &w in w {
        negative |= i32::from(w < 0.0);
    }
    negative == 0
}

/// The levels 0, 1, 2 under a split; mirrored, 2 for 0 and the reverse.
#[inline(always)]
pub(super) fn levels<const N: usize>(ranks: &[i32; N], bounds: (usize, usize), mirrored: bool) -> [u32; N] {
    let (i1, i2) = (bounds.0 as i32, bounds.1 as i32);
    let mut levels = [0; N];
    for i in 0..N {
        let level = u32::from(ranks[i] >= i1) + u32::from(ranks[i] >= i2);
        levels[i] = if mirrored { 2 - level } else { level };
    }
    levels
}

/// Snaps a group to the grid: its code, and whether it was there.
#[inline(always)]
pub(super) fn snap<S: Simd>(
    simd: S,
    book: &Codebook,
    levels: &[u32; 8],
    (x, w): (&[f32; 8], &[f32; 8]),
    scale: f32,
    values: &[f32; 3],
) -> (u16, bool) {
    let mut code = 0;
    for i in 0..8 {
        code |= levels[i] << (2 * i);
    }
    if book.vectors(code) == 0 {
        return (code as u16, true);
    }
    let [a, b, c] = *values;
    let terms = terms(&[a, b, c, c, a, b, c, c], scale, x, w);
    (nearest::<S, 8, 2>(simd, book.candidates(code), &terms), false)
}

/// The value of level `i` of a code.
#[inline(always)]
pub(super) fn value(code: u16, i: usize, values: &[f32; 3]) -> f32 {
    values[usize::from(code >> (2 * i) & 3) % 3]
}

//! Passes over weights before they are encoded: non-finite values, and values that overflow a cast.

use crate::simd::{Simd, SimdOp, dispatch};

/// Weights per pass: they stay in the first-level cache for a second look.
const PIECE: usize = 4096;
const INFINITY: u32 = f32::INFINITY.to_bits();

/// Where a narrower float ends.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Limit {
    /// The largest finite number.
    pub largest: f32,
    /// The smallest magnitude that rounds to infinity.
    pub overflow: f32,
}

impl Limit {
    /// The limit of a float whose largest number is `largest` and that rounds `overflow` and what
    /// is above to infinity.
    pub(crate) const fn new(largest: f32, overflow: f32) -> Self {
        Self { largest, overflow }
    }
}

/// Finite values that a cast turns into infinities.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Overflow {
    /// How many there are.
    pub count: usize,
    /// Index of the first.
    pub first: usize,
    /// The largest of their magnitudes.
    pub largest: f32,
}

/// Index of the first NaN or infinity.
pub(crate) fn first_non_finite(values: &[f32]) -> Option<usize> {
    let bad = |piece: &[f32]| dispatch(CountFrom { values: piece, from: INFINITY }) > 0;
    let start = values.chunks(PIECE).position(bad)? * PIECE;
    values[start..].iter().position(|x| !x.is_finite()).map(|i| start + i)
}

/// The finite values that are not below `limit.overflow`.
pub(crate) fn overflow(values: &[f32], limit: Limit) -> Option<Overflow> {
    let mut found: Option<Overflow> = None;
    for (p, piece) in values.chunks(PIECE).enumerate() {
        if dispatch(CountFrom { values: piece, from: limit.overflow.to_bits() }) == 0 {
            continue;
        }
        for (i, x) in piece.iter().enumerate().filter(|(_, x)| x.is_finite() && x.abs() >= limit.overflow) {
            let found =
                found.get_or_insert(Overflow { count: 0, first: p * PIECE + i, largest: limit.overflow });
            found.count += 1;
            found.largest = found.largest.max(x.abs());
        }
    }
    found
}

/// How many values have a magnitude, as bits, of at least `from`.
struct CountFrom<'a> {
    values: &'a [f32],
    from: u32,
}

impl SimdOp for CountFrom<'_> {
    type Output = u32;
    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> u32 {
        // Branch-free, so that it vectorises; an early exit would not.
        let mut count = 0;
        for x in self.values {
            count += u32::from(x.to_bits() & 0x7FFF_FFFF >= self.from);
        }
        count
    }
}

//! Passes over weights before they are encoded: non-finite values, and values that overflow a cast.

use crate::simd::{Simd, SimdOp, dispatch};

/// Index of the first NaN or infinity.
pub(crate) fn first_non_finite(values: &[f32]) -> Option<usize> {
    const PIECE: usize = 4096;
    let bad = |piece: &&[f32]| dispatch(AnyNonFinite(piece));
    let start = values.chunks(PIECE).position(|piece| bad(&piece))? * PIECE;
    values[start..].iter().position(|x| !x.is_finite()).map(|i| start + i)
}

struct AnyNonFinite<'a>(&'a [f32]);

impl SimdOp for AnyNonFinite<'_> {
    type Output = bool;
    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> bool {
        // The largest magnitude decides, as an integer; a maximum vectorises, an early exit would not.
        let mut largest = 0;
        for x in self.0 {
            largest = largest.max(x.to_bits() & 0x7FFF_FFFF);
        }
        largest >= 0x7F80_0000
    }
}

//! The search for the grid point of least weighted squared error: one candidate per lane.
//!
//! A group's error under a candidate is a sum of one term per weight, and a term depends on the
//! candidate's level only. So the terms of all levels are computed once per search, exactly as ggml
//! computes each, and every candidate's sum looks its terms up and adds them in ggml's order.

use super::codebook::Candidates;
use crate::simd::Simd;

/// Terms of one weight, by level. For levels of two bits the upper four repeat the lower.
pub(super) type Terms = [f32; 8];

/// `w * diff * diff` for the eight values of a level.
#[inline(always)]
pub(super) fn terms<const G: usize>(values: &[f32; 8], scale: f32, x: &[f32; G], w: &[f32; G]) -> [Terms; G] {
    let mut scaled = [0.0; 8];
    for l in 0..8 {
        scaled[l] = scale * values[l];
    }
    let mut terms = [[0.0; 8]; G];
    for i in 0..G {
        for l in 0..8 {
            let diff = scaled[l] - x[i];
            terms[i][l] = w[i] * diff * diff;
        }
    }
    // The sums start at zero: a term of -0.0 counts as 0.0.
    for l in 0..8 {
        terms[0][l] += 0.0;
    }
    terms
}

/// The code of the first candidate of least error. ggml aborts where no error is a number below
/// `f32::MAX`; here the first candidate, the nearest by levels, stands in.
#[inline(always)]
pub(super) fn nearest<S: Simd, const G: usize, const BITS: u32>(
    simd: S,
    candidates: &[Candidates],
    terms: &[Terms; G],
) -> u16 {
    let mut least = [f32::MAX; 8];
    let mut codes = candidates[0].map(u32::from);
    for candidates in candidates {
        let candidates = candidates.map(u32::from);
        let mut error = look_up::<S, BITS>(simd, &terms[0], candidates);
        let mut levels = candidates;
        for term in &terms[1..] {
            for lane in 0..8 {
                levels[lane] >>= BITS;
            }
            let term = look_up::<S, BITS>(simd, term, levels);
            for lane in 0..8 {
                error[lane] += term[lane];
            }
        }
        (least, codes) = simd.keep_less(error, candidates, least, codes);
    }
    // Within a lane the earlier candidate has won a tie; between lanes the lower lane is earlier.
    codes[simd.first_least(least)] as u16
}

/// The terms of eight levels, each in the low `BITS` bits of a lane.
#[inline(always)]
fn look_up<S: Simd, const BITS: u32>(simd: S, terms: &Terms, levels: [u32; 8]) -> [f32; 8] {
    if BITS == 2 { simd.pick4(*terms, levels) } else { simd.pick8(*terms, levels) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Portable;

    #[test]
    fn the_first_of_equal_candidates_is_taken() {
        let list = [[5, 6, 7, 5, 5, 5, 5, 5], [9, 10, 5, 5, 5, 5, 5, 5]];
        let nearest = |terms: &[Terms; 8]| nearest::<_, 8, 2>(Portable, &list, terms);
        // In list order 5, 9, 6, 10, 7: all errors equal, then 6 and 10 least (their second level is 1 or 2).
        assert_eq!(nearest(&[[0.0; 8]; 8]), 5);
        let mut terms = [[0.0; 8]; 8];
        terms[0] = [1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0];
        assert_eq!(nearest(&terms), 6);
        terms[1][1] = 1.0;
        assert_eq!(nearest(&terms), 10);
        // ggml aborts if no error is a number.
        assert_eq!(nearest(&[[f32::NAN; 8]; 8]), 5);
        assert_eq!(nearest(&[[f32::INFINITY; 8]; 8]), 5);
    }
}

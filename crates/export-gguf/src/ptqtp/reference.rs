//! Groups of other lengths, with scales as f32: what a packed file cannot hold, to compare with.

use super::group::solve_group;
use super::options::{Error, Options, same, whole};
use super::search::value;
use super::{MAX_PLANES, Statistics};

/// How well planes with f32 scales fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Approximation {
    /// Sums over all groups.
    pub statistics: Statistics,
    /// The part of zero trits in each plane.
    pub zero_fractions: [f64; MAX_PLANES],
}

/// Decomposes rows into groups of `options.group_len` weights and writes the sum of the planes to `out`.
/// Plain code on one thread, for studies such as those of the paper, whose groups have 128 weights.
///
/// # Errors
/// When an option makes no sense, rows are no whole groups, or a length does not fit.
pub fn reconstruct_reference(
    weights: &[f32],
    row_len: usize,
    options: &Options,
    out: &mut [f32],
) -> Result<Approximation, Error> {
    options.check()?;
    whole("weights per row", row_len, options.group_len)?;
    whole("weights", weights.len(), row_len.max(options.group_len))?;
    same("numbers to write", out.len(), weights.len())?;
    let mut trits = vec![[0; 3]; options.group_len];
    let mut sums = Statistics::default();
    let groups = weights.chunks(options.group_len).zip(out.chunks_mut(options.group_len));
    for (weights, out) in groups {
        let solution = solve_group(weights, options, &mut trits)?;
        for ((&w, out), &t) in weights.iter().zip(out).zip(&trits) {
            *out = value(options.planes, solution.scales, t);
            for (zeros, t) in sums.zeros.iter_mut().zip(&t[..options.planes]) {
                *zeros += u64::from(*t == 0);
            }
            if w.is_finite() {
                let d = f64::from(w) - f64::from(*out);
                sums.error += d * d;
                sums.power += f64::from(w) * f64::from(w);
            } else {
                sums.not_finite += 1;
            }
        }
        sums.groups += 1;
        sums.rounds += u64::from(solution.rounds);
        sums.unconverged += u64::from(!solution.converged);
    }
    Ok(Approximation { statistics: sums, zero_fractions: sums.zero_fractions(options.group_len) })
}

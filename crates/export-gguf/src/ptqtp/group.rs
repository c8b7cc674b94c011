//! One group, one weight after the other: the plain form of the solver, for groups of any length.

use super::options::{Error, Options, same};
use super::ridge::{Sums, at_rest};
use super::search::{Tuple, nearest};

/// What a fit found for one group.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Solution {
    /// The scale of each plane, with its sign; planes that are not in use have 0.
    pub scales: [f32; 3],
    /// Rounds of the free fit; the tied one has a single round.
    pub rounds: u32,
    /// Whether the scales came to rest.
    pub converged: bool,
}

/// Fits planes to a group of any length. `trits[i]` are those of weight `i`, plane after plane: the
/// nearest ones for the scales as they are, before f16 rounds them. Weights that are not finite get 0
/// everywhere and do not count.
///
/// # Errors
/// When an option makes no sense, or `trits` has another length than `weights`.
pub fn solve_group(weights: &[f32], options: &Options, trits: &mut [[i8; 3]]) -> Result<Solution, Error> {
    options.check()?;
    same("trit tuples", trits.len(), weights.len())?;
    Ok(match (options.planes, options.tie_scales) {
        (planes, true) => tied(planes, weights, trits),
        (1, _) => free::<1>(weights, options, trits),
        (2, _) => free::<2>(weights, options, trits),
        _ => free::<3>(weights, options, trits),
    })
}

/// Scales and trits in turn, each the best for the other.
fn free<const K: usize>(weights: &[f32], options: &Options, trits: &mut [Tuple]) -> Solution {
    let mut sums = Sums::of_signs(weights);
    let mut solution = Solution { scales: [1.0; 3], ..Solution::default() };
    while solution.rounds < options.max_rounds && !solution.converged {
        let before = solution.scales;
        solution.scales = sums.scales::<K>(options);
        solution.rounds += 1;
        solution.converged = at_rest::<K>(solution.scales, before, options);
        nearest(K, weights, solution.scales, trits);
        sums = sums_of(weights, trits);
    }
    solution
}

fn sums_of(weights: &[f32], trits: &[Tuple]) -> Sums {
    let mut sums = Sums::default();
    for (&w, t) in weights.iter().zip(trits) {
        let [a, b, c] = t.map(i32::from);
        for (p, t) in [a, b, c].into_iter().enumerate() {
            sums.count[p] += t * t;
            // A weight that is not finite has no trit by now.
            if t != 0 {
                sums.rhs[p] += if t > 0 { f64::from(w) } else { -f64::from(w) };
            }
        }
        for (cross, product) in sums.cross.iter_mut().zip([a * b, a * c, b * c]) {
            *cross += product;
        }
    }
    sums
}

/// The number of steps that the tied fit tries.
pub(super) const STEPS: usize = 65;

/// The largest code of the uniform quantizer that tied planes are: 4 or 13.
#[inline(always)]
pub(super) fn levels(planes: usize) -> f32 {
    if planes == 2 { 4.0 } else { 13.0 }
}

/// What the largest weight is divided by in step `i`.
#[inline(always)]
pub(super) fn divisor(planes: usize, i: usize) -> f32 {
    (levels(planes) - 0.75) + i as f32 * (2.0 / 64.0)
}

/// The scales of tied planes whose finest is `step`.
#[inline(always)]
pub(super) fn tied_scales(planes: usize, step: f32) -> [f32; 3] {
    if planes == 2 { [3.0 * step, step, 0.0] } else { [9.0 * step, 3.0 * step, step] }
}

/// The step of the uniform quantizer with the least error, and its codes in balanced ternary.
fn tied(planes: usize, weights: &[f32], trits: &mut [Tuple]) -> Solution {
    let levels = levels(planes);
    let finite = |w: f32| if w.is_finite() { w } else { 0.0 };
    let largest = weights.iter().fold(0.0, |max: f32, &w| max.max(finite(w).abs()));
    let code = |w: f32, step: f32| (w / step).clamp(-levels, levels).round();
    let (mut step, mut least) = (largest / levels, f64::INFINITY);
    for i in 0..STEPS {
        let s = largest / divisor(planes, i);
        let mut error = 0.0;
        for &w in weights {
            let d = finite(w) - s * code(finite(w), s);
            // A step of 0 has no codes; what it misses is nothing.
            error += if d.is_nan() { 0.0 } else { f64::from(d) * f64::from(d) };
        }
        if error < least {
            (step, least) = (s, error);
        }
    }
    for (&w, t) in weights.iter().zip(trits) {
        // The cast makes a zero of the NaN that a step of 0 gives.
        let mut rest = code(finite(w), step) as i32;
        *t = [0; 3];
        for p in 0..planes {
            let unit = 3_i32.pow((planes - 1 - p) as u32);
            let digit = (rest + unit / 2).div_euclid(unit);
            t[p] = digit as i8;
            rest -= digit * unit;
        }
    }
    Solution { scales: tied_scales(planes, step), rounds: 1, converged: true }
}

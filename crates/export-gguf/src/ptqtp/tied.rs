//! The tied fit, eight groups side by side; [`super::group`] has the plain form.

use ggml_blocks::simd::{F8, Simd, SimdOp};

use super::group::{STEPS, divisor, levels, tied_scales};
use super::{GROUP, Solution};

/// Groups that advance together.
const LANES: usize = 8;

/// Steps of the quantizer that are tried together: their sums hide each other's latency.
const TOGETHER: usize = 5;
const _: () = assert!(STEPS.is_multiple_of(TOGETHER));

/// The largest number below one half.
const BELOW_HALF: f32 = f32::from_bits(0x3EFF_FFFF);

/// Fits tied planes to groups of weights.
pub(super) struct Tied<'a> {
    /// Two or three.
    pub(super) planes: usize,
    /// Whole groups.
    pub(super) weights: &'a [f32],
    /// One for each group.
    pub(super) out: &'a mut [Solution],
}

impl SimdOp for Tied<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let groups = self.weights.as_chunks::<GROUP>().0;
        let mut x = [[0.0; LANES]; GROUP];
        for (groups, out) in groups.chunks(LANES).zip(self.out.chunks_mut(LANES)) {
            for (lane, group) in groups.iter().enumerate() {
                for (column, &w) in x.iter_mut().zip(group) {
                    column[lane] = if w.is_finite() { w } else { 0.0 };
                }
            }
            let steps = best_steps(simd, self.planes, &x);
            for (out, step) in out.iter_mut().zip(steps) {
                *out = Solution { scales: tied_scales(self.planes, step), rounds: 1, converged: true };
            }
        }
    }
}

/// In each lane the first step of the quantizer that has the least error. A weight of 0 is met by every
/// step, so those that are not finite were made zeros.
#[inline(always)]
fn best_steps<S: Simd>(simd: S, planes: usize, x: &[F8; GROUP]) -> F8 {
    let mut largest = [0.0; LANES];
    for x in x {
        largest = simd.max(absolute(*x), largest);
    }
    let levels = levels(planes);
    let mut best = simd.div(largest, [levels; LANES]);
    let mut least = [f64::INFINITY; LANES];
    let mut i = 0;
    while i < STEPS {
        let mut steps = [[0.0; LANES]; TOGETHER];
        for j in 0..TOGETHER {
            steps[j] = simd.div(largest, [divisor(planes, i + j); LANES]);
        }
        let errors = errors(simd, levels, x, &steps);
        for j in 0..TOGETHER {
            for l in 0..LANES {
                if errors[j][l] < least[l] {
                    (best[l], least[l]) = (steps[j][l], errors[j][l]);
                }
            }
        }
        i += TOGETHER;
    }
    best
}

/// The squared error of each step, summed in the order of the weights.
#[inline(always)]
fn errors<S: Simd>(
    simd: S,
    levels: f32,
    x: &[F8; GROUP],
    steps: &[F8; TOGETHER],
) -> [[f64; LANES]; TOGETHER] {
    let (highest, lowest) = ([levels; LANES], [-levels; LANES]);
    let mut sums = [[0.0_f64; LANES]; TOGETHER];
    for x in x {
        for j in 0..TOGETHER {
            // A step of 0 makes a NaN of a weight of 0, which becomes some level here, and the error 0.
            let code = round(simd, simd.min(simd.max(simd.div(*x, steps[j]), lowest), highest));
            let d = simd.sub(*x, simd.mul(steps[j], code));
            for l in 0..LANES {
                sums[j][l] += f64::from(d[l]) * f64::from(d[l]);
            }
        }
    }
    sums
}

#[inline(always)]
fn absolute(x: F8) -> F8 {
    let mut out = x;
    for l in 0..LANES {
        out[l] = f32::from_bits(x[l].to_bits() & 0x7fff_ffff);
    }
    out
}

/// To the nearest integer, halves away from zero. Exact for the small numbers here: what lies below a
/// half stays below the integer, and a half itself is rounded up by the addition.
#[inline(always)]
fn round<S: Simd>(simd: S, x: F8) -> F8 {
    let mut half = [0.0; LANES];
    for l in 0..LANES {
        half[l] = f32::from_bits(x[l].to_bits() & 1 << 31 | BELOW_HALF.to_bits());
    }
    let integers = simd.truncate(simd.add(x, half));
    let mut out = [0.0; LANES];
    for l in 0..LANES {
        out[l] = integers[l] as f32;
    }
    out
}

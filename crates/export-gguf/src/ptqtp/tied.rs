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
    let mut steps = [[0.0; LANES]; STEPS];
    for (i, step) in steps.iter_mut().enumerate() {
        *step = simd.div(largest, [divisor(planes, i); LANES]);
    }
    let mut best = simd.div(largest, [levels; LANES]);
    let mut least = [f64::INFINITY; LANES];
    let (likely, most) = likely(simd, levels, x, &steps, largest);
    let mut i = 0;
    while i < most {
        let mut some = [[0.0; LANES]; TOGETHER];
        for j in 0..TOGETHER {
            for l in 0..LANES {
                some[j][l] = steps[usize::from(likely[i + j][l])][l];
            }
        }
        let errors = errors(simd, levels, x, &some);
        for j in 0..TOGETHER {
            for l in 0..LANES {
                if errors[j][l] < least[l] {
                    (best[l], least[l]) = (some[j][l], errors[j][l]);
                }
            }
        }
        i += TOGETHER;
    }
    best
}

/// Between these, [`estimates`] neither overflow nor lose more than [`SLACK`] to underflow.
const LARGE: f32 = (1_u64 << 50) as f32;
const SMALL: f32 = 1.0 / (1_u64 << 40) as f32;

/// How far from the least an estimate may be of a step that has the least error: relative, and absolute
/// for what underflows.
///
/// Where estimate and error have the same code for a weight, they have the same difference to it. Where the codes
/// differ, the weight is within 3e-6 steps of the middle between two, and the squares differ by less than 3e-5. Adding
/// 256 squares in f32 costs 2e-5 at most. So an estimate is within 5e-5 of its error, and that of the
/// best step within 1.1e-4 of the least estimate.
const SLACK: (f32, f32) = (1.0 + 1.0 / 2048.0, f32::from_bits((127 - 100) << 23));

/// The steps that may have the least error, in each lane in their order and the last one repeated, and
/// the largest number of them.
#[inline(always)]
fn likely<S: Simd>(
    simd: S,
    levels: f32,
    x: &[F8; GROUP],
    steps: &[F8; STEPS],
    largest: F8,
) -> ([[u8; LANES]; STEPS], usize) {
    let mut ordinary = true;
    for l in 0..LANES {
        ordinary &= (SMALL..=LARGE).contains(&largest[l]) | (largest[l] == 0.0);
    }
    let mut likely = [[0; LANES]; STEPS];
    if !ordinary {
        for (i, all) in likely.iter_mut().enumerate() {
            *all = [i as u8; LANES];
        }
        return (likely, STEPS);
    }
    let mut estimates = [[0.0; LANES]; STEPS];
    let mut least = [f32::INFINITY; LANES];
    for (steps, out) in steps.as_chunks::<TOGETHER>().0.iter().zip(estimates.as_chunks_mut::<TOGETHER>().0) {
        *out = self::estimates(simd, levels, x, steps);
        for estimate in &*out {
            least = simd.min(*estimate, least);
        }
    }
    let mut most = 0;
    for l in 0..LANES {
        let limit = least[l] * SLACK.0 + SLACK.1;
        let mut count = 0;
        for i in 0..STEPS {
            // Of zeros any step is the best: the first.
            if estimates[i][l] <= limit && (i == 0 || largest[l] > 0.0) {
                likely[count][l] = i as u8;
                count += 1;
            }
        }
        for i in count..STEPS {
            likely[i][l] = likely[count - 1][l];
        }
        most = most.max(count);
    }
    (likely, most)
}

/// About the squared error of each step.
#[inline(always)]
fn estimates<S: Simd>(simd: S, levels: f32, x: &[F8; GROUP], steps: &[F8; TOGETHER]) -> [F8; TOGETHER] {
    /// 1.5 * 2^23: adding it leaves the nearest integer.
    const MAGIC: f32 = 12_582_912.0;
    let (highest, lowest, magic) = ([levels; LANES], [-levels; LANES], [MAGIC; LANES]);
    let mut inverses = [[0.0; LANES]; TOGETHER];
    for j in 0..TOGETHER {
        inverses[j] = simd.div([1.0; LANES], steps[j]);
    }
    let mut sums = [[0.0; LANES]; TOGETHER];
    for x in x {
        for j in 0..TOGETHER {
            let code = simd.min(simd.max(simd.mul(*x, inverses[j]), lowest), highest);
            let code = simd.sub(simd.add(code, magic), magic);
            let d = simd.sub(*x, simd.mul(steps[j], code));
            sums[j] = simd.add(sums[j], simd.mul(d, d));
        }
    }
    sums
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

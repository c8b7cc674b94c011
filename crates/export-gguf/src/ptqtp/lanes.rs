//! The free fit, eight groups side by side.
//!
//! Each lane performs the operations of [`solve_group`](super::solve_group) in their order, so that the
//! width cannot change a bit; no operation adds across lanes. Groups need different numbers of rounds: a
//! lane whose scales rest takes the next group at once.

use ggml_blocks::simd::{F8, Simd, SimdOp};

use super::ridge::{Sums, at_rest};
use super::search::{Tuple, value};
use super::{GROUP, Options, Solution};

/// Groups that advance together.
const LANES: usize = 8;

/// One number per lane.
type U8 = [u32; LANES];

/// Fits `K` planes to groups of weights, `N` being `3^K`.
pub(super) struct Free<'a, const K: usize, const N: usize> {
    /// Whole groups.
    pub(super) weights: &'a [f32],
    pub(super) options: &'a Options,
    pub(super) tuples: &'a [Tuple; N],
    /// One for each group.
    pub(super) out: &'a mut [Solution],
}

/// What one lane works on.
#[derive(Clone, Copy, Default)]
struct Lane {
    group: usize,
    busy: bool,
    /// Whether all its finite weights are small enough for [`distances_order`].
    small: bool,
    solution: Solution,
}

impl<const K: usize, const N: usize> SimdOp for Free<'_, K, N> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let groups = self.weights.as_chunks::<GROUP>().0;
        let mut x = [[0.0; LANES]; GROUP];
        let mut lanes = [Lane::default(); LANES];
        let mut sums = [Sums::default(); LANES];
        let mut next = 0;
        let codes = codes(self.tuples);
        for lane in 0..LANES {
            take(&mut next, groups, &mut x, lane, &mut lanes[lane], &mut sums[lane]);
        }
        while lanes.iter().any(
            #[inline(always)]
            |l| l.busy,
        ) {
            for lane in 0..LANES {
                while lanes[lane].busy && settle::<K>(&mut lanes[lane].solution, &sums[lane], self.options) {
                    self.out[lanes[lane].group] = lanes[lane].solution;
                    take(&mut next, groups, &mut x, lane, &mut lanes[lane], &mut sums[lane]);
                }
            }
            let values = values::<K, N>(&lanes, self.tuples);
            sums = if distances_order(&lanes, &values) {
                pass::<S, K, N, false>(simd, &x, &values, &codes)
            } else {
                pass::<S, K, N, true>(simd, &x, &values, &codes)
            };
        }
    }
}

/// One more round's scales for a lane. Whether they were its last.
#[inline(always)]
fn settle<const K: usize>(solution: &mut Solution, sums: &Sums, options: &Options) -> bool {
    let before = solution.scales;
    solution.scales = sums.scales::<K>(options);
    solution.rounds += 1;
    solution.converged = at_rest::<K>(solution.scales, before, options);
    solution.converged || solution.rounds >= options.max_rounds
}

/// Gives a lane the next group, if there is one.
#[inline(always)]
fn take(
    next: &mut usize,
    groups: &[[f32; GROUP]],
    x: &mut [F8; GROUP],
    lane: usize,
    state: &mut Lane,
    sums: &mut Sums,
) {
    let Some(group) = groups.get(*next) else {
        state.busy = false;
        return;
    };
    let mut small = true;
    for (column, &w) in x.iter_mut().zip(group) {
        column[lane] = w;
        small &= w.abs() <= LARGE || !w.is_finite();
    }
    *sums = Sums::of_signs(group);
    *state = Lane {
        group: *next,
        busy: true,
        small,
        solution: Solution { scales: [1.0; 3], ..Solution::default() },
    };
    *next += 1;
}

/// What each tuple stands for in each lane.
#[inline(always)]
fn values<const K: usize, const N: usize>(lanes: &[Lane; LANES], tuples: &[Tuple; N]) -> [F8; N] {
    let mut out = [[0.0; LANES]; N];
    for i in 0..N {
        for lane in 0..LANES {
            out[i][lane] = value(K, lanes[lane].solution.scales, tuples[i]);
        }
    }
    out
}

/// Between these, f32 squares of differences are ordered as the differences are.
const LARGE: f32 = (1_u64 << 60) as f32;
const SMALL: f32 = 1.0 / (1_u64 << 36) as f32;

/// Whether the nearest value can be found without squares, in all lanes at work.
///
/// Rounded squares of f32 numbers differ where the numbers do, because neighbours' squares are more than
/// a rounding apart, unless they overflow or underflow. Nothing here is large enough to overflow. A square
/// underflows below 2^-63; two different values cannot both be that near, for they are 0 or at least 2^-36 large,
/// and so at least 2^-60 apart.
#[inline(always)]
fn distances_order<const N: usize>(lanes: &[Lane; LANES], values: &[F8; N]) -> bool {
    let mut fine = [true; LANES];
    for i in 0..N {
        for l in 0..LANES {
            let size = values[i][l].abs();
            fine[l] &= (SMALL..=LARGE).contains(&size) | (size == 0.0);
        }
    }
    let mut all = true;
    for l in 0..LANES {
        all &= !lanes[l].busy | (fine[l] & lanes[l].small);
    }
    all
}

/// Weights between two readings of the packed sums.
const STRIDE: usize = 8;

/// Where a code has the products of two planes, plus 1: so many bits after the counts.
const CROSS: [u32; 3] = [12, 17, 22];

/// Everything that the sums need to know of a tuple, in one word that can be added up over [`STRIDE`]
/// weights: from bit 4p whether plane p is set, from [`CROSS`] the products, and in bit 31 - p the
/// sign, where sums may run over without touching anything.
#[inline(always)]
fn codes<const N: usize>(tuples: &[Tuple; N]) -> [u32; N] {
    let mut out = [0; N];
    for i in 0..N {
        let t = tuples[i];
        for p in 0..3 {
            out[i] |= u32::from(t[p] != 0) << (4 * p) | u32::from(t[p] < 0) << (31 - p);
        }
        let products = [t[0] * t[1], t[0] * t[2], t[1] * t[2]];
        for c in 0..3 {
            out[i] |= ((products[c] + 1) as u32) << CROSS[c];
        }
    }
    out
}

/// Finds the trits of all weights and sums them up.
#[inline(always)]
fn pass<S: Simd, const K: usize, const N: usize, const SQUARES: bool>(
    simd: S,
    x: &[F8; GROUP],
    values: &[F8; N],
    codes: &[u32; N],
) -> [Sums; LANES] {
    let mut rhs = [[0.0_f64; LANES]; K];
    let mut count = [[0_u32; LANES]; 3];
    let mut cross = [[0_u32; LANES]; 3];
    let mut code = [[0_u32; LANES]; STRIDE];
    let mut signed = [[0.0_f32; LANES]; STRIDE];
    for x in x.as_chunks::<STRIDE>().0 {
        for (code, x) in code.iter_mut().zip(x) {
            *code = if SQUARES {
                nearest(simd, *x, values, codes)
            } else {
                nearest_by_distance(simd, *x, values, codes)
            };
        }
        // Through memory and in long loops, which the compiler vectorizes; lane by lane it does not.
        let mut packed = [0_u32; LANES];
        for code in &code {
            for l in 0..LANES {
                packed[l] = packed[l].wrapping_add(code[l]);
            }
        }
        for p in 0..K {
            let (code, x) = (code.as_flattened(), x.as_flattened());
            for (i, signed) in signed.as_flattened_mut().iter_mut().enumerate() {
                let set = (code[i] >> (4 * p) & 1).wrapping_neg();
                let sign = code[i] << p & 1 << 31;
                *signed = f32::from_bits((x[i].to_bits() ^ sign) & set);
            }
            for signed in &signed {
                for l in 0..LANES {
                    rhs[p][l] += f64::from(signed[l]);
                }
            }
            for l in 0..LANES {
                count[p][l] += packed[l] >> (4 * p) & 15;
                cross[p][l] += packed[l] >> CROSS[p] & 31;
            }
        }
    }
    let mut out = [Sums::default(); LANES];
    for l in 0..LANES {
        for p in 0..K {
            out[l].rhs[p] = rhs[p][l];
            out[l].count[p] = count[p][l] as i32;
            out[l].cross[p] = cross[p][l] as i32 - GROUP as i32;
        }
    }
    out
}

/// The code of the nearest of `values` in each lane, the first of equally near ones; `codes[0]` for what
/// is not finite, because no comparison with NaN or between infinities holds.
#[inline(always)]
pub(super) fn nearest<S: Simd, const N: usize>(simd: S, x: F8, values: &[F8; N], codes: &[u32; N]) -> U8 {
    let distance = simd.sub(x, values[0]);
    let mut least = simd.mul(distance, distance);
    let mut code = [codes[0]; LANES];
    for i in 1..N {
        let distance = simd.sub(x, values[i]);
        let square = simd.mul(distance, distance);
        (least, code) = simd.keep_less(square, [codes[i]; LANES], least, code);
    }
    code
}

/// [`nearest`] where [`distances_order`] holds: two operations less that only some of a CPU's units can do.
#[inline(always)]
fn nearest_by_distance<S: Simd, const N: usize>(simd: S, x: F8, values: &[F8; N], codes: &[u32; N]) -> U8 {
    let mut least = distance(simd, x, values[0]);
    let mut code = [codes[0]; LANES];
    // A loop would not be unrolled.
    macro_rules! candidates {
        ($($i:literal)+) => { $(
            if $i < N {
                let next = distance(simd, x, values[$i]);
                code = simd.keep_less(next, [codes[$i]; LANES], least, code).1;
                // Bits of numbers that are not negative are ordered as the numbers are; NaN stay NaN.
                for l in 0..LANES {
                    least[l] = f32::from_bits(least[l].to_bits().min(next[l].to_bits()));
                }
            }
        )+ };
    }
    candidates! { 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 }
    code
}

#[inline(always)]
fn distance<S: Simd>(simd: S, x: F8, value: F8) -> F8 {
    let mut out = simd.sub(x, value);
    for l in 0..LANES {
        out[l] = f32::from_bits(out[l].to_bits() & 0x7fff_ffff);
    }
    out
}

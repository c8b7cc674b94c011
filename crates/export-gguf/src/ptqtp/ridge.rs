//! The scales of given planes: ridge regression in f64, in closed form.

use super::Options;

/// What the regression needs to know of a group: `S'S` and `S'w`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    /// Non-zero trits of each plane.
    pub(super) count: [i32; 3],
    /// Products of planes 0 and 1, 0 and 2, 1 and 2.
    pub(super) cross: [i32; 3],
    /// Products with the finite weights, added in their order.
    pub(super) rhs: [f64; 3],
}

impl Sums {
    /// The sums of the first round, in which every plane is the sign of the weights. Infinities have a
    /// sign, so they count; their value does not.
    #[inline(always)]
    pub(super) fn of_signs(weights: &[f32]) -> Self {
        let (mut count, mut rhs) = (0, 0.0);
        for &w in weights {
            count += i32::from(w > 0.0) + i32::from(w < 0.0);
            rhs += if w.is_finite() { f64::from(w.abs()) } else { 0.0 };
        }
        Self { count: [count; 3], cross: [count; 3], rhs: [rhs; 3] }
    }

    /// The scales of the first `K` planes; the others are 0.
    ///
    /// The diagonal is raised tenfold while the estimate of the condition number is too large. Equal
    /// planes make a singular system, where rounding may turn the determinant negative: its estimate is
    /// small then and passes, and the next rounds mend the scales.
    #[inline(always)]
    pub(super) fn scales<const K: usize>(&self, options: &Options) -> [f32; 3] {
        let max = f64::from(options.max_ridge);
        let mut ridge = f64::from(options.ridge);
        let b = self.rhs;
        let mut out = [0.0; 3];
        if K == 1 {
            out[0] = (b[0] / (f64::from(self.count[0]) + ridge)) as f32;
            return out;
        }
        loop {
            let a = self.count.map(
                #[inline(always)]
                |n| f64::from(n) + ridge,
            );
            let (condition, scales) = if K == 2 { self.two(a) } else { self.three(a) };
            if condition <= f64::from(options.max_condition) || ridge >= max {
                out[..K].copy_from_slice(&scales[..K]);
                return out;
            }
            ridge = (ridge * 10.0).min(max);
        }
    }

    /// Cramer's rule, with the diagonal as given.
    #[inline(always)]
    fn two(&self, a: [f64; 3]) -> (f64, [f32; 3]) {
        let (c, b) = (f64::from(self.cross[0]), self.rhs);
        let det = a[0] * a[1] - c * c;
        let condition = (a[0] * a[0] + a[1] * a[1] + 2.0 * c * c) / det;
        let first = (b[0] * a[1] - b[1] * c) / det;
        let second = (b[1] * a[0] - b[0] * c) / det;
        (condition, [first as f32, second as f32, 0.0])
    }

    /// The adjugate over the determinant.
    #[inline(always)]
    fn three(&self, a: [f64; 3]) -> (f64, [f32; 3]) {
        let b = self.rhs;
        let [c01, c02, c12] = [0, 1, 2].map(
            #[inline(always)]
            |i: usize| f64::from(self.cross[i]),
        );
        let j00 = a[1] * a[2] - c12 * c12;
        let j01 = -(c01 * a[2] - c12 * c02);
        let j02 = c01 * c12 - a[1] * c02;
        let j11 = a[0] * a[2] - c02 * c02;
        let j12 = -(a[0] * c12 - c01 * c02);
        let j22 = a[0] * a[1] - c01 * c01;
        let det = a[0] * j00 + c01 * j01 + c02 * j02;
        let of_a = a[0] * a[0] + a[1] * a[1] + a[2] * a[2] + 2.0 * (c01 * c01 + c02 * c02 + c12 * c12);
        let of_j = j00 * j00 + j11 * j11 + j22 * j22 + 2.0 * (j01 * j01 + j02 * j02 + j12 * j12);
        let condition = of_a.sqrt() * of_j.sqrt() / det;
        let first = (j00 * b[0] + j01 * b[1] + j02 * b[2]) / det;
        let second = (j01 * b[0] + j11 * b[1] + j12 * b[2]) / det;
        let third = (j02 * b[0] + j12 * b[1] + j22 * b[2]) / det;
        (condition, [first as f32, second as f32, third as f32])
    }
}

/// Whether the scales have come to rest.
#[inline(always)]
pub(super) fn at_rest<const K: usize>(scales: [f32; 3], before: [f32; 3], options: &Options) -> bool {
    let mut sum = 0.0;
    for p in 0..K {
        let moved = f64::from(scales[p]) - f64::from(before[p]);
        sum += moved * moved;
    }
    sum.sqrt() < f64::from(options.tolerance)
}

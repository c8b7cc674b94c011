//! What is counted while a step runs.

use std::collections::BTreeMap;

use ggml_blocks::simd::{Simd, SimdOp, dispatch};

/// What happened to one step.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tally {
    /// Values that were finite and did not fit the target's range.
    pub overflows: u64,
    /// The largest of them by magnitude.
    pub largest: f32,
    /// The sum of squared differences between source and stored values, where it was measured.
    pub error: f64,
    /// The sum of squared source values, where it was measured.
    pub power: f64,
}

impl Tally {
    /// Adds what was counted elsewhere. Sums depend on the order in which they are added.
    pub(crate) fn add(&mut self, other: &Self) {
        self.overflows += other.overflows;
        if other.largest.abs() > self.largest.abs() {
            self.largest = other.largest;
        }
        self.error += other.error;
        self.power += other.power;
    }

    /// Adds the difference between values and what was stored of them.
    pub(crate) fn compare(&mut self, values: &[f32], stored: &[f32]) {
        let (error, power) = dispatch(Compare { values, stored });
        self.error += error;
        self.power += power;
    }

    /// The relative root mean square error, `None` where it was not measured, all is zero, or a value is
    /// not finite.
    #[must_use]
    pub fn relative_error(&self) -> Option<f64> {
        let ratio = (self.power > 0.0).then(|| (self.error / self.power).sqrt())?;
        ratio.is_finite().then_some(ratio)
    }
}

/// The sums of squared differences and of squared values, in f64. Each lane adds every eighth element, so
/// the sums are the same on every CPU.
struct Compare<'a> {
    values: &'a [f32],
    stored: &'a [f32],
}

impl SimdOp for Compare<'_> {
    type Output = (f64, f64);

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> (f64, f64) {
        let (mut error, mut power) = ([0.0_f64; 8], [0.0_f64; 8]);
        let (values, values_rest) = self.values.as_chunks::<8>();
        let (stored, stored_rest) = self.stored.as_chunks::<8>();
        for (a, b) in values.iter().zip(stored) {
            for i in 0..8 {
                let x = f64::from(a[i]);
                let d = x - f64::from(b[i]);
                error[i] += d * d;
                power[i] += x * x;
            }
        }
        for (i, (a, b)) in values_rest.iter().zip(stored_rest).enumerate() {
            let x = f64::from(*a);
            let d = x - f64::from(*b);
            error[i] += d * d;
            power[i] += x * x;
        }
        (error.iter().sum(), power.iter().sum())
    }
}

/// Adds chunks' tallies up in the order of the chunks, whoever is done first, so that the sums don't depend
/// on threads.
#[derive(Debug)]
pub(super) struct InOrder {
    steps: Vec<Tally>,
    /// The chunk whose turn it is.
    next: usize,
    /// Those that were done too early, with their steps: about as many as there are threads.
    waiting: BTreeMap<usize, (usize, Tally)>,
}

impl InOrder {
    pub(super) fn new(steps: usize) -> Self {
        Self { steps: vec![Tally::default(); steps], next: 0, waiting: BTreeMap::new() }
    }

    /// Takes the tally of a chunk of a step.
    pub(super) fn add(&mut self, chunk: usize, step: usize, tally: Tally) {
        self.waiting.insert(chunk, (step, tally));
        while let Some((step, tally)) = self.waiting.remove(&self.next) {
            self.steps[step].add(&tally);
            self.next += 1;
        }
    }

    /// The steps' sums over all chunks before the first that is missing.
    pub(super) fn into_steps(self) -> Vec<Tally> {
        self.steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_do_not_depend_on_who_is_done_first() {
        let parts = [1e16, 1.0, -1e16, 3.0].map(|error| Tally { error, ..Tally::default() });
        let sum = |order: [usize; 4]| {
            let mut all = InOrder::new(1);
            order.iter().for_each(|&n| all.add(n, 0, parts[n]));
            all.into_steps()[0].error
        };
        assert_eq!(sum([0, 1, 2, 3]), 3.0);
        assert_eq!(sum([3, 2, 1, 0]), 3.0);
        assert_eq!(sum([2, 0, 3, 1]), 3.0);
    }

    #[test]
    fn the_error_is_that_of_the_definition() {
        let values: Vec<f32> = (0..19_u8).map(|i| f32::from(i) - 9.0).collect();
        let stored: Vec<f32> = values.iter().map(|v| v + 0.5).collect();
        let mut tally = Tally::default();
        tally.compare(&values, &stored);
        assert_eq!((tally.error, tally.power), (19.0 * 0.25, 570.0));
        assert_eq!(tally.relative_error(), Some((4.75_f64 / 570.0).sqrt()));
        tally.compare(&[f32::INFINITY], &[f32::INFINITY]);
        assert_eq!(tally.relative_error(), None);
        assert_eq!(Tally::default().relative_error(), None);
    }
}

//! What is counted while a step runs.

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
    /// Adds what was counted elsewhere.
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
        for (a, b) in values.iter().zip(stored) {
            self.error += f64::from(a - b).powi(2);
            self.power += f64::from(*a).powi(2);
        }
    }

    /// The relative root mean square error, `None` where it was not measured or all is zero.
    #[must_use]
    pub fn relative_error(&self) -> Option<f64> {
        (self.power > 0.0).then(|| (self.error / self.power).sqrt())
    }
}

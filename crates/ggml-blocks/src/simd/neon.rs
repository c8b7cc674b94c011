//! The aarch64 token: NEON is part of the baseline, so nothing needs a hop.

use super::{Arith, Level, Levels, Simd, SimdOp};

/// Proof of NEON.
#[derive(Debug, Clone, Copy)]
pub struct Neon;

impl Arith for Neon {}

impl Levels for Neon {}

impl Simd for Neon {
    const LEVEL: Level = Level::Neon;
    const LANES: usize = 4;
    type Narrow = Self;

    #[inline(always)]
    fn narrow(self) -> Self {
        self
    }

    #[inline(never)]
    fn run<T: SimdOp>(self, op: T) -> T::Output {
        op.run(self)
    }
}

//! Random numbers that are the same on every machine: integers, and IEEE additions,
//! multiplications and divisions of them; no function of a mathematics library.

/// `SplitMix64`.
#[derive(Debug)]
pub(super) struct Rng(u64);

impl Rng {
    /// A stream of its own for each name.
    pub(super) fn new(name: &str) -> Self {
        Self(
            name.bytes().fold(0x243f_6a88_85a3_08d3, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)),
        )
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1), a multiple of 2^-24.
    pub(super) fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / 16_777_216.0
    }

    /// Uniform in [-1, 1).
    pub(super) fn signed(&mut self) -> f32 {
        self.unit() * 2.0 - 1.0
    }

    /// Close to a standard normal distribution: a sum of twelve uniform numbers.
    pub(super) fn normal(&mut self) -> f32 {
        (0..12).map(|_| self.unit()).sum::<f32>() - 6.0
    }
}

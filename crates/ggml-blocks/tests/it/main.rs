//! Integration tests: one binary.

mod casts;
mod checks;
mod codebooks;
mod docs;
mod fuzz;
mod fuzz_bodies;

mod golden;
mod rows;

/// A small generator with a fixed seed, for bytes that need no structure.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| (self.next() >> 32) as u8).collect()
    }

    /// Values of about 1, never zero.
    fn values(&mut self, len: usize) -> Vec<f32> {
        (0..len).map(|_| (self.next() >> 40) as f32 / 8_388_608.0 - 1.000_01).collect()
    }
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

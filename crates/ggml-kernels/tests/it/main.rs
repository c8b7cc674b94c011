//! Integration tests: one binary.

mod api;
mod bits;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod emulator;
mod exact;
mod packed;
mod planes;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod vnni;

use ggml_blocks::{FORMATS, Format, GgmlType, Kind};

/// A small generator with a fixed seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Bytes without any structure: as blocks, they have NaN, infinite and huge scales too.
    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| (self.next() >> 32) as u8).collect()
    }

    /// Values within ±1.
    fn values(&mut self, len: usize) -> Vec<f32> {
        (0..len).map(|_| (self.next() >> 40) as f32 / 8_388_608.0 - 1.0).collect()
    }
}

/// Whether everything is slow here, so that a few sizes must do.
fn reduced() -> bool {
    std::env::var("GGML_KERNELS_GRID").is_ok_and(|grid| grid == "reduced")
}

/// How many rows are multiplied at a time.
fn rows() -> Vec<usize> {
    // Of few rows one, two with one, four; of tiles four, two, one.
    if reduced() { vec![1, 3, 4, 19] } else { (1..=33).collect() }
}

/// The sizes of a test, columns and blocks per row: all, or the last two.
fn shapes(all: &[(usize, usize)]) -> &[(usize, usize)] {
    &all[if reduced() { all.len() - 2 } else { 0 }..]
}

/// The types that weights can have.
fn weight_formats() -> impl Iterator<Item = &'static Format> {
    let floats = [GgmlType::F32, GgmlType::F16, GgmlType::BF16];
    FORMATS.iter().filter(move |f| f.info().kind == Kind::Block || floats.contains(&f.info().id))
}

/// Bits, with all NaNs alike: which of two NaNs an operation passes on depends on the order of its
/// operands, which is the compiler's.
fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| if x.is_nan() { 0x7FC0_0000 } else { x.to_bits() }).collect()
}

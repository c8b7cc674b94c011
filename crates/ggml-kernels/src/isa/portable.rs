//! The reference: plain loops over arrays. Others must give its bits.

use ggml_blocks::{Bf16, F16};

use super::{Isa, KernelOp};
use crate::level::Level;

/// The baseline token, available everywhere.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Portable;

impl Portable {
    pub(super) fn detect() -> Option<Self> {
        Some(Self)
    }

    pub(super) fn assume() -> Self {
        Self
    }

    pub(super) fn plain(self) -> Self {
        self
    }
}

/// A new array of what `f` gives for each index: `array::from_fn` is not always inlined.
#[inline(always)]
pub(super) fn each<T: Copy + Default, const N: usize>(f: impl Fn(usize) -> T) -> [T; N] {
    let mut out = [T::default(); N];
    for i in 0..N {
        out[i] = f(i);
    }
    out
}

/// The pair of i16 in an i32, the first in the lower half.
#[inline(always)]
fn pair(x: i32) -> [i32; 2] {
    [i32::from(x as i16), x >> 16]
}

#[inline(always)]
fn join(first: i16, second: i16) -> i32 {
    i32::from(second) << 16 | i32::from(first) & 0xFFFF
}

#[inline(always)]
fn word(x: [u8; 32], i: usize) -> u16 {
    u16::from_le_bytes([x[2 * i], x[2 * i + 1]])
}

impl Isa for Portable {
    const LEVEL: Level = Level::Portable;
    const COLS: usize = 1;
    const ROWS: usize = 2;
    const WORDS: bool = true;
    const WIDE_BYTES: usize = 4;
    type B = [u8; 32];
    type I = [i32; 8];
    type S = [i32; 8];
    type F = [f32; 8];
    type L = [u8; 32];
    type Q = [u8; 32];

    #[inline(never)]
    fn run<T: KernelOp>(self, op: T) -> T::Output {
        op.run(self)
    }

    #[inline(never)]
    fn tile<T: KernelOp>(self, op: T) -> T::Output {
        op.run(self)
    }

    #[inline(always)]
    fn room(_: u32) -> usize {
        usize::MAX
    }

    #[inline(always)]
    fn bytes(self, x: &[u8; 32]) -> [u8; 32] {
        *x
    }

    #[inline(always)]
    fn splat_byte(self, x: u8) -> [u8; 32] {
        [x; 32]
    }

    #[inline(always)]
    fn splat_quad(self, x: [u8; 4]) -> [u8; 32] {
        each(|i| x[i % 4])
    }

    #[inline(always)]
    fn signed(self, x: [u8; 32]) -> [i8; 32] {
        each(|i| x[i].cast_signed())
    }

    #[inline(always)]
    fn twice(self, x: &[i8; 16]) -> [u8; 32] {
        each(|i| x[i % 16].cast_unsigned())
    }

    #[inline(always)]
    fn nibbles(self, x: &[u8; 16]) -> [u8; 32] {
        each(|i| x[i % 16] >> (i / 16 * 4) & 15)
    }

    #[inline(always)]
    fn mask(self, bits: u32) -> [u8; 32] {
        each(|i| 0u8.wrapping_sub((bits >> i & 1) as u8))
    }

    #[inline(always)]
    fn sub_bytes(self, a: [u8; 32], b: [u8; 32]) -> [u8; 32] {
        each(|i| a[i].wrapping_sub(b[i]))
    }

    #[inline(always)]
    fn with_signs(self, x: [u8; 32], signs: [u8; 32]) -> [u8; 32] {
        each(|i| x[i].wrapping_mul(signs[i]))
    }

    #[inline(always)]
    fn above(self, x: [u8; 32], limit: i8) -> [u8; 32] {
        each(|i| 0u8.wrapping_sub(u8::from(x[i].cast_signed() > limit)))
    }

    #[inline(always)]
    fn and(self, a: [u8; 32], b: [u8; 32]) -> [u8; 32] {
        each(|i| a[i] & b[i])
    }

    #[inline(always)]
    fn or(self, a: [u8; 32], b: [u8; 32]) -> [u8; 32] {
        each(|i| a[i] | b[i])
    }

    #[inline(always)]
    fn shr(self, a: [u8; 32], by: i32) -> [u8; 32] {
        each(|i| (word(a, i / 2) >> by).to_le_bytes()[i % 2])
    }

    #[inline(always)]
    fn shl(self, a: [u8; 32], by: i32) -> [u8; 32] {
        each(|i| (word(a, i / 2) << by).to_le_bytes()[i % 2])
    }

    #[inline(always)]
    fn lookup(self, table: [u8; 32], index: [u8; 32]) -> [u8; 32] {
        each(|i| table[usize::from(index[i] & 15)])
    }

    #[inline(always)]
    fn no_sums(self) -> [i32; 8] {
        [0; 8]
    }

    #[inline(always)]
    fn dot(self, sums: [i32; 8], levels: [u8; 32], quad: [u8; 32]) -> [i32; 8] {
        each(|i| {
            let mut sum = sums[i];
            for j in 4 * i..4 * i + 4 {
                sum += i32::from(levels[j]) * i32::from(quad[j].cast_signed());
            }
            sum
        })
    }

    #[inline(always)]
    fn fold(self, total: [i32; 8], sums: [i32; 8]) -> [i32; 8] {
        each(|i| total[i] + sums[i])
    }

    #[inline(always)]
    fn fold_scaled(self, total: [i32; 8], sums: [i32; 8], scale: [i32; 8]) -> [i32; 8] {
        self.mul_add_i32(total, sums, scale)
    }

    #[inline(always)]
    fn sub_scale(self, pairs: [i32; 8], second: bool) -> [i32; 8] {
        self.lane_scale(pairs, second)
    }

    #[inline(always)]
    fn wide(self, levels: [u8; 32]) -> [u8; 32] {
        levels
    }

    #[inline(always)]
    fn wide_quad(self, x: &[u8]) -> [u8; 32] {
        self.splat_quad(*x.first_chunk().unwrap_or(&[0; 4]))
    }

    #[inline(always)]
    fn dot_wide(self, total: [i32; 8], levels: [u8; 32], quad: [u8; 32]) -> [i32; 8] {
        self.dot(total, levels, quad)
    }

    #[inline(always)]
    fn pairs_u8(self, x: &[u8; 16]) -> [i32; 8] {
        each(|i| join(i16::from(x[2 * i]), i16::from(x[2 * i + 1])))
    }

    #[inline(always)]
    fn pairs_i8(self, x: &[u8; 16]) -> [i32; 8] {
        each(|i| join(i16::from(x[2 * i].cast_signed()), i16::from(x[2 * i + 1].cast_signed())))
    }

    #[inline(always)]
    fn pairs_nibble(self, x: &[u8; 16], high: bool) -> [i32; 8] {
        self.pairs_u8(&each(|i| if high { x[i] >> 4 } else { x[i] & 15 }))
    }

    #[inline(always)]
    fn twin(self, pairs: [i32; 8], second: bool) -> [i32; 8] {
        each(|i| {
            let one = pair(pairs[i])[usize::from(second)] as i16;
            join(one, one)
        })
    }

    #[inline(always)]
    fn words(self, levels: [u8; 32], offset: i32, scale: [i32; 8]) -> [[i32; 8]; 2] {
        let word = |i: usize, j: usize| ((i32::from(levels[4 * i + j]) - offset) * pair(scale[i])[0]) as i16;
        [each(|i| join(word(i, 0), word(i, 2))), each(|i| join(word(i, 1), word(i, 3)))]
    }

    #[inline(always)]
    fn transpose(self, x: [[u8; 32]; 8]) -> [[u8; 32]; 8] {
        let mut out = [[0; 32]; 8];
        for i in 0..8 {
            out[i] = each(|b| x[b / 4][4 * i + b % 4]);
        }
        out
    }

    #[inline(always)]
    fn int_bytes(self, x: [i32; 8]) -> [u8; 32] {
        each(|i| x[i / 4].to_le_bytes()[i % 4])
    }

    #[inline(always)]
    fn dot_pairs(self, total: [i32; 8], a: [i32; 8], b: [i32; 8]) -> [i32; 8] {
        each(|i| {
            let ([a0, a1], [b0, b1]) = (pair(a[i]), pair(b[i]));
            total[i] + a0 * b0 + a1 * b1
        })
    }

    #[inline(always)]
    fn lane_scale(self, pairs: [i32; 8], second: bool) -> [i32; 8] {
        each(|i| pair(pairs[i])[usize::from(second)])
    }

    #[inline(always)]
    fn mul_add_i32(self, total: [i32; 8], a: [i32; 8], b: [i32; 8]) -> [i32; 8] {
        each(|i| total[i] + a[i] * b[i])
    }

    #[inline(always)]
    fn splat_i32(self, x: i32) -> [i32; 8] {
        [x; 8]
    }

    #[inline(always)]
    fn ints(self, x: &[u8; 32]) -> [i32; 8] {
        each(|i| i32::from_le_bytes([x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]]))
    }

    #[inline(always)]
    fn products(self, levels: [u8; 32], a: &[i8; 32]) -> [i32; 8] {
        let product = |j: usize| i32::from(levels[j].cast_signed()) * i32::from(a[j]);
        let two = |j: usize| (product(j) + product(j + 1)) as i16;
        each(|i| join(two(4 * i), two(4 * i + 2)))
    }

    #[inline(always)]
    fn half_scales(self, scales: &[i8; 16]) -> [i32; 8] {
        each(|i| {
            let first = i % 4 * 4 + i / 4;
            join(i16::from(scales[first]), i16::from(scales[first + 2]))
        })
    }

    #[inline(always)]
    fn scales_of(self, scales: [i32; 8], s: usize) -> [i32; 8] {
        each(|i| {
            let one = pair(scales[i / 4 * 4 + s / 2 % 4])[s % 2] as i16;
            join(one, one)
        })
    }

    #[inline(always)]
    fn totals(self, x: &[[i32; 8]; 8]) -> [i32; 8] {
        each(|i| x[i].iter().sum())
    }

    #[inline(always)]
    fn half_totals(self, x: &[[i32; 8]; 8]) -> [[i32; 8]; 2] {
        [each(|i| x[i][..4].iter().sum()), each(|i| x[i][4..].iter().sum())]
    }

    #[inline(always)]
    fn to_f32(self, x: [i32; 8]) -> [f32; 8] {
        each(|i| x[i] as f32)
    }

    #[inline(always)]
    fn floats(self, x: &[f32; 8]) -> [f32; 8] {
        *x
    }

    #[inline(always)]
    fn array(self, x: [f32; 8]) -> [f32; 8] {
        x
    }

    #[inline(always)]
    fn splat(self, x: f32) -> [f32; 8] {
        [x; 8]
    }

    #[inline(always)]
    fn add(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        each(|i| a[i] + b[i])
    }

    #[inline(always)]
    fn sub(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        each(|i| a[i] - b[i])
    }

    #[inline(always)]
    fn mul(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        each(|i| a[i] * b[i])
    }

    #[inline(always)]
    fn widen(self, x: &[u8; 16]) -> [f32; 8] {
        each(|i| F16::from_bits(u16::from_le_bytes([x[2 * i], x[2 * i + 1]])).to_f32())
    }

    #[inline(always)]
    fn widen_bf16(self, x: &[u8; 16]) -> [f32; 8] {
        each(|i| Bf16::from_bits(u16::from_le_bytes([x[2 * i], x[2 * i + 1]])).to_f32())
    }
}

//! Levels of 32 weights as bytes: how encoders narrow and pack them.

use super::each;

/// What becomes of the levels of a block. Plain loops here, few instructions on AVX2.
pub trait Levels: Copy {
    /// Integers of -128..=127 as bytes.
    #[inline(always)]
    fn narrow32(self, a: [[i32; 8]; 4]) -> [i8; 32] {
        let mut out = [0; 32];
        for i in 0..32 {
            out[i] = a[i / 8][i % 8] as i8;
        }
        out
    }

    /// Levels above `top` become `top`.
    #[inline(always)]
    fn at_most(self, levels: [u8; 32], top: u8) -> [u8; 32] {
        each(
            levels,
            #[inline(always)]
            |l| l.min(top),
        )
    }

    /// The low four bits of two levels per byte, 16 weights apart. In words: bytes would be moved one
    /// by one.
    #[inline(always)]
    fn nibbles(self, levels: [u8; 32]) -> [u8; 16] {
        const LOW: u64 = 0x0F0F_0F0F_0F0F_0F0F;
        let [a, b, c, d]: [u64; 4] = bytemuck::must_cast(levels);
        bytemuck::must_cast([a & LOW | (c & LOW) << 4, b & LOW | (d & LOW) << 4])
    }

    /// Bit 4 of each level, the first lowest.
    #[inline(always)]
    fn fifth_bits(self, levels: [u8; 32]) -> [u8; 4] {
        let words: [u64; 4] = bytemuck::must_cast(levels);
        each(
            words,
            #[inline(always)]
            |word| {
                let bits = (word.to_le() >> 4) & 0x0101_0101_0101_0101;
                // The product gathers bit 0 of each byte in the top byte, the first byte's lowest.
                (bits.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
            },
        )
    }

    /// The index of the nearest E2M1 number. `steps` counts halves of the smallest one from zero,
    /// rounded away from it, at most 32. (Halfway goes to zero; no number is -0.)
    #[inline(always)]
    fn e2m1(self, steps: [i8; 32]) -> [u8; 32] {
        each(
            steps,
            #[inline(always)]
            |n| E2M1_OF_STEPS[usize::from(n.unsigned_abs()).min(31)] | if n < -1 { 8 } else { 0 },
        )
    }
}

/// Steps at which the next E2M1 number begins: just above the middles of 0, 2, 4, 6, 8, 12, 16, 24.
const E2M1_BEGINS: [u8; 7] = [2, 4, 6, 8, 11, 15, 21];

/// The index of an E2M1 number by the steps of [`Levels::e2m1`].
pub(super) const E2M1_OF_STEPS: [u8; 32] = {
    let mut table = [0; 32];
    let mut n = 0;
    while n < 32 {
        let mut i = 0;
        while i < 7 {
            table[n] += (n >= E2M1_BEGINS[i] as usize) as u8;
            i += 1;
        }
        n += 1;
    }
    table
};

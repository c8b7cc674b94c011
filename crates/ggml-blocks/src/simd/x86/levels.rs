//! [`Levels`] in 256-bit instructions.

use core::arch::x86_64::*;

use bytemuck::must_cast;

use super::{Avx2, Avx512};
use crate::simd::levels::{E2M1_OF_STEPS, Levels};

/// What a look-up of 16 bytes can hold of the table; the steps above are of the last number or the
/// one before.
const E2M1_LOW: [u8; 16] = {
    let mut low = [0; 16];
    let mut n = 0;
    while n < 16 {
        low[n] = E2M1_OF_STEPS[n];
        n += 1;
    }
    low
};

/// From here on all steps are of the last number.
const E2M1_LAST: i8 = 21;

const _: () = {
    let mut n = 15;
    while n < 32 {
        assert!(E2M1_OF_STEPS[n] == E2M1_LOW[15] + (n >= E2M1_LAST as usize) as u8);
        n += 1;
    }
};

macro_rules! ops {
    ($features:tt $token:ident) => {
        hop! { $features $token
            #[inline]
            fn narrow32(_token, a: [[i32; 8]; 4]) -> [i8; 32] {
                let [a, b, c, d]: [__m256i; 4] = must_cast(a);
                // The packs work within halves, so fours come out interleaved.
                let fours = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
                let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
                must_cast(_mm256_permutevar8x32_epi32(fours, order))
            }

            #[inline]
            fn at_most(_token, levels: [u8; 32], top: u8) -> [u8; 32] {
                must_cast(_mm256_min_epu8(must_cast(levels), _mm256_set1_epi8(top.cast_signed())))
            }

            #[inline]
            fn nibbles(_token, levels: [u8; 32]) -> [u8; 16] {
                let low = _mm256_and_si256(must_cast(levels), _mm256_set1_epi8(15));
                // Shifted in words: nothing crosses a byte.
                let high = _mm_slli_epi16::<4>(_mm256_extracti128_si256::<1>(low));
                must_cast(_mm_or_si128(_mm256_castsi256_si128(low), high))
            }

            #[inline]
            fn fifth_bits(_token, levels: [u8; 32]) -> [u8; 4] {
                _mm256_movemask_epi8(_mm256_slli_epi16::<3>(must_cast(levels))).to_le_bytes()
            }

            #[inline]
            fn e2m1(_token, steps: [i8; 32]) -> [u8; 32] {
                let steps: __m256i = must_cast(steps);
                let table = _mm256_broadcastsi128_si256(must_cast(E2M1_LOW));
                let size = _mm256_abs_epi8(steps);
                let low = _mm256_shuffle_epi8(table, _mm256_min_epu8(size, _mm256_set1_epi8(15)));
                // A true mask is -1.
                let index = _mm256_sub_epi8(low, _mm256_cmpgt_epi8(size, _mm256_set1_epi8(E2M1_LAST - 1)));
                let negative = _mm256_cmpgt_epi8(_mm256_set1_epi8(-1), steps);
                must_cast(_mm256_or_si256(index, _mm256_and_si256(negative, _mm256_set1_epi8(8))))
            }
        }
    };
}

impl Levels for Avx2 {
    avx2! { ops Avx2 }
}

impl Levels for Avx512 {
    avx512! { ops Avx512 }
}

//! [`Arith`] in 256-bit instructions.

use core::arch::x86_64::*;

use bytemuck::must_cast;

use super::{Avx2, Avx512};
use crate::simd::{Arith, F8, M8};

macro_rules! ops {
    ($features:tt $token:ident) => {
        hop! { $features $token
            #[inline]
            fn add(_token, a: F8, b: F8) -> F8 {
                must_cast(_mm256_add_ps(must_cast(a), must_cast(b)))
            }

            #[inline]
            fn sub(_token, a: F8, b: F8) -> F8 {
                must_cast(_mm256_sub_ps(must_cast(a), must_cast(b)))
            }

            #[inline]
            fn mul(_token, a: F8, b: F8) -> F8 {
                must_cast(_mm256_mul_ps(must_cast(a), must_cast(b)))
            }

            #[inline]
            fn div(_token, a: F8, b: F8) -> F8 {
                must_cast(_mm256_div_ps(must_cast(a), must_cast(b)))
            }

            #[inline]
            fn sqrt(_token, a: F8) -> F8 {
                must_cast(_mm256_sqrt_ps(must_cast(a)))
            }

            #[inline]
            fn min(_token, a: F8, b: F8) -> F8 {
                must_cast(_mm256_min_ps(must_cast(a), must_cast(b)))
            }

            #[inline]
            fn max(_token, a: F8, b: F8) -> F8 {
                must_cast(_mm256_max_ps(must_cast(a), must_cast(b)))
            }

            #[inline]
            fn gt(_token, a: F8, b: F8) -> M8 {
                must_cast(_mm256_cmp_ps::<_CMP_GT_OQ>(must_cast(a), must_cast(b)))
            }

            #[inline]
            fn ge(_token, a: F8, b: F8) -> M8 {
                must_cast(_mm256_cmp_ps::<_CMP_GE_OQ>(must_cast(a), must_cast(b)))
            }

            #[inline]
            fn eq(_token, a: F8, b: F8) -> M8 {
                must_cast(_mm256_cmp_ps::<_CMP_EQ_OQ>(must_cast(a), must_cast(b)))
            }

            #[inline]
            fn nearest_wrapping(_token, a: F8) -> F8 {
                let v = _mm256_add_ps(must_cast(a), _mm256_set1_ps(12_582_912.0));
                let low = _mm256_and_si256(must_cast(v), _mm256_set1_epi32(0x7f_ffff));
                must_cast(_mm256_cvtepi32_ps(_mm256_sub_epi32(low, _mm256_set1_epi32(0x40_0000))))
            }

            #[inline]
            fn truncate(_token, a: F8) -> [i32; 8] {
                must_cast(_mm256_cvttps_epi32(must_cast(a)))
            }

            #[inline]
            fn away(_token, a: F8) -> [i32; 8] {
                let sign = _mm256_set1_ps(-0.0);
                let size = _mm256_ceil_ps(_mm256_andnot_ps(sign, must_cast(a)));
                let rounded = _mm256_or_ps(size, _mm256_and_ps(sign, must_cast(a)));
                must_cast(_mm256_cvttps_epi32(rounded))
            }

            #[inline]
            fn splat(_token, v: f32) -> F8 {
                must_cast(_mm256_set1_ps(v))
            }

            #[inline]
            fn select(_token, m: M8, a: F8, b: F8) -> F8 {
                must_cast(_mm256_blendv_ps(must_cast(b), must_cast(a), must_cast(m)))
            }

            #[inline]
            fn any(_token, m: M8) -> bool {
                _mm256_movemask_ps(must_cast(m)) != 0
            }

            #[inline]
            fn transpose(_token, rows: [F8; 8]) -> [F8; 8] {
                let r: [__m256; 8] = must_cast(rows);
                // Pairs of rows, then fours within each half, then the halves.
                let mut pairs = r;
                for k in 0..4 {
                    pairs[2 * k] = _mm256_unpacklo_ps(r[2 * k], r[2 * k + 1]);
                    pairs[2 * k + 1] = _mm256_unpackhi_ps(r[2 * k], r[2 * k + 1]);
                }
                let mut fours = pairs;
                for h in [0, 4] {
                    fours[h] = _mm256_shuffle_ps::<0x44>(pairs[h], pairs[h + 2]);
                    fours[h + 1] = _mm256_shuffle_ps::<0xEE>(pairs[h], pairs[h + 2]);
                    fours[h + 2] = _mm256_shuffle_ps::<0x44>(pairs[h + 1], pairs[h + 3]);
                    fours[h + 3] = _mm256_shuffle_ps::<0xEE>(pairs[h + 1], pairs[h + 3]);
                }
                let mut out = rows;
                for k in 0..4 {
                    out[k] = must_cast(_mm256_permute2f128_ps::<0x20>(fours[k], fours[k + 4]));
                    out[k + 4] = must_cast(_mm256_permute2f128_ps::<0x31>(fours[k], fours[k + 4]));
                }
                out
            }

            // Blends run on more ports than shuffles.
            #[inline]
            fn halves_of_fours(_token, a: F8, b: F8) -> [F8; 2] {
                let (a, b): (__m256, __m256) = (must_cast(a), must_cast(b));
                must_cast([_mm256_shuffle_ps::<0x4E>(a, b), _mm256_blend_ps::<0xCC>(a, b)])
            }

            #[inline]
            fn halves_of_twos(_token, a: F8, b: F8) -> [F8; 2] {
                let (a, b): (__m256, __m256) = (must_cast(a), must_cast(b));
                must_cast([_mm256_shuffle_ps::<0x88>(a, b), _mm256_shuffle_ps::<0xDD>(a, b)])
            }

            #[inline]
            fn halves_of_eights(_token, a: F8, b: F8) -> [F8; 2] {
                let (a, b): (__m256, __m256) = (must_cast(a), must_cast(b));
                must_cast([_mm256_permute2f128_ps::<0x21>(a, b), _mm256_blend_ps::<0xF0>(a, b)])
            }
        }
    };
}

impl Arith for Avx2 {
    avx2! { ops Avx2 }
}

impl Arith for Avx512 {
    avx512! { ops Avx512 }
}

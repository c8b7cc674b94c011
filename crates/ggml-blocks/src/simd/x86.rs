//! The x86-64 tokens. A feature list stands once, in its callback macro.

use core::arch::x86_64::*;

use bytemuck::must_cast;

use super::{F16, Level, Simd, SimdOp};

macro_rules! avx2 {
    ($cb:ident $($rest:tt)*) => {
        $cb! { ["avx2" "fma" "f16c" "bmi1" "bmi2" "lzcnt" "popcnt"] $($rest)* }
    };
}

macro_rules! avx512 {
    ($cb:ident $($rest:tt)*) => {
        $cb! {
            ["avx2" "fma" "f16c" "bmi1" "bmi2" "lzcnt" "popcnt"
             "avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl"]
            $($rest)*
        }
    };
}

mod arith;
mod levels;

avx2! { token
    /// Proof of AVX2, FMA, F16C, BMI1, BMI2, LZCNT and POPCNT. (FMA is never used for codecs.)
    Avx2
}

avx512! { token
    /// Proof of AVX-512 F, BW, CD, DQ, VL and of everything that [`Avx2`] proves.
    Avx512
}

/// The operations that both tokens do with 256-bit instructions.
macro_rules! ops {
    ($features:tt $token:ident) => {
        hop! { $features $token
            #[inline(never)]
            fn run<T: SimdOp>(token, op: T) -> T::Output {
                op.run(token)
            }

            #[inline]
            fn widen(_token, h: F16) -> f32 {
                _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(i32::from(h.to_bits()))))
            }

            // Uses all lanes: for a single one the compiler inserts the number into whatever the
            // register held, and each block then waits for the last one.
            #[inline]
            fn widen_apart(_token, h: F16) -> f32 {
                let x = _mm_cvtph_ps(_mm_set1_epi16(h.to_bits().cast_signed()));
                _mm_cvtss_f32(_mm_or_ps(x, _mm_movehl_ps(x, x)))
            }

            #[inline]
            fn widen8(_token, h: [u16; 8]) -> [f32; 8] {
                must_cast(_mm256_cvtph_ps(must_cast(h)))
            }

            // VCVTPS2PH keeps a NaN's upper payload bits; ggml's conversion gives 0x7E00 with the sign.
            #[inline]
            fn round8(_token, x: [f32; 8]) -> [u16; 8] {
                let x: __m256 = must_cast(x);
                let h = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x);
                let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(x, x));
                let nan = _mm_packs_epi32(_mm256_castsi256_si128(nan), _mm256_extracti128_si256::<1>(nan));
                let sign = _mm_and_si128(h, _mm_set1_epi16(i16::MIN));
                must_cast(_mm_blendv_epi8(h, _mm_or_si128(sign, _mm_set1_epi16(0x7E00)), nan))
            }

            #[inline]
            fn floats16(_token, bytes: [u64; 2]) -> [f32; 16] {
                let low: __m128i = must_cast(bytes);
                let high = _mm_unpackhi_epi64(low, low);
                must_cast([low, high].map(|half| _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(half))))
            }

            #[inline]
            fn floats8(_token, bytes: u64) -> [f32; 8] {
                let bytes = _mm_cvtsi64_si128(bytes.cast_signed());
                must_cast(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)))
            }

            #[inline]
            fn lookup16(_token, table: &[i8; 16], index: [u64; 2]) -> [u64; 2] {
                must_cast(_mm_shuffle_epi8(must_cast(*table), must_cast(index)))
            }

            #[inline]
            fn pick8(_token, table: [f32; 8], index: [u32; 8]) -> [f32; 8] {
                must_cast(_mm256_permutevar8x32_ps(must_cast(table), must_cast(index)))
            }

            #[inline]
            fn pick4(_token, table: [f32; 8], index: [u32; 8]) -> [f32; 8] {
                must_cast(_mm256_permutevar_ps(must_cast(table), must_cast(index)))
            }

            // Spelled out: the compiler narrows the mask to pick the codes, at several times the cost.
            #[inline]
            fn keep_less(
                _token,
                x: [f32; 8],
                code: [u32; 8],
                least: [f32; 8],
                codes: [u32; 8]
            ) -> ([f32; 8], [u32; 8]) {
                let (x, least): (__m256, __m256) = (must_cast(x), must_cast(least));
                let less = _mm256_cmp_ps::<_CMP_LT_OQ>(x, least);
                let codes = _mm256_blendv_ps(must_cast(codes), must_cast(code), less);
                (must_cast(_mm256_min_ps(x, least)), must_cast(codes))
            }

            #[inline]
            fn greater(_token, x: [f32; 8], y: [f32; 8]) -> u32 {
                _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(must_cast(x), must_cast(y))) as u32
            }

            #[inline]
            fn first_least(_token, x: [f32; 8]) -> usize {
                let x: __m256 = must_cast(x);
                let least = _mm256_min_ps(x, _mm256_permute2f128_ps::<1>(x, x));
                let least = _mm256_min_ps(least, _mm256_permute_ps::<0b01_00_11_10>(least));
                let least = _mm256_min_ps(least, _mm256_permute_ps::<0b10_11_00_01>(least));
                let equal = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_EQ_OQ>(x, least));
                equal.trailing_zeros() as usize & 7
            }
        }
    };
}

impl Simd for Avx2 {
    const LEVEL: Level = Level::Avx2;
    const LANES: usize = 8;
    type Narrow = Self;

    #[inline(always)]
    fn narrow(self) -> Self {
        self
    }

    avx2! { ops Avx2 }
}

impl Simd for Avx512 {
    const LEVEL: Level = Level::Avx512;
    const LANES: usize = 16;
    type Narrow = Avx2;

    // The feature list of `Avx512` contains that of `Avx2`.
    #[inline(always)]
    fn narrow(self) -> Avx2 {
        Avx2(())
    }

    avx512! { ops Avx512 }
}

/// [`Simd::floats16`] with what every x86-64 CPU has.
#[target_feature(enable = "sse2")]
#[inline]
pub(super) fn floats16_sse2(bytes: [u64; 2]) -> [f32; 16] {
    let x: __m128i = must_cast(bytes);
    let [a, b] = [_mm_unpacklo_epi8(x, x), _mm_unpackhi_epi8(x, x)];
    let words = [
        _mm_unpacklo_epi16(a, a),
        _mm_unpackhi_epi16(a, a),
        _mm_unpacklo_epi16(b, b),
        _mm_unpackhi_epi16(b, b),
    ];
    // Each byte stands in the top of its word: an arithmetic shift extends the sign.
    must_cast(words.map(|w| _mm_cvtepi32_ps(_mm_srai_epi32::<24>(w))))
}

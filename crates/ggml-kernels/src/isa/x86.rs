//! The x86-64 tokens. A feature list stands once, in its callback macro; the operations stand once,
//! in `ops!`, and only the dot products differ between the tokens.

use core::arch::x86_64::*;

use ggml_blocks::F16;
use zerocopy::transmute;

use super::{EVERY_WORD, Isa, KernelOp};
use crate::level::Level;

macro_rules! avx2 {
    ($cb:ident $($rest:tt)*) => { $cb! { ["avx2" "fma" "f16c"] $($rest)* } };
}

macro_rules! avx_vnni {
    ($cb:ident $($rest:tt)*) => { $cb! { ["avx2" "fma" "f16c" "avxvnni"] $($rest)* } };
}

macro_rules! avx512_vnni {
    ($cb:ident $($rest:tt)*) => {
        $cb! { ["avx2" "fma" "f16c" "avx512f" "avx512bw" "avx512vl" "avx512vnni"] $($rest)* }
    };
}

/// Stamps the token type and its detection.
macro_rules! token {
    ([$($feature:tt)+] $(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct $name(());

        impl $name {
            pub(super) fn detect() -> Option<Self> {
                ($(is_x86_feature_detected!($feature))&&+).then_some(Self(()))
            }

            pub(super) fn assume() -> Self {
                Self(())
            }

            // Every list contains that of `Avx2`.
            pub(super) fn plain(self) -> Avx2 {
                Avx2(())
            }
        }
    };
}

avx2! { token
    /// Proof of AVX2, FMA and F16C. (FMA only because every such CPU has it; nothing is fused.)
    Avx2
}

avx_vnni! { token
    /// Proof of AVX-VNNI and of everything that [`Avx2`] proves.
    AvxVnni
}

avx512_vnni! { token
    /// Proof of AVX-512 VNNI and VL and of everything that [`Avx2`] proves.
    Avx512Vnni
}

/// The operations that all tokens do alike.
macro_rules! ops {
    ($features:tt $token:ident) => {
        // Every x86-64 CPU has it.
        #[inline(always)]
        fn prefetch(self, byte: &u8) {
            safe_arch::prefetch_t0(byte);
        }

        hop! { $features $token
            #[inline(never)]
            fn run<T: KernelOp>(token, op: T) -> T::Output {
                op.run(token)
            }

            #[inline(never)]
            fn tile<T: KernelOp>(token, op: T) -> T::Output {
                op.run(token)
            }

            #[inline]
            fn bytes(_token, x: &[u8; 32]) -> __m256i {
                transmute!(*x)
            }

            #[inline]
            fn splat_byte(_token, x: u8) -> __m256i {
                _mm256_set1_epi8(x.cast_signed())
            }

            #[inline]
            fn splat_quad(_token, x: [u8; 4]) -> __m256i {
                _mm256_set1_epi32(i32::from_le_bytes(x))
            }

            #[inline]
            fn signed(_token, x: __m256i) -> [i8; 32] {
                transmute!(x)
            }

            #[inline]
            fn twice(_token, x: &[i8; 16]) -> __m256i {
                _mm256_broadcastsi128_si256(transmute!(*x))
            }

            #[inline]
            fn nibbles(_token, x: &[u8; 16]) -> __m256i {
                let x: __m128i = transmute!(*x);
                _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16::<4>(x), x), _mm256_set1_epi8(15))
            }

            #[inline]
            fn mask(_token, bits: u32) -> __m256i {
                // Byte `i` gets the byte of its bit, then the bit alone.
                let spread = _mm256_setr_epi64x(
                    0, 0x0101_0101_0101_0101, 0x0202_0202_0202_0202, 0x0303_0303_0303_0303,
                );
                let one = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64.cast_signed());
                let bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(bits.cast_signed()), spread);
                _mm256_cmpeq_epi8(_mm256_and_si256(bytes, one), one)
            }

            #[inline]
            fn sub_bytes(_token, a: __m256i, b: __m256i) -> __m256i {
                _mm256_sub_epi8(a, b)
            }

            #[inline]
            fn with_signs(_token, x: __m256i, signs: __m256i) -> __m256i {
                _mm256_sign_epi8(x, signs)
            }

            #[inline]
            fn above(_token, x: __m256i, limit: i8) -> __m256i {
                _mm256_cmpgt_epi8(x, _mm256_set1_epi8(limit))
            }

            #[inline]
            fn and(_token, a: __m256i, b: __m256i) -> __m256i {
                _mm256_and_si256(a, b)
            }

            #[inline]
            fn or(_token, a: __m256i, b: __m256i) -> __m256i {
                _mm256_or_si256(a, b)
            }

            #[inline]
            fn shr(_token, a: __m256i, by: i32) -> __m256i {
                _mm256_srl_epi16(a, _mm_cvtsi32_si128(by))
            }

            #[inline]
            fn shl(_token, a: __m256i, by: i32) -> __m256i {
                _mm256_sll_epi16(a, _mm_cvtsi32_si128(by))
            }

            #[inline]
            fn lookup(_token, table: __m256i, index: __m256i) -> __m256i {
                _mm256_shuffle_epi8(table, index)
            }

            #[inline]
            fn no_sums(_token) -> __m256i {
                _mm256_setzero_si256()
            }

            #[inline]
            fn pairs_u8(_token, x: &[u8; 16]) -> __m256i {
                _mm256_cvtepu8_epi16(transmute!(*x))
            }

            #[inline]
            fn pairs_i8(_token, x: &[u8; 16]) -> __m256i {
                _mm256_cvtepi8_epi16(transmute!(*x))
            }

            #[inline]
            fn pairs_nibble(_token, x: &[u8; 16], high: bool) -> __m256i {
                let pairs = _mm256_cvtepu8_epi16(transmute!(*x));
                if high { _mm256_srli_epi16::<4>(pairs) } else { _mm256_and_si256(pairs, _mm256_set1_epi16(15)) }
            }

            #[inline]
            fn twin(_token, pairs: __m256i, second: bool) -> __m256i {
                if second {
                    _mm256_blend_epi16::<0xAA>(_mm256_srli_epi32::<16>(pairs), pairs)
                } else {
                    _mm256_blend_epi16::<0xAA>(pairs, _mm256_slli_epi32::<16>(pairs))
                }
            }

            #[inline]
            fn words(_token, levels: __m256i, offset: i32, scale: __m256i) -> [__m256i; 2] {
                let offset = _mm256_set1_epi16(offset as i16);
                let even = _mm256_and_si256(levels, _mm256_set1_epi16(0xFF));
                let odd = _mm256_srli_epi16::<8>(levels);
                [
                    _mm256_mullo_epi16(_mm256_sub_epi16(even, offset), scale),
                    _mm256_mullo_epi16(_mm256_sub_epi16(odd, offset), scale),
                ]
            }

            #[inline]
            fn transpose(_token, x: [__m256i; 8]) -> [__m256i; 8] {
                // Pairs of rows, then fours: each half of a vector is one of the eight columns.
                let (a, b) = (_mm256_unpacklo_epi32(x[0], x[1]), _mm256_unpackhi_epi32(x[0], x[1]));
                let (c, d) = (_mm256_unpacklo_epi32(x[2], x[3]), _mm256_unpackhi_epi32(x[2], x[3]));
                let (e, f) = (_mm256_unpacklo_epi32(x[4], x[5]), _mm256_unpackhi_epi32(x[4], x[5]));
                let (g, h) = (_mm256_unpacklo_epi32(x[6], x[7]), _mm256_unpackhi_epi32(x[6], x[7]));
                let low = [
                    _mm256_unpacklo_epi64(a, c), _mm256_unpackhi_epi64(a, c),
                    _mm256_unpacklo_epi64(b, d), _mm256_unpackhi_epi64(b, d),
                ];
                let high = [
                    _mm256_unpacklo_epi64(e, g), _mm256_unpackhi_epi64(e, g),
                    _mm256_unpacklo_epi64(f, h), _mm256_unpackhi_epi64(f, h),
                ];
                let mut out = x;
                for i in 0..4 {
                    out[i] = _mm256_permute2x128_si256::<0x20>(low[i], high[i]);
                    out[i + 4] = _mm256_permute2x128_si256::<0x31>(low[i], high[i]);
                }
                out
            }

            #[inline]
            fn int_bytes(_token, x: __m256i) -> [u8; 32] {
                transmute!(x)
            }

            #[inline]
            fn lane_scale(_token, pairs: __m256i, second: bool) -> __m256i {
                let pairs = if second { pairs } else { _mm256_slli_epi32::<16>(pairs) };
                _mm256_srai_epi32::<16>(pairs)
            }

            #[inline]
            fn mul_add_i32(_token, total: __m256i, a: __m256i, b: __m256i) -> __m256i {
                _mm256_add_epi32(total, _mm256_mullo_epi32(a, b))
            }

            #[inline]
            fn splat_i32(_token, x: i32) -> __m256i {
                _mm256_set1_epi32(x)
            }

            #[inline]
            fn ints(_token, x: &[u8; 32]) -> __m256i {
                transmute!(*x)
            }

            // |w| · (a with the sign of w): exact, as no activation is -128.
            // A sum of two products is at most 2 · 128 · 127.
            #[inline]
            fn products(_token, levels: __m256i, a: &[i8; 32]) -> __m256i {
                _mm256_maddubs_epi16(_mm256_abs_epi8(levels), _mm256_sign_epi8(transmute!(*a), levels))
            }

            #[inline]
            fn signed_products(_token, magnitudes: __m256i, signs: __m256i, a: &[i8; 32]) -> __m256i {
                _mm256_maddubs_epi16(magnitudes, _mm256_sign_epi8(transmute!(*a), signs))
            }

            #[inline]
            fn raised_products(_token, levels: __m256i, a: &[i8; 32]) -> __m256i {
                _mm256_maddubs_epi16(levels, transmute!(*a))
            }

            #[inline]
            fn half_scales(_token, scales: &[i8; 16]) -> __m256i {
                let apart = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
                _mm256_cvtepi8_epi16(_mm_shuffle_epi8(transmute!(*scales), apart))
            }

            #[inline]
            fn scales_of(_token, scales: __m256i, s: usize) -> __m256i {
                _mm256_shuffle_epi8(scales, transmute!(EVERY_WORD[s % 8]))
            }

            #[inline]
            fn totals(token, x: &[__m256i; 8]) -> __m256i {
                let [first, second] = token.half_totals(x);
                _mm256_add_epi32(first, second)
            }

            // Pairs, then fours within each half.
            #[inline]
            fn half_totals(_token, x: &[__m256i; 8]) -> [__m256i; 2] {
                let low = _mm256_hadd_epi32(_mm256_hadd_epi32(x[0], x[1]), _mm256_hadd_epi32(x[2], x[3]));
                let high = _mm256_hadd_epi32(_mm256_hadd_epi32(x[4], x[5]), _mm256_hadd_epi32(x[6], x[7]));
                [
                    _mm256_permute2x128_si256::<0x20>(low, high),
                    _mm256_permute2x128_si256::<0x31>(low, high),
                ]
            }

            #[inline]
            fn to_f32(_token, x: __m256i) -> __m256 {
                _mm256_cvtepi32_ps(x)
            }

            #[inline]
            fn floats(_token, x: &[f32; 8]) -> __m256 {
                transmute!(*x)
            }

            #[inline]
            fn array(_token, x: __m256) -> [f32; 8] {
                transmute!(x)
            }

            #[inline]
            fn splat(_token, x: f32) -> __m256 {
                _mm256_set1_ps(x)
            }

            #[inline]
            fn add(_token, a: __m256, b: __m256) -> __m256 {
                _mm256_add_ps(a, b)
            }

            #[inline]
            fn sub(_token, a: __m256, b: __m256) -> __m256 {
                _mm256_sub_ps(a, b)
            }

            #[inline]
            fn mul(_token, a: __m256, b: __m256) -> __m256 {
                _mm256_mul_ps(a, b)
            }

            #[inline]
            fn half(_token, x: F16) -> f32 {
                _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(i32::from(x.to_bits()))))
            }

            #[inline]
            fn widen(_token, x: &[u8; 16]) -> __m256 {
                _mm256_cvtph_ps(transmute!(*x))
            }

            #[inline]
            fn widen_bf16(_token, x: &[u8; 16]) -> __m256 {
                let wide = _mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(transmute!(*x)));
                _mm256_castsi256_ps(wide)
            }
        }
    };
}

impl Isa for Avx2 {
    const LEVEL: Level = Level::Avx2;
    const COLS: usize = 2;
    const ROWS: usize = 4;
    const WORDS: bool = true;
    const WIDE_BYTES: usize = 8;
    type B = __m256i;
    type I = __m256i;
    /// Sixteen i16, two per lane.
    type S = __m256i;
    type F = __m256;
    /// The first and third of each four levels, and the second and fourth.
    type L = [__m256i; 2];
    type Q = [__m256i; 2];

    /// A word takes two products of each dot.
    #[inline(always)]
    fn room(max: u32) -> usize {
        (i16::MAX as u32 / (max * 2 * 127)) as usize
    }

    avx2! { ops Avx2 }
    avx2! { hop Avx2
        #[inline]
        fn dot(_token, sums: __m256i, levels: __m256i, quad: __m256i) -> __m256i {
            _mm256_add_epi16(sums, _mm256_maddubs_epi16(levels, quad))
        }

        #[inline]
        fn fold(_token, total: __m256i, sums: __m256i) -> __m256i {
            _mm256_add_epi32(total, _mm256_madd_epi16(sums, _mm256_set1_epi16(1)))
        }

        #[inline]
        fn fold_scaled(_token, total: __m256i, sums: __m256i, scale: __m256i) -> __m256i {
            _mm256_add_epi32(total, _mm256_madd_epi16(sums, scale))
        }

        // The scale in both words of a lane: the sums stand in both.
        #[inline]
        fn sub_scale(token, pairs: __m256i, second: bool) -> __m256i {
            token.twin(pairs, second)
        }

        #[inline]
        fn wide(_token, levels: __m256i) -> [__m256i; 2] {
            [_mm256_and_si256(levels, _mm256_set1_epi16(0xFF)), _mm256_srli_epi16::<8>(levels)]
        }

        #[inline]
        fn wide_quad(_token, x: &[u8]) -> [__m256i; 2] {
            let [a, b, c, d, e, f, g, h] = *x.first_chunk().unwrap_or(&[0; 8]);
            [
                _mm256_set1_epi32(i32::from_le_bytes([a, b, c, d])),
                _mm256_set1_epi32(i32::from_le_bytes([e, f, g, h])),
            ]
        }

        #[inline]
        fn dot_wide(_token, total: __m256i, levels: [__m256i; 2], quad: [__m256i; 2]) -> __m256i {
            let total = _mm256_add_epi32(total, _mm256_madd_epi16(levels[0], quad[0]));
            _mm256_add_epi32(total, _mm256_madd_epi16(levels[1], quad[1]))
        }

        #[inline]
        fn dot_pairs(_token, total: __m256i, a: __m256i, b: __m256i) -> __m256i {
            _mm256_add_epi32(total, _mm256_madd_epi16(a, b))
        }
    }
}

/// A token with `vpdpbusd`: one instruction sums a quad of any levels, so nothing is widened.
macro_rules! vnni {
    ($features:ident $token:ident $level:ident $dot4:ident $dot2:ident) => {
        impl Isa for $token {
            const LEVEL: Level = Level::$level;
            const COLS: usize = 4;
            const ROWS: usize = 4;
            const WORDS: bool = false;
            const WIDE_BYTES: usize = 4;
            type B = __m256i;
            type I = __m256i;
            type S = __m256i;
            type F = __m256;
            type L = __m256i;
            type Q = __m256i;

            #[inline(always)]
            fn room(_: u32) -> usize {
                usize::MAX
            }

            $features! { ops $token }
            $features! { hop $token
                #[inline]
                fn dot(_token, sums: __m256i, levels: __m256i, quad: __m256i) -> __m256i {
                    $dot4(sums, levels, quad)
                }

                #[inline]
                fn fold(_token, total: __m256i, sums: __m256i) -> __m256i {
                    _mm256_add_epi32(total, sums)
                }

                #[inline]
                fn fold_scaled(_token, total: __m256i, sums: __m256i, scale: __m256i) -> __m256i {
                    _mm256_add_epi32(total, _mm256_mullo_epi32(sums, scale))
                }

                #[inline]
                fn sub_scale(token, pairs: __m256i, second: bool) -> __m256i {
                    token.lane_scale(pairs, second)
                }

                #[inline]
                fn wide(_token, levels: __m256i) -> __m256i {
                    levels
                }

                #[inline]
                fn wide_quad(_token, x: &[u8]) -> __m256i {
                    _mm256_set1_epi32(x.first_chunk().map_or(0, |q| i32::from_le_bytes(*q)))
                }

                #[inline]
                fn dot_wide(_token, total: __m256i, levels: __m256i, quad: __m256i) -> __m256i {
                    $dot4(total, levels, quad)
                }

                #[inline]
                fn dot_pairs(_token, total: __m256i, a: __m256i, b: __m256i) -> __m256i {
                    $dot2(total, a, b)
                }
            }
        }
    };
}

vnni! { avx_vnni AvxVnni AvxVnni _mm256_dpbusd_avx_epi32 _mm256_dpwssd_avx_epi32 }
vnni! { avx512_vnni Avx512Vnni Avx512Vnni _mm256_dpbusd_epi32 _mm256_dpwssd_epi32 }

//! The aarch64 tokens. NEON is part of the baseline; `sdot`, `usdot` and `usmmla` are not, and their
//! intrinsics are not stable, so each is one line of assembly.
//!
//! A vector of 32 bytes is two registers. Where there is no product of unsigned with signed bytes, levels
//! that need eight bits are moved down by 128, and the products of 128 with the activations are put back.

use core::arch::aarch64::*;
use core::arch::asm;

use zerocopy::transmute;

use super::{EVERY_WORD, Isa, KernelOp};
use crate::level::Level;

mod lanes;
use lanes::{
    across, apart, four_totals, lower, neighbours, pair_products, quads, shift, transposed, twin, upper, word,
};

macro_rules! neon {
    ($cb:ident $($rest:tt)*) => { $cb! { ["neon"] $($rest)* } };
}

macro_rules! dotprod {
    ($cb:ident $($rest:tt)*) => { $cb! { ["neon" "dotprod"] $($rest)* } };
}

macro_rules! i8mm {
    ($cb:ident $($rest:tt)*) => { $cb! { ["neon" "i8mm"] $($rest)* } };
}

/// Stamps the token type and its detection.
macro_rules! token {
    ([$($feature:tt)+] $(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct $name(());

        impl $name {
            pub(super) fn detect() -> Option<Self> {
                ($(std::arch::is_aarch64_feature_detected!($feature))&&+).then_some(Self(()))
            }

            pub(super) fn assume() -> Self {
                Self(())
            }

            // Every list contains that of `Neon`.
            pub(super) fn plain(self) -> Neon {
                Neon(())
            }
        }
    };
}

neon! { token
    /// Proof of NEON, which every aarch64 CPU has.
    Neon
}

dotprod! { token
    /// Proof of NEON with dot products.
    Dotprod
}

i8mm! { token
    /// Proof of NEON with products of unsigned and signed bytes, of lanes and of matrices.
    I8mm
}

type Bytes = [uint8x16_t; 2];
type Ints = [int32x4_t; 2];
type Floats = [float32x4_t; 2];

/// `dot_wide` where bytes are multiplied as signed: `(level - 128) · a + 2 · 64 · Σ a`.
macro_rules! moved_down {
    ($features:tt $token:ident) => {
        hop! { $features $token
            #[inline]
            fn dot_wide(token, total: Ints, levels: Bytes, quad: Bytes) -> Ints {
                let high = token.splat_byte(128);
                let sums = token.dot(token.no_sums(), token.splat_byte(64), quad);
                let total = token.fold(token.fold(total, sums), sums);
                token.dot(total, both!(veorq_u8 levels, high), quad)
            }
        }
    };
}

/// The same operation on both registers.
macro_rules! both {
    ($f:ident $a:expr) => {
        [$f($a[0]), $f($a[1])]
    };
    ($f:ident $a:expr, $b:expr) => {
        [$f($a[0], $b[0]), $f($a[1], $b[1])]
    };
    ($f:ident $a:expr, $b:expr, $c:expr) => {
        [$f($a[0], $b[0], $c[0]), $f($a[1], $b[1], $c[1])]
    };
}

/// What all tokens do alike.
macro_rules! ops {
    ($features:tt $token:ident) => {
        const COLS: usize = 1;
        const ROWS: usize = 4;
        const WORDS: bool = false;
        const WIDE_BYTES: usize = 4;
        type B = Bytes;
        type I = Ints;
        type S = Ints;
        type F = Floats;
        type L = Bytes;
        type Q = Bytes;

        #[inline(always)]
        fn room(max: u32) -> usize {
            if Self::MATRIX || max <= 127 { usize::MAX } else { 0 }
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
            fn bytes(_token, x: &[u8; 32]) -> Bytes {
                transmute!(*x)
            }

            #[inline]
            fn splat_byte(_token, x: u8) -> Bytes {
                [vdupq_n_u8(x), vdupq_n_u8(x)]
            }

            #[inline]
            fn splat_quad(_token, x: [u8; 4]) -> Bytes {
                let quad = vreinterpretq_u8_u32(vdupq_n_u32(u32::from_le_bytes(x)));
                [quad, quad]
            }

            #[inline]
            fn signed(_token, x: Bytes) -> [i8; 32] {
                transmute!(x)
            }

            #[inline]
            fn twice(_token, x: &[i8; 16]) -> Bytes {
                let x: uint8x16_t = transmute!(*x);
                [x, x]
            }

            #[inline]
            fn nibbles(_token, x: &[u8; 16]) -> Bytes {
                let x: uint8x16_t = transmute!(*x);
                [vandq_u8(x, vdupq_n_u8(15)), vshrq_n_u8::<4>(x)]
            }

            #[inline]
            fn mask(token, bits: u32) -> Bytes {
                token.bytes(&super::Portable.mask(bits))
            }

            #[inline]
            fn sub_bytes(_token, a: Bytes, b: Bytes) -> Bytes {
                both!(vsubq_u8 a, b)
            }

            #[inline]
            fn with_signs(_token, x: Bytes, signs: Bytes) -> Bytes {
                both!(vmulq_u8 x, signs)
            }

            #[inline]
            fn above(_token, x: Bytes, limit: i8) -> Bytes {
                let limit = vdupq_n_s8(limit);
                [vcgtq_s8(vreinterpretq_s8_u8(x[0]), limit), vcgtq_s8(vreinterpretq_s8_u8(x[1]), limit)]
            }

            #[inline]
            fn and(_token, a: Bytes, b: Bytes) -> Bytes {
                both!(vandq_u8 a, b)
            }

            #[inline]
            fn or(_token, a: Bytes, b: Bytes) -> Bytes {
                both!(vorrq_u8 a, b)
            }

            #[inline]
            fn shr(_token, a: Bytes, by: i32) -> Bytes {
                [shift(a[0], -by), shift(a[1], -by)]
            }

            #[inline]
            fn shl(_token, a: Bytes, by: i32) -> Bytes {
                [shift(a[0], by), shift(a[1], by)]
            }

            #[inline]
            fn lookup(_token, table: Bytes, index: Bytes) -> Bytes {
                both!(vqtbl1q_u8 table, index)
            }

            #[inline]
            fn no_sums(_token) -> Ints {
                [vdupq_n_s32(0), vdupq_n_s32(0)]
            }

            #[inline]
            fn fold(_token, total: Ints, sums: Ints) -> Ints {
                both!(vaddq_s32 total, sums)
            }

            #[inline]
            fn fold_scaled(_token, total: Ints, sums: Ints, scale: Ints) -> Ints {
                both!(vmlaq_s32 total, sums, scale)
            }

            #[inline]
            fn sub_scale(token, pairs: Ints, second: bool) -> Ints {
                token.lane_scale(pairs, second)
            }

            #[inline]
            fn wide(_token, levels: Bytes) -> Bytes {
                levels
            }

            #[inline]
            fn wide_quad(token, x: &[u8]) -> Bytes {
                token.splat_quad(*x.first_chunk().unwrap_or(&[0; 4]))
            }

            #[inline]
            fn pairs_u8(_token, x: &[u8; 16]) -> Ints {
                let x: uint8x16_t = transmute!(*x);
                [vreinterpretq_s32_u16(vmovl_u8(vget_low_u8(x))), vreinterpretq_s32_u16(vmovl_high_u8(x))]
            }

            #[inline]
            fn pairs_i8(_token, x: &[u8; 16]) -> Ints {
                let x: int8x16_t = transmute!(*x);
                [vreinterpretq_s32_s16(vmovl_s8(vget_low_s8(x))), vreinterpretq_s32_s16(vmovl_high_s8(x))]
            }

            #[inline]
            fn pairs_nibble(token, x: &[u8; 16], high: bool) -> Ints {
                let bytes: uint8x16_t = transmute!(*x);
                let nibbles = if high { vshrq_n_u8::<4>(bytes) } else { vandq_u8(bytes, vdupq_n_u8(15)) };
                token.pairs_u8(&transmute!(nibbles))
            }

            #[inline]
            fn twin(token, pairs: Ints, second: bool) -> Ints {
                both!(twin token.lane_scale(pairs, second))
            }

            #[inline]
            fn words(_token, levels: Bytes, offset: i32, scale: Ints) -> [Ints; 2] {
                [
                    [word(levels[0], false, offset, scale[0]), word(levels[1], false, offset, scale[1])],
                    [word(levels[0], true, offset, scale[0]), word(levels[1], true, offset, scale[1])],
                ]
            }

            #[inline]
            fn transpose(_token, x: [Bytes; 8]) -> [Bytes; 8] {
                transposed(x)
            }

            #[inline]
            fn int_bytes(_token, x: Ints) -> [u8; 32] {
                transmute!(x)
            }

            #[inline]
            fn dot_pairs(_token, total: Ints, a: Ints, b: Ints) -> Ints {
                both!(pair_products total, a, b)
            }

            #[inline]
            fn lane_scale(_token, pairs: Ints, second: bool) -> Ints {
                if second { both!(upper pairs) } else { both!(lower pairs) }
            }

            #[inline]
            fn mul_add_i32(_token, total: Ints, a: Ints, b: Ints) -> Ints {
                both!(vmlaq_s32 total, a, b)
            }

            #[inline]
            fn splat_i32(_token, x: i32) -> Ints {
                [vdupq_n_s32(x), vdupq_n_s32(x)]
            }

            #[inline]
            fn ints(_token, x: &[u8; 32]) -> Ints {
                transmute!(*x)
            }

            #[inline]
            fn products(_token, levels: Bytes, a: &[i8; 32]) -> Ints {
                let a: Bytes = transmute!(*a);
                both!(neighbours levels, a)
            }

            #[inline]
            fn half_scales(_token, scales: &[i8; 16]) -> Ints {
                apart(transmute!(*scales))
            }

            #[inline]
            fn scales_of(_token, scales: Ints, s: usize) -> Ints {
                let [index, _]: Bytes = transmute!(EVERY_WORD[s % 8]);
                let word = |x: int32x4_t| vreinterpretq_s32_u8(vqtbl1q_u8(vreinterpretq_u8_s32(x), index));
                [word(scales[0]), word(scales[1])]
            }

            #[inline]
            fn totals(token, x: &[Ints; 8]) -> Ints {
                let [first, second] = token.half_totals(x);
                both!(vaddq_s32 first, second)
            }

            #[inline]
            fn half_totals(_token, x: &[Ints; 8]) -> [Ints; 2] {
                let (a, b) = (&x[..4], &x[4..]);
                [[four_totals(a, 0), four_totals(b, 0)], [four_totals(a, 1), four_totals(b, 1)]]
            }

            #[inline]
            fn to_f32(_token, x: Ints) -> Floats {
                both!(vcvtq_f32_s32 x)
            }

            #[inline]
            fn floats(_token, x: &[f32; 8]) -> Floats {
                transmute!(*x)
            }

            #[inline]
            fn array(_token, x: Floats) -> [f32; 8] {
                transmute!(x)
            }

            #[inline]
            fn splat(_token, x: f32) -> Floats {
                [vdupq_n_f32(x), vdupq_n_f32(x)]
            }

            #[inline]
            fn add(_token, a: Floats, b: Floats) -> Floats {
                both!(vaddq_f32 a, b)
            }

            #[inline]
            fn sub(_token, a: Floats, b: Floats) -> Floats {
                both!(vsubq_f32 a, b)
            }

            #[inline]
            fn mul(_token, a: Floats, b: Floats) -> Floats {
                both!(vmulq_f32 a, b)
            }

            #[inline]
            fn widen(_token, x: &[u8; 16]) -> Floats {
                let x = vreinterpretq_f16_u16(transmute!(*x));
                [vcvt_f32_f16(vget_low_f16(x)), vcvt_high_f32_f16(x)]
            }

            #[inline]
            fn widen_bf16(_token, x: &[u8; 16]) -> Floats {
                let x: uint16x8_t = transmute!(*x);
                let (low, high) = (vshll_n_u16::<16>(vget_low_u16(x)), vshll_high_n_u16::<16>(x));
                [vreinterpretq_f32_u32(low), vreinterpretq_f32_u32(high)]
            }
        }
    };
}

impl Isa for Neon {
    const LEVEL: Level = Level::Neon;

    neon! { hop Neon
        #[inline]
        fn dot(_token, sums: Ints, levels: Bytes, quad: Bytes) -> Ints {
            both!(quads sums, levels, quad)
        }
    }

    neon! { moved_down Neon }
    neon! { ops Neon }
}

impl Isa for Dotprod {
    const LEVEL: Level = Level::Dotprod;

    dotprod! { hop Dotprod
        #[inline]
        fn dot(token, sums: Ints, levels: Bytes, quad: Bytes) -> Ints {
            [sdot(token, sums[0], levels[0], quad[0]), sdot(token, sums[1], levels[1], quad[1])]
        }
    }

    dotprod! { moved_down Dotprod }
    dotprod! { ops Dotprod }
}

impl Isa for I8mm {
    const LEVEL: Level = Level::I8mm;
    const MATRIX: bool = true;

    i8mm! { hop I8mm
        #[inline]
        fn dot(token, sums: Ints, levels: Bytes, quad: Bytes) -> Ints {
            [usdot(token, sums[0], levels[0], quad[0]), usdot(token, sums[1], levels[1], quad[1])]
        }

        #[inline]
        fn dot_wide(token, total: Ints, levels: Bytes, quad: Bytes) -> Ints {
            token.dot(total, levels, quad)
        }

        // Columns 0 and 1, 2 and 3, and so on: eight levels of each.
        #[inline]
        fn join(_token, quads: [Bytes; 2]) -> [Bytes; 2] {
            let [a, b] = quads;
            [across(a[0], b[0]), across(a[1], b[1])]
        }

        #[inline]
        fn dot_matrix(token, sums: [Ints; 2], levels: [Bytes; 2], quads: [[[u8; 4]; 2]; 2]) -> [Ints; 2] {
            let [a, b]: [uint8x8_t; 2] = transmute!(quads);
            let [rows, _] = across(vcombine_u8(a, a), vcombine_u8(b, b));
            let mut sums = sums;
            for i in 0..2 {
                sums[i] = [usmmla(token, sums[i][0], levels[i][0], rows), usmmla(token, sums[i][1], levels[i][1], rows)];
            }
            sums
        }

        // A register has two columns of both rows.
        #[inline]
        fn rows(_token, sums: [Ints; 2]) -> [Ints; 2] {
            let [a, b] = sums;
            [
                [vuzp1q_s32(a[0], a[1]), vuzp1q_s32(b[0], b[1])],
                [vuzp2q_s32(a[0], a[1]), vuzp2q_s32(b[0], b[1])],
            ]
        }
    }

    i8mm! { ops I8mm }
}

/// Stamps an instruction that adds sums of products to the lanes of its first operand.
macro_rules! products {
    ($(#[$doc:meta])* $name:ident, $token:ident, $extension:literal) => {
        $(#[$doc])*
        #[inline(always)]
        #[expect(unsafe_code, reason = "the intrinsic is not stable")]
        fn $name(_: $token, mut sums: int32x4_t, a: uint8x16_t, b: uint8x16_t) -> int32x4_t {
            // SAFETY: the token proves that the CPU has the instruction, which touches these registers only.
            unsafe {
                asm!(
                    concat!(".arch_extension ", $extension),
                    concat!(stringify!($name), " {0:v}.4s, {1:v}.16b, {2:v}.16b"),
                    inout(vreg) sums, in(vreg) a, in(vreg) b,
                    options(pure, nomem, nostack, preserves_flags)
                );
            }
            sums
        }
    };
}

products! {
    /// In each lane four products of signed bytes.
    sdot, Dotprod, "dotprod"
}

products! {
    /// In each lane four products of unsigned bytes with signed ones.
    usdot, I8mm, "i8mm"
}

products! {
    /// Lane `2i + j`: the eight unsigned bytes of half `i` of `a` times the eight signed ones of half `j` of `b`.
    usmmla, I8mm, "i8mm"
}

//! The aarch64 tokens. NEON is part of the baseline, so its operations need no hop; `sdot` is not, and
//! its intrinsic is not stable, so it is one line of assembly in a hop of its own.
//!
//! A vector of 32 bytes is two registers. Bytes are multiplied as signed: levels that need eight bits
//! are moved down by 128, and the products of 128 with the activations are put back.

use core::arch::aarch64::*;
use core::arch::asm;

use zerocopy::transmute;

use super::{Isa, KernelOp};
use crate::level::Level;

/// Proof of NEON, which every aarch64 CPU has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Neon(());

/// Proof of NEON with dot products.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dotprod(());

impl Neon {
    pub(super) fn detect() -> Option<Self> {
        Some(Self(()))
    }

    pub(super) fn assume() -> Self {
        Self(())
    }

    pub(super) fn plain(self) -> Self {
        self
    }
}

impl Dotprod {
    pub(super) fn detect() -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("dotprod").then_some(Self(()))
    }

    pub(super) fn assume() -> Self {
        Self(())
    }

    pub(super) fn plain(self) -> Neon {
        Neon(())
    }
}

type Bytes = [uint8x16_t; 2];
type Ints = [int32x4_t; 2];
type Floats = [float32x4_t; 2];

/// Both registers of a pair, by the same operation.
macro_rules! both {
    ($f:ident $($a:expr),+) => { [0, 1].map(#[inline(always)] |h: usize| $f($($a[h]),+)) };
}

/// What both tokens do alike.
macro_rules! ops {
    () => {
        const COLS: usize = 1;
        const ROWS: usize = 4;
        const WIDE_BYTES: usize = 4;
        type B = Bytes;
        type I = Ints;
        type S = Ints;
        type F = Floats;
        type L = Bytes;
        type Q = Bytes;

        #[inline(always)]
        fn room(max: u32) -> usize {
            if max > 127 { 0 } else { usize::MAX }
        }

        #[inline(always)]
        fn bytes(self, x: &[u8; 32]) -> Bytes {
            transmute!(*x)
        }

        #[inline(always)]
        fn splat_byte(self, x: u8) -> Bytes {
            [vdupq_n_u8(x); 2]
        }

        #[inline(always)]
        fn splat_quad(self, x: [u8; 4]) -> Bytes {
            [vreinterpretq_u8_u32(vdupq_n_u32(u32::from_le_bytes(x))); 2]
        }

        #[inline(always)]
        fn and(self, a: Bytes, b: Bytes) -> Bytes {
            both!(vandq_u8 a, b)
        }

        #[inline(always)]
        fn or(self, a: Bytes, b: Bytes) -> Bytes {
            both!(vorrq_u8 a, b)
        }

        #[inline(always)]
        fn shr(self, a: Bytes, by: i32) -> Bytes {
            shift(a, -by)
        }

        #[inline(always)]
        fn shl(self, a: Bytes, by: i32) -> Bytes {
            shift(a, by)
        }

        #[inline(always)]
        fn lookup(self, table: Bytes, index: Bytes) -> Bytes {
            both!(vqtbl1q_u8 table, index)
        }

        #[inline(always)]
        fn no_sums(self) -> Ints {
            [vdupq_n_s32(0); 2]
        }

        #[inline(always)]
        fn fold(self, total: Ints, sums: Ints) -> Ints {
            both!(vaddq_s32 total, sums)
        }

        #[inline(always)]
        fn fold_scaled(self, total: Ints, sums: Ints, scale: Ints) -> Ints {
            both!(vmlaq_s32 total, sums, scale)
        }

        #[inline(always)]
        fn sub_scale(self, pairs: Ints, second: bool) -> Ints {
            self.lane_scale(pairs, second)
        }

        #[inline(always)]
        fn wide(self, levels: Bytes) -> Bytes {
            levels
        }

        #[inline(always)]
        fn wide_quad(self, x: &[u8]) -> Bytes {
            self.splat_quad(*x.first_chunk().unwrap_or(&[0; 4]))
        }

        // (level - 128) · a + 128 · Σ a
        #[inline(always)]
        fn dot_wide(self, total: Ints, levels: Bytes, quad: Bytes) -> Ints {
            let low = [0, 1].map(#[inline(always)] |h: usize| veorq_u8(levels[h], vdupq_n_u8(128)));
            let sums = self.dot(self.no_sums(), self.splat_byte(64), quad);
            let total = both!(vaddq_s32 total, both!(vaddq_s32 sums, sums));
            self.dot(total, low, quad)
        }

        #[inline(always)]
        fn pairs_u8(self, x: &[u8; 16]) -> Ints {
            let x: uint8x16_t = transmute!(*x);
            [
                vreinterpretq_s32_u16(vmovl_u8(vget_low_u8(x))),
                vreinterpretq_s32_u16(vmovl_high_u8(x)),
            ]
        }

        #[inline(always)]
        fn pairs_i8(self, x: &[u8; 16]) -> Ints {
            let x: int8x16_t = transmute!(*x);
            [
                vreinterpretq_s32_s16(vmovl_s8(vget_low_s8(x))),
                vreinterpretq_s32_s16(vmovl_high_s8(x)),
            ]
        }

        #[inline(always)]
        fn dot_pairs(self, total: Ints, a: Ints, b: Ints) -> Ints {
            [0, 1].map(#[inline(always)] |h: usize| {
                let (a, b) = (vreinterpretq_s16_s32(a[h]), vreinterpretq_s16_s32(b[h]));
                let low = vmull_s16(vget_low_s16(a), vget_low_s16(b));
                vaddq_s32(total[h], vpaddq_s32(low, vmull_high_s16(a, b)))
            })
        }

        #[inline(always)]
        fn lane_scale(self, pairs: Ints, second: bool) -> Ints {
            pairs.map(#[inline(always)] |p| {
                let p = if second { p } else { vshlq_n_s32::<16>(p) };
                vshrq_n_s32::<16>(p)
            })
        }

        #[inline(always)]
        fn mul_add_i32(self, total: Ints, a: Ints, b: Ints) -> Ints {
            both!(vmlaq_s32 total, a, b)
        }

        #[inline(always)]
        fn splat_i32(self, x: i32) -> Ints {
            [vdupq_n_s32(x); 2]
        }

        #[inline(always)]
        fn dot16(self, a: &[i8; 16], b: &[i8; 16]) -> Ints {
            let (a, b): (int8x16_t, int8x16_t) = (transmute!(*a), transmute!(*b));
            [
                vpaddlq_s16(vmull_s8(vget_low_s8(a), vget_low_s8(b))),
                vpaddlq_s16(vmull_high_s8(a, b)),
            ]
        }

        #[inline(always)]
        fn total(self, x: Ints) -> i32 {
            vaddvq_s32(vaddq_s32(x[0], x[1]))
        }

        #[inline(always)]
        fn to_f32(self, x: Ints) -> Floats {
            both!(vcvtq_f32_s32 x)
        }

        #[inline(always)]
        fn floats(self, x: &[f32; 8]) -> Floats {
            transmute!(*x)
        }

        #[inline(always)]
        fn array(self, x: Floats) -> [f32; 8] {
            transmute!(x)
        }

        #[inline(always)]
        fn splat(self, x: f32) -> Floats {
            [vdupq_n_f32(x); 2]
        }

        #[inline(always)]
        fn add(self, a: Floats, b: Floats) -> Floats {
            both!(vaddq_f32 a, b)
        }

        #[inline(always)]
        fn sub(self, a: Floats, b: Floats) -> Floats {
            both!(vsubq_f32 a, b)
        }

        #[inline(always)]
        fn mul(self, a: Floats, b: Floats) -> Floats {
            both!(vmulq_f32 a, b)
        }

        #[inline(always)]
        fn widen(self, x: &[u8; 16]) -> Floats {
            self.floats(&super::Portable.widen(x))
        }

        #[inline(always)]
        fn widen_bf16(self, x: &[u8; 16]) -> Floats {
            let x: uint16x8_t = transmute!(*x);
            let (low, high) = (vshll_n_u16::<16>(vget_low_u16(x)), vshll_high_n_u16::<16>(x));
            [vreinterpretq_f32_u32(low), vreinterpretq_f32_u32(high)]
        }
    };
}

/// Each 16-bit word shifted left, or right if negative.
#[inline(always)]
fn shift(a: Bytes, by: i32) -> Bytes {
    let by = vdupq_n_s16(by as i16);
    a.map(
        #[inline(always)]
        |a| vreinterpretq_u8_u16(vshlq_u16(vreinterpretq_u16_u8(a), by)),
    )
}

impl Isa for Neon {
    const LEVEL: Level = Level::Neon;

    #[inline(never)]
    fn run<T: KernelOp>(self, op: T) -> T::Output {
        op.run(self)
    }

    // Two products fit into an i16, then pairs and fours are added.
    #[inline(always)]
    fn dot(self, sums: Ints, levels: Bytes, quad: Bytes) -> Ints {
        [0, 1].map(
            #[inline(always)]
            |h: usize| {
                let (w, a) = (vreinterpretq_s8_u8(levels[h]), vreinterpretq_s8_u8(quad[h]));
                let low = vpaddlq_s16(vmull_s8(vget_low_s8(w), vget_low_s8(a)));
                let high = vpaddlq_s16(vmull_high_s8(w, a));
                vaddq_s32(sums[h], vpaddq_s32(low, high))
            },
        )
    }

    ops! {}
}

impl Isa for Dotprod {
    const LEVEL: Level = Level::Dotprod;

    #[inline(always)]
    #[expect(unsafe_code, reason = "the token proves the features")]
    fn run<T: KernelOp>(self, op: T) -> T::Output {
        #[target_feature(enable = "neon,dotprod")]
        #[inline(never)]
        fn imp<T: KernelOp>(token: Dotprod, op: T) -> T::Output {
            op.run(token)
        }
        // SAFETY: a `Dotprod` exists only where `detect` found dot products, or where the caller of
        // `Kernels::assume` vouched for them.
        unsafe { imp(self, op) }
    }

    #[inline(always)]
    fn dot(self, sums: Ints, levels: Bytes, quad: Bytes) -> Ints {
        [0, 1].map(
            #[inline(always)]
            |h: usize| sdot(self, sums[h], levels[h], quad[h]),
        )
    }

    ops! {}
}

/// `sums` plus, in each lane, four products of signed bytes.
#[inline(always)]
#[expect(unsafe_code, reason = "the intrinsic is not stable")]
fn sdot(_: Dotprod, mut sums: int32x4_t, a: uint8x16_t, b: uint8x16_t) -> int32x4_t {
    // SAFETY: the token proves that the CPU has the instruction, which touches these registers only.
    unsafe {
        asm!(
            ".arch_extension dotprod",
            "sdot {0:v}.4s, {1:v}.16b, {2:v}.16b",
            inout(vreg) sums, in(vreg) a, in(vreg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sums
}

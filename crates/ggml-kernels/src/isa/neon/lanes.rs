//! Steps on one register that several operations share. All need no more than NEON.

use core::arch::aarch64::*;

use super::{Bytes, Ints};

/// Each 16-bit word shifted left, or right if negative.
#[target_feature(enable = "neon")]
#[inline]
pub(super) fn shift(a: uint8x16_t, by: i32) -> uint8x16_t {
    vreinterpretq_u8_u16(vshlq_u16(vreinterpretq_u16_u8(a), vdupq_n_s16(by as i16)))
}

/// Rows of four 4-byte lanes become columns.
#[target_feature(enable = "neon")]
#[inline]
fn fours_across(x: [uint8x16_t; 4]) -> [uint8x16_t; 4] {
    let [a, b, c, d] = [
        vreinterpretq_u32_u8(x[0]),
        vreinterpretq_u32_u8(x[1]),
        vreinterpretq_u32_u8(x[2]),
        vreinterpretq_u32_u8(x[3]),
    ];
    let (ab, cd) = ([vtrn1q_u32(a, b), vtrn2q_u32(a, b)], [vtrn1q_u32(c, d), vtrn2q_u32(c, d)]);
    let pairs = |x: uint32x4_t| vreinterpretq_u64_u32(x);
    let bytes = |x: uint64x2_t| vreinterpretq_u8_u64(x);
    [
        bytes(vtrn1q_u64(pairs(ab[0]), pairs(cd[0]))),
        bytes(vtrn1q_u64(pairs(ab[1]), pairs(cd[1]))),
        bytes(vtrn2q_u64(pairs(ab[0]), pairs(cd[0]))),
        bytes(vtrn2q_u64(pairs(ab[1]), pairs(cd[1]))),
    ]
}

/// The 4 bytes `i` of vector `j` become the 4 bytes `j` of vector `i`.
#[target_feature(enable = "neon")]
#[inline]
pub(super) fn transposed(x: [Bytes; 8]) -> [Bytes; 8] {
    let mut out = x;
    for half in 0..2 {
        let low = fours_across([x[0][half], x[1][half], x[2][half], x[3][half]]);
        let high = fours_across([x[4][half], x[5][half], x[6][half], x[7][half]]);
        for i in 0..4 {
            out[4 * half + i] = [low[i], high[i]];
        }
    }
    out
}

/// The lower i16 of each lane, as i32.
#[target_feature(enable = "neon")]
#[inline]
pub(super) fn lower(pairs: int32x4_t) -> int32x4_t {
    vshrq_n_s32::<16>(vshlq_n_s32::<16>(pairs))
}

/// The upper i16 of each lane, as i32.
#[target_feature(enable = "neon")]
#[inline]
pub(super) fn upper(pairs: int32x4_t) -> int32x4_t {
    vshrq_n_s32::<16>(pairs)
}

/// The low half of each lane in both halves.
#[target_feature(enable = "neon")]
#[inline]
pub(super) fn twin(x: int32x4_t) -> int32x4_t {
    let x = vreinterpretq_s16_s32(x);
    vreinterpretq_s32_s16(vtrn1q_s16(x, x))
}

/// Every second byte, less an offset, times the word of `scale`.
#[target_feature(enable = "neon")]
#[inline]
pub(super) fn word(levels: uint8x16_t, odd: bool, offset: i32, scale: int32x4_t) -> int32x4_t {
    let words = vreinterpretq_u16_u8(levels);
    let words = if odd { vshrq_n_u16::<8>(words) } else { vandq_u16(words, vdupq_n_u16(255)) };
    let words = vsubq_s16(vreinterpretq_s16_u16(words), vdupq_n_s16(offset as i16));
    vreinterpretq_s32_s16(vmulq_s16(words, vreinterpretq_s16_s32(scale)))
}

/// Products of signed bytes, those of neighbours added: two fit into an i16.
#[target_feature(enable = "neon")]
#[inline]
pub(super) fn neighbours(w: uint8x16_t, a: uint8x16_t) -> int32x4_t {
    let (w, a) = (vreinterpretq_s8_u8(w), vreinterpretq_s8_u8(a));
    let low = vmull_s8(vget_low_s8(w), vget_low_s8(a));
    vreinterpretq_s32_s16(vpaddq_s16(low, vmull_high_s8(w, a)))
}

/// `sums` plus the four products of each lane.
#[target_feature(enable = "neon")]
#[inline]
pub(super) fn quads(sums: int32x4_t, w: uint8x16_t, a: uint8x16_t) -> int32x4_t {
    let (w, a) = (vreinterpretq_s8_u8(w), vreinterpretq_s8_u8(a));
    let low = vpaddlq_s16(vmull_s8(vget_low_s8(w), vget_low_s8(a)));
    vaddq_s32(sums, vpaddq_s32(low, vpaddlq_s16(vmull_high_s8(w, a))))
}

/// `total` plus the two products of each lane's pair.
#[target_feature(enable = "neon")]
#[inline]
pub(super) fn pair_products(total: int32x4_t, a: int32x4_t, b: int32x4_t) -> int32x4_t {
    let (a, b) = (vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b));
    let low = vmull_s16(vget_low_s16(a), vget_low_s16(b));
    vaddq_s32(total, vpaddq_s32(low, vmull_high_s16(a, b)))
}

/// In lane `i` the sum of register `half` of `x[i]`.
#[target_feature(enable = "neon")]
#[inline]
pub(super) fn four_totals(x: &[Ints], half: usize) -> int32x4_t {
    vpaddq_s32(vpaddq_s32(x[0][half], x[1][half]), vpaddq_s32(x[2][half], x[3][half]))
}

/// Lanes of four bytes of one register and the other by turns.
#[target_feature(enable = "neon")]
#[inline]
pub(super) fn across(a: uint8x16_t, b: uint8x16_t) -> [uint8x16_t; 2] {
    let (a, b) = (vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b));
    [vreinterpretq_u8_u32(vzip1q_u32(a, b)), vreinterpretq_u8_u32(vzip2q_u32(a, b))]
}

/// The even bytes as i16 in one register, the odd ones in the other.
#[target_feature(enable = "neon")]
#[inline]
pub(super) fn apart(x: int8x16_t) -> Ints {
    let x = vuzp1q_s8(x, vextq_s8::<1>(x, x));
    [vreinterpretq_s32_s16(vmovl_s8(vget_low_s8(x))), vreinterpretq_s32_s16(vmovl_high_s8(x))]
}

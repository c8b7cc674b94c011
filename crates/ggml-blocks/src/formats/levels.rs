//! What decoders share. Packed levels are taken apart sixteen at a time in two words, a byte each:
//! shifts and masks of words vectorise whatever the shift, those of bytes do not.

use crate::simd::Simd;

/// Sixteen bytes, the first lowest in the first word.
pub(super) type Bytes16 = [u64; 2];

/// The sixteen bytes of chunk `index`.
#[inline(always)]
pub(super) fn bytes16<const N: usize>(bytes: &[u8; N], index: usize) -> Bytes16 {
    let words = bytes.as_chunks::<8>().0;
    [u64::from_le_bytes(words[2 * index]), u64::from_le_bytes(words[2 * index + 1])]
}

/// The field of each byte that `mask` selects after a shift right; the mask must not reach bits
/// that come in from the next byte.
#[inline(always)]
pub(super) fn field(bytes: Bytes16, shift: usize, mask: u8) -> Bytes16 {
    bytes.map(|word| word >> shift & u64::from_ne_bytes([mask; 8]))
}

/// `low` with `high` placed `shift` bits up in each byte.
#[inline(always)]
pub(super) fn with_high(low: Bytes16, high: Bytes16, shift: usize) -> Bytes16 {
    [low[0] | high[0] << shift, low[1] | high[1] << shift]
}

/// Sixteen scales, each times the scale of scales `d`.
#[inline(always)]
pub(super) fn scaled<S: Simd>(simd: S, d: f32, scales: Bytes16) -> [f32; 16] {
    times(d, simd.floats16(scales))
}

/// `d` times each number. (A loop: `array::map` is not always inlined.)
#[inline(always)]
pub(super) fn times<const N: usize>(d: f32, mut x: [f32; N]) -> [f32; N] {
    for x in &mut x {
        *x *= d;
    }
    x
}

/// Puts `weight(level)` of each level in chunk `index` of `out`.
#[inline(always)]
pub(super) fn put<S: Simd, const N: usize>(
    simd: S,
    out: &mut [f32; N],
    index: usize,
    levels: Bytes16,
    weight: impl Fn(f32) -> f32,
) {
    let levels = simd.floats16(levels);
    let out = &mut out.as_chunks_mut::<16>().0[index];
    for i in 0..16 {
        out[i] = weight(levels[i]);
    }
}

/// `product + nan`: of two NaNs the product's wins, as in ggml's compiled code. Written out because
/// the compiler may exchange the operands of an addition, and the first of two NaNs wins on x86.
#[inline(always)]
pub(super) fn plus_nan(product: f32, nan: f32) -> f32 {
    if product.is_nan() { product } else { nan }
}

/// Eight magnitudes times a scale, with the sign flipped where its bit is set.
///
/// ggml multiplies by 1 or -1, which its compiled code does by flipping the bit, of a NaN too.
#[inline(always)]
pub(super) fn signed<S: Simd>(simd: S, scale: f32, grid: u64, signs: u8) -> [f32; 8] {
    let magnitudes = simd.floats8(grid);
    core::array::from_fn(|i| {
        let sign = u32::from(signs) << (31 - i) & 0x8000_0000;
        f32::from_bits((scale * magnitudes[i]).to_bits() ^ sign)
    })
}

/// Two codebook entries of four magnitudes side by side.
#[inline(always)]
pub(super) fn join(first: u32, second: u32) -> u64 {
    u64::from(first) | u64::from(second) << 32
}

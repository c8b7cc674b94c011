//! What the codebook formats share.

/// Eight magnitudes times a scale, negated where the sign bit is set.
///
/// The sign is a factor of 1 or -1, as in ggml: flipping a bit would give another NaN.
#[inline(always)]
pub(super) fn signed(scale: f32, grid: [u8; 8], signs: u8) -> [f32; 8] {
    core::array::from_fn(|i| {
        let sign = f32::from_bits(u32::from(signs >> i & 1) << 31 | 0x3F80_0000);
        scale * f32::from(grid[i]) * sign
    })
}

/// Two codebook entries of four magnitudes side by side.
#[inline(always)]
pub(super) fn join(first: u32, second: u32) -> [u8; 8] {
    (u64::from(first) | u64::from(second) << 32).to_le_bytes()
}

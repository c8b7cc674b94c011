//! What the codebook formats share.

/// Eight magnitudes times a scale, with the sign bit flipped where its bit is set.
///
/// ggml multiplies by 1 or -1, which its compiled code does by flipping the bit, of a NaN too.
#[inline(always)]
pub(super) fn signed(scale: f32, grid: [u8; 8], signs: u8) -> [f32; 8] {
    core::array::from_fn(|i| {
        let sign = u32::from(signs >> i & 1) << 31;
        f32::from_bits((scale * f32::from(grid[i])).to_bits() ^ sign)
    })
}

/// Two codebook entries of four magnitudes side by side.
#[inline(always)]
pub(super) fn join(first: u32, second: u32) -> [u8; 8] {
    (u64::from(first) | u64::from(second) << 32).to_le_bytes()
}

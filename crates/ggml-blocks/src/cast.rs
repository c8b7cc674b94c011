//! Casts between slices of plain floats: ggml's rounding, at memory speed.
//!
//! Rounding never fails; what was finite and became infinite is reported. What to do about it is
//! the caller's choice: refuse, keep, or [`Format::clamp`](crate::Format::clamp) before rounding.

use crate::block::{Block, Encode, Rows};
use crate::error::DecodeError;
use crate::format::{decode_blocks, encode_blocks, expect};
use crate::formats::float::F64;
use crate::scan::{self, Overflow};
use crate::{Bf16, F16, cast_blocks};

/// Widens f16: exact, signalling NaNs become quiet.
///
/// # Errors
/// [`DecodeError::Length`] if the lengths differ.
pub fn f16_to_f32(src: &[F16], out: &mut [f32]) -> Result<(), DecodeError> {
    widen(src, out)
}

/// Widens bf16: exact, NaN bits included.
///
/// # Errors
/// [`DecodeError::Length`] if the lengths differ.
pub fn bf16_to_f32(src: &[Bf16], out: &mut [f32]) -> Result<(), DecodeError> {
    widen(src, out)
}

/// Rounds to f16: nearest, ties to even; every NaN becomes `0x7E00` with its sign.
///
/// # Errors
/// [`DecodeError::Length`] if the lengths differ.
pub fn f32_to_f16(src: &[f32], out: &mut [F16]) -> Result<Option<Overflow>, DecodeError> {
    round(src, out)
}

/// Rounds to bf16: nearest, ties to even; subnormals stay, a NaN becomes quiet.
///
/// # Errors
/// [`DecodeError::Length`] if the lengths differ.
pub fn f32_to_bf16(src: &[f32], out: &mut [Bf16]) -> Result<Option<Overflow>, DecodeError> {
    round(src, out)
}

/// Reads an `F64` tensor without the loss that decoding to f32 has.
///
/// # Errors
/// [`DecodeError::Length`] unless there are eight bytes for each number.
pub fn decode_f64(bytes: &[u8], out: &mut [f64]) -> Result<(), DecodeError> {
    expect("bytes", out.len().saturating_mul(8), bytes.len())?;
    for (x, out) in cast_blocks::<F64>(bytes).into_iter().flatten().zip(out) {
        *out = x.get();
    }
    Ok(())
}

fn widen<B: Block<Weights = [f32; 1]>>(src: &[B], out: &mut [f32]) -> Result<(), DecodeError> {
    expect("weights", src.len(), out.len())?;
    decode_blocks(src, bytemuck::must_cast_slice_mut(out));
    Ok(())
}

fn round<B: Encode<Weights = [f32; 1]>>(
    values: &[f32],
    out: &mut [B],
) -> Result<Option<Overflow>, DecodeError> {
    expect("elements", values.len(), out.len())?;
    let row_len = values.len().max(1);
    // Plain floats take any value: the encoders of this bound cannot fail.
    let _infallible = encode_blocks(Rows { values, row_len, importance: None }, out);
    Ok(B::LIMIT.and_then(|limit| scan::overflow(values, limit)))
}

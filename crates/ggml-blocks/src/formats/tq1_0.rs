//! `TQ1_0`: ternary, five to a byte. 1.6875 bits per weight.
//!
//! A byte is a fraction of 256 whose first five base-3 digits are the weights, plus 1 each: times
//! 3 to the n, modulo 256, then times 3, divided by 256, is digit n.
//!
//! ```text
//! byte  0  qs[48]  digit n of byte m: for m < 32 weight 32n + m, else weight 160 + 16n + m - 32
//!      48  qh[4]   digit n (0..4) of byte m: weight 240 + 4n + m
//!      52  d       f16 scale
//! ```
//!
//! Used by models trained with ternary weights, smallest.
//! Meets activations in `Q8_K`.

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::F16;
use crate::block::Block;
use crate::simd::Simd;

/// 256 ternary weights.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Tq1_0 {
    /// Five digits per byte.
    pub qs: [u8; 48],
    /// Four digits per byte.
    pub qh: [u8; 4],
    /// The scale.
    pub d: F16,
}

impl Block for Tq1_0 {
    const TYPE: GgmlType = GgmlType::TQ1_0;
    type Weights = [f32; 256];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, simd: S, out: &mut [f32; 256]) {
        let d = simd.widen(self.d);
        let mut powers = [1u8, 3, 9, 27, 81].into_iter();
        for n in 0..5 {
            let power = powers.next().unwrap_or(0);
            for m in 0..32 {
                out[32 * n + m] = digit(self.qs[m], power) * d;
            }
            for m in 0..16 {
                out[160 + 16 * n + m] = digit(self.qs[32 + m], power) * d;
            }
            if n < 4 {
                for m in 0..4 {
                    out[240 + 4 * n + m] = digit(self.qh[m], power) * d;
                }
            }
        }
    }

    fn is_finite(&self) -> bool {
        self.d.is_finite()
    }
}

/// The base-3 digit that `power` (3 to the n) brings to the front, minus 1.
#[inline(always)]
fn digit(byte: u8, power: u8) -> f32 {
    let rest = byte.wrapping_mul(power);
    (((i32::from(rest) * 3) >> 8) - 1) as f32
}

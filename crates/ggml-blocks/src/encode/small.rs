//! Encoder of `Q1_0`: signs and the mean magnitude.

use super::{EncodeLanes, batches, in_lanes};
use crate::block::{Encode, Rows};
use crate::error::EncodeError;
use crate::formats::q1_0::Q1_0;
use crate::half::F16;
use crate::lanes::Lanes;
use crate::simd::Simd;

impl EncodeLanes for Q1_0 {
    /// In lanes because of the sum, whose order is fixed.
    #[inline(always)]
    fn encode_lanes<V: Lanes>(zero: V, src: Rows<'_>, out: &mut [Self]) {
        batches(
            zero,
            src,
            out,
            #[inline(always)]
            |batch, out| {
                let mut sum = zero;
                let mut x = [sum; 32];
                for j in 0..4 {
                    batch.values(32 * j, &mut x);
                    for v in x {
                        sum = sum + v.abs();
                    }
                }
                let mean = sum / zero.splat(128.0);
                for (lane, block) in out.iter_mut().enumerate() {
                    block.d = F16::from_f32(mean.get(lane));
                    block.qs = signs(batch.block(lane));
                }
            },
        );
    }
}

impl Encode for Q1_0 {
    #[inline(always)]
    fn encode<S: Simd>(simd: S, src: Rows<'_>, out: &mut [Self]) -> Result<(), EncodeError> {
        in_lanes(simd, src, out)
    }
}

/// Bit `i` of the little-endian number: weight `i` is not negative (-0.0 is not).
#[inline(always)]
fn signs(x: &[f32; 128]) -> [u8; 16] {
    let mut bits = [0_u8; 128];
    for i in 0..128 {
        bits[i] = u8::from(x[i] >= 0.0);
    }
    let mut out = [0; 16];
    for (byte, bits) in out.iter_mut().zip(bits.as_chunks::<8>().0) {
        // The product gathers bit 0 of each byte in the top byte, the first byte's lowest.
        *byte = (u64::from_le_bytes(*bits).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8;
    }
    out
}

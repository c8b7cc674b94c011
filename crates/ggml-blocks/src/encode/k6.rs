//! Encoder of `Q6_K`.

use super::superblock::{dominant, requantize_signed};
use super::{EncodeLanes, batches, in_lanes};
use crate::block::{Encode, Rows};
use crate::error::EncodeError;
use crate::formats::q6_k::Q6K;
use crate::half::F16;
use crate::lanes::{Lanes, nearest_int};
use crate::search::{GROUP_MAX_EPS, qx};
use crate::simd::{Simd, each};

impl EncodeLanes for Q6K {
    #[inline(always)]
    fn encode_lanes<V: Lanes>(zero: V, src: Rows<'_>, out: &mut [Self]) {
        let weighted = src.importance.is_some();
        batches(
            zero,
            src,
            out,
            #[inline(always)]
            |batch, out| {
                let zero = batch.zero;
                let (mut x, mut w) = ([zero; 16], [zero; 16]);
                let (mut scales, mut iscales) = ([zero; 16], [zero; 16]);
                for j in 0..16 {
                    batch.values(16 * j, &mut x);
                    if weighted {
                        batch.importance(16 * j, &mut w);
                    } else {
                        for i in 0..16 {
                            w[i] = x[i] * x[i];
                        }
                    }
                    (scales[j], iscales[j]) = qx::<V, 16, false>(&x, &w, 32.0);
                }
                for (lane, block) in out.iter_mut().enumerate() {
                    let of = |v: &[V; 16]| core::array::from_fn(|j| v[j].get(lane));
                    finish(batch.block(lane), &of(&scales), &of(&iscales), block);
                }
            },
        );
    }
}

impl Encode for Q6K {
    /// Importance that overflows the search (sums beyond f32) is left out for the block it hits.
    #[inline(always)]
    fn encode<S: Simd>(simd: S, src: Rows<'_>, out: &mut [Self]) -> Result<(), EncodeError> {
        in_lanes(simd, src, out)
    }
}

#[inline(always)]
fn finish(x: &[f32; 256], scales: &[f32; 16], iscales: &[f32; 16], block: &mut Q6K) {
    let (max, amax) = dominant(scales);
    if amax < GROUP_MAX_EPS {
        *block = Q6K { ql: [0; 128], qh: [0; 64], scales: [0; 16], d: F16::from_bits(0) };
        return;
    }
    let iscale = -128.0 / max;
    block.d = F16::from_f32(1.0 / iscale);
    let d = block.d.to_f32();
    block.scales = each(
        *scales,
        #[inline(always)]
        |s| nearest_int(iscale * s).min(127) as i8,
    );
    let sub_scales = each(
        block.scales,
        #[inline(always)]
        |s| d * f32::from(s),
    );
    let mut levels = requantize_signed::<16, 16>(x, &sub_scales, -32, 31);
    for j in 0..16 {
        if sub_scales[j] == 0.0 {
            // ggml keeps the levels of the search, which for an all-zero sub-block are 0, not 32.
            let k = iscales[j];
            for i in 16 * j..16 * (j + 1) {
                levels[i] = if k.is_nan() { 0 } else { (nearest_int(k * x[i]).clamp(-32, 31) + 32) as u8 };
            }
        }
    }
    for c in 0..2 {
        let l = &levels[128 * c..128 * c + 128];
        for i in 0..32 {
            let (p, q, r, s) = (l[i], l[32 + i], l[64 + i], l[96 + i]);
            block.ql[64 * c + i] = (p & 15) | (r & 15) << 4;
            block.ql[64 * c + 32 + i] = (q & 15) | (s & 15) << 4;
            block.qh[32 * c + i] = (p >> 4) | (q >> 4) << 2 | (r >> 4) << 4 | (s >> 4) << 6;
        }
    }
}

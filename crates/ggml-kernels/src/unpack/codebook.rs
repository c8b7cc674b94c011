//! The formats whose levels come from codebooks, and ternary ones: their own decoders, run on a copy
//! with neutral scales, give the levels times a power of two. So no codebook is known here.

use ggml_blocks::formats::{
    iq1_m::Iq1M, iq1_s::Iq1S, iq2_s::Iq2S, iq2_xs::Iq2Xs, iq2_xxs::Iq2Xxs, iq3_s::Iq3S, iq3_xxs::Iq3Xxs,
    tq1_0::Tq1_0,
};
use ggml_blocks::simd::{Simd, SimdOp, dispatch_narrow};
use ggml_blocks::{Block, F16};

use super::{Super, SuperUnit};
use crate::isa::Isa;

const ONE: F16 = F16::from_bits(0x3C00);

/// The levels of a block whose weights are levels divided by `times`.
fn levels<B: Block<Weights = [f32; 256]>>(block: &B, times: f32, out: &mut [i8; 256]) {
    struct Op<'a, B>(&'a B, f32, &'a mut [i8; 256]);
    impl<B: Block<Weights = [f32; 256]>> SimdOp for Op<'_, B> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            let mut weights = [0.0; 256];
            self.0.decode_on(simd, &mut weights);
            let times = simd.splat(self.1);
            let (rows, out) = (weights.as_chunks::<8>().0, self.2.as_chunks_mut::<32>().0);
            for (x, out) in rows.as_chunks::<4>().0.iter().zip(out) {
                let mut q = [[0; 8]; 4];
                for i in 0..4 {
                    q[i] = simd.truncate(simd.mul(x[i], times));
                }
                *out = simd.narrow32(q);
            }
        }
    }
    dispatch_narrow(Op(block, times, out));
}

/// 1, 3, 5 to 31, from sixteen nibbles.
#[inline(always)]
fn odd(scales: &[u8; 8]) -> [i8; 16] {
    let mut out = [0; 16];
    for i in 0..16 {
        out[i] = 2 * (scales[i / 2] >> (4 * (i % 2)) & 15) as i8 + 1;
    }
    out
}

impl Super for Iq2Xxs {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, out: &mut SuperUnit) {
        let mut plain = *self;
        plain.d = ONE;
        for s in 0..8 {
            let word = self.qs[4 * s + 3].get();
            plain.qs[4 * s + 3].set(word & 0x0FFF);
            let scale = 2 * (word >> 12) as i8 + 1;
            (out.scales[2 * s], out.scales[2 * s + 1]) = (scale, scale);
        }
        levels(&plain, 8.0, &mut out.levels);
        out.d = isa.half(self.d) * 0.125;
    }
}

impl Super for Iq2Xs {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, out: &mut SuperUnit) {
        levels(&Self { d: ONE, scales: [0; 8], ..*self }, 8.0, &mut out.levels);
        out.scales = odd(&self.scales);
        out.d = isa.half(self.d) * 0.125;
    }
}

impl Super for Iq2S {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, out: &mut SuperUnit) {
        levels(&Self { d: ONE, scales: [0; 8], ..*self }, 8.0, &mut out.levels);
        out.scales = odd(&self.scales);
        out.d = isa.half(self.d) * 0.125;
    }
}

impl Super for Iq3Xxs {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, out: &mut SuperUnit) {
        let mut plain = *self;
        plain.d = ONE;
        for s in 0..8 {
            let byte = &mut plain.scales_and_signs[4 * s + 3];
            let scale = 2 * (*byte >> 4) as i8 + 1;
            *byte &= 15;
            (out.scales[2 * s], out.scales[2 * s + 1]) = (scale, scale);
        }
        levels(&plain, 4.0, &mut out.levels);
        out.d = isa.half(self.d) * 0.25;
    }
}

impl Super for Iq3S {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, out: &mut SuperUnit) {
        levels(&Self { d: ONE, scales: [0; 4], ..*self }, 1.0, &mut out.levels);
        for i in 0..16 {
            out.scales[i] = 2 * (self.scales[i / 4] >> (i / 2 % 2 * 4) & 15) as i8 + 1;
        }
        out.d = isa.half(self.d);
    }
}

impl Super for Iq1S {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, out: &mut SuperUnit) {
        let mut plain = *self;
        plain.d = ONE;
        for s in 0..8 {
            let word = self.qh[s].get();
            plain.qh[s].set(word & 0x8FFF);
            let scale = 2 * (word >> 12 & 7) as i8 + 1;
            (out.scales[2 * s], out.scales[2 * s + 1]) = (scale, scale);
        }
        levels(&plain, 8.0, &mut out.levels);
        out.d = isa.half(self.d) * 0.125;
    }
}

impl Super for Iq1M {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, out: &mut SuperUnit) {
        // The scale of scales 1.0 stands in the top nibbles: 0, 0, C, 3.
        let plain = Self { scales: [0, 0, 0, 0, 0, 0xC0, 0, 0x30], ..*self };
        levels(&plain, 8.0, &mut out.levels);
        out.scales = self.odd_scales();
        out.d = isa.half(self.d()) * 0.125;
    }
}

impl Super for Tq1_0 {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, out: &mut SuperUnit) {
        levels(&Self { d: ONE, ..*self }, 1.0, &mut out.levels);
        out.scales = [1; 16];
        out.d = isa.half(self.d);
    }
}

//! The formats of 256 weights whose levels stand in bit fields.

use ggml_blocks::formats::{
    iq4_nl::Iq4Nl, iq4_xs::Iq4Xs, q2_k::Q2K, q3_k::Q3K, q4_k::Q4K, q5_k::Q5K, q6_k::Q6K, tq2_0::Tq2_0,
};

use zerocopy::transmute;

use super::flat::look_up;
use super::{Super, SuperUnit};
use crate::isa::Isa;

/// Each of eight twice.
#[inline(always)]
fn twice<T: Copy + Default>(x: [T; 8]) -> [T; 16] {
    let mut out = [T::default(); 16];
    for i in 0..16 {
        out[i] = x[i / 2];
    }
    out
}

/// Stores levels `32i..32i + 32`, less an offset.
#[inline(always)]
fn put<I: Isa>(isa: I, out: &mut [i8; 256], i: usize, levels: I::B, offset: u8) {
    out.as_chunks_mut::<32>().0[i] = isa.signed(isa.sub_bytes(levels, isa.splat_byte(offset)));
}

/// The field of each byte from bit `from` on, moved to bit `to`, where `mask` is its place.
#[inline(always)]
fn field<I: Isa>(isa: I, bytes: &[u8; 32], from: usize, to: usize, mask: u8) -> I::B {
    let x = isa.bytes(bytes);
    let x = if from > to { isa.shr(x, (from - to) as i32) } else { isa.shl(x, (to - from) as i32) };
    isa.and(x, isa.splat_byte(mask))
}

impl Super for Q2K {
    const MINS: bool = true;

    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, out: &mut SuperUnit) {
        let qs = self.qs.as_chunks::<32>().0;
        for i in 0..8 {
            put(isa, &mut out.levels, i, field(isa, &qs[i / 4], 2 * (i % 4), 0, 3), 0);
        }
        for i in 0..16 {
            out.scales[i] = (self.scales[i] & 15) as i8;
            out.mins[i] = self.scales[i] >> 4;
        }
        (out.d, out.dmin) = (isa.half(self.d), isa.half(self.dmin));
    }
}

impl Super for Q3K {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, out: &mut SuperUnit) {
        let qs = self.qs.as_chunks::<32>().0;
        for i in 0..8 {
            let low = field(isa, &qs[i / 4], 2 * (i % 4), 0, 3);
            put(isa, &mut out.levels, i, isa.or(low, field(isa, &self.hmask, i, 2, 4)), 4);
        }
        out.scales = self.sub_scales();
        out.d = isa.half(self.d);
    }
}

impl Super for Q4K {
    const MINS: bool = true;

    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, out: &mut SuperUnit) {
        let qs = self.qs.as_chunks::<32>().0;
        for i in 0..8 {
            put(isa, &mut out.levels, i, field(isa, &qs[i / 2], 4 * (i % 2), 0, 15), 0);
        }
        let [scales, mins] = self.sub_scales();
        (out.scales, out.mins) = (transmute!(twice(scales)), twice(mins));
        (out.d, out.dmin) = (isa.half(self.d), isa.half(self.dmin));
    }
}

impl Super for Q5K {
    const MINS: bool = true;

    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, out: &mut SuperUnit) {
        let qs = self.qs.as_chunks::<32>().0;
        for i in 0..8 {
            let low = field(isa, &qs[i / 2], 4 * (i % 2), 0, 15);
            put(isa, &mut out.levels, i, isa.or(low, field(isa, &self.qh, i, 4, 16)), 0);
        }
        let [scales, mins] = self.sub_scales();
        (out.scales, out.mins) = (transmute!(twice(scales)), twice(mins));
        (out.d, out.dmin) = (isa.half(self.d), isa.half(self.dmin));
    }
}

impl Super for Q6K {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, out: &mut SuperUnit) {
        let (ql, qh) = (self.ql.as_chunks::<32>().0, self.qh.as_chunks::<32>().0);
        for i in 0..8 {
            let (half, k) = (i / 4, i % 4);
            let low = field(isa, &ql[2 * half + k % 2], k / 2 * 4, 0, 15);
            put(isa, &mut out.levels, i, isa.or(low, field(isa, &qh[half], 2 * k, 4, 0x30)), 32);
        }
        out.scales = self.scales;
        out.d = isa.half(self.d);
    }
}

impl Super for Iq4Xs {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, out: &mut SuperUnit) {
        for (qs, out) in self.qs.as_chunks().0.iter().zip(out.levels.as_chunks_mut().0) {
            *out = look_up(isa, Iq4Nl::levels(), isa.nibbles(qs));
        }
        out.scales = twice(self.sub_scales());
        out.d = isa.half(self.d);
    }
}

impl Super for Tq2_0 {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, out: &mut SuperUnit) {
        let qs = self.qs.as_chunks::<32>().0;
        for i in 0..8 {
            put(isa, &mut out.levels, i, field(isa, &qs[i / 4], 2 * (i % 4), 0, 3), 1);
        }
        out.scales = [1; 16];
        out.d = isa.half(self.d);
    }
}

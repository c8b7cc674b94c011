//! The formats of short blocks.

use ggml_blocks::formats::{
    iq4_nl::Iq4Nl, mxfp4::Mxfp4, nvfp4::Nvfp4, q1_0::Q1_0, q2_0::Q2_0, q4_0::Q4_0, q4_1::Q4_1, q5_0::Q5_0,
    q5_1::Q5_1, q8_0::Q8_0,
};

use zerocopy::transmute;

use super::{Flat, FlatUnit};
use crate::isa::Isa;

/// Levels through a table.
#[inline(always)]
pub(super) fn look_up<I: Isa>(isa: I, table: &[i8; 16], index: I::B) -> [i8; 32] {
    isa.signed(isa.lookup(isa.twice(table), index))
}

/// 0 to 7, four times each.
const FOURS: [u8; 32] = {
    let mut index = [0; 32];
    let mut i = 0;
    while i < 32 {
        index[i] = (i / 4) as u8;
        i += 1;
    }
    index
};

/// Nibbles with a fifth bit.
#[inline(always)]
fn fives<I: Isa>(isa: I, qs: &[u8; 16], qh: [u8; 4]) -> I::B {
    let high = isa.and(isa.mask(u32::from_le_bytes(qh)), isa.splat_byte(16));
    isa.or(isa.nibbles(qs), high)
}

impl Flat for Q8_0 {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, _: usize, out: &mut FlatUnit) {
        out.levels = self.qs;
        out.d = [isa.half(self.d); 2];
    }
}

impl Flat for Q4_0 {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, _: usize, out: &mut FlatUnit) {
        out.levels = isa.signed(isa.sub_bytes(isa.nibbles(&self.qs), isa.splat_byte(8)));
        out.d = [isa.half(self.d); 2];
    }
}

impl Flat for Q4_1 {
    const MIN: bool = true;

    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, _: usize, out: &mut FlatUnit) {
        out.levels = isa.signed(isa.nibbles(&self.qs));
        out.d = [isa.half(self.d); 2];
        out.m = isa.half(self.m);
    }
}

impl Flat for Q5_0 {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, _: usize, out: &mut FlatUnit) {
        out.levels = isa.signed(isa.sub_bytes(fives(isa, &self.qs, self.qh), isa.splat_byte(16)));
        out.d = [isa.half(self.d); 2];
    }
}

impl Flat for Q5_1 {
    const MIN: bool = true;

    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, _: usize, out: &mut FlatUnit) {
        out.levels = isa.signed(fives(isa, &self.qs, self.qh));
        out.d = [isa.half(self.d); 2];
        out.m = isa.half(self.m);
    }
}

impl Flat for Iq4Nl {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, _: usize, out: &mut FlatUnit) {
        out.levels = look_up(isa, Self::levels(), isa.nibbles(&self.qs));
        out.d = [isa.half(self.d); 2];
    }
}

impl Flat for Mxfp4 {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, _: usize, out: &mut FlatUnit) {
        out.levels = look_up(isa, Self::doubled_levels(), isa.nibbles(&self.qs));
        out.d = [self.half_scale(); 2];
    }
}

impl Flat for Nvfp4 {
    const HALVES: bool = true;

    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, index: usize, out: &mut FlatUnit) {
        // Eight low nibbles of each sixteen weights, then the high ones.
        let qs = &self.qs.as_chunks::<16>().0[index];
        let levels = look_up(isa, Mxfp4::doubled_levels(), isa.nibbles(qs));
        let [a, b, c, d]: [[i8; 8]; 4] = transmute!(levels);
        out.levels = transmute!([a, c, b, d]);
        out.d = self.half_scales(index);
    }
}

impl Flat for Q1_0 {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, index: usize, out: &mut FlatUnit) {
        // -1, and twice -1 less where the bit is set.
        let bits = isa.mask(u32::from_le_bytes(self.qs.as_chunks::<4>().0[index]));
        out.levels = isa.signed(isa.sub_bytes(isa.sub_bytes(isa.splat_byte(255), bits), bits));
        out.d = [isa.half(self.d); 2];
    }
}

impl Flat for Q2_0 {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, index: usize, out: &mut FlatUnit) {
        // Each byte four times, and of each the field of its place.
        let eight: i64 = transmute!(self.qs.as_chunks::<8>().0[index]);
        let bytes = isa.lookup(isa.twice(&transmute!([eight; 2])), isa.bytes(&FOURS));
        let mut levels = isa.and(bytes, isa.splat_quad([3, 0, 0, 0]));
        for i in 1..4 {
            let mut place = [0; 4];
            place[i] = 3;
            levels = isa.or(levels, isa.and(isa.shr(bytes, 2 * i as i32), isa.splat_quad(place)));
        }
        out.levels = isa.signed(isa.sub_bytes(levels, isa.splat_byte(1)));
        out.d = [isa.half(self.d); 2];
    }
}

//! The formats of short blocks.

use ggml_blocks::formats::{
    iq4_nl::Iq4Nl, mxfp4::Mxfp4, nvfp4::Nvfp4, q1_0::Q1_0, q2_0::Q2_0, q4_0::Q4_0, q4_1::Q4_1, q5_0::Q5_0,
    q5_1::Q5_1, q8_0::Q8_0,
};

use super::{Flat, FlatUnit};

/// The low nibbles, then the high ones, each through `level`. Words, because their shifts vectorise.
#[inline(always)]
fn nibbles(qs: &[u8; 16], level: impl Fn(u8) -> i8, out: &mut [i8; 32]) {
    let words = out.as_chunks_mut::<8>().0;
    for (i, qs) in qs.as_chunks::<8>().0.iter().enumerate() {
        let word = u64::from_le_bytes(*qs);
        for (half, word) in [word, word >> 4].into_iter().enumerate() {
            let bytes = (word & 0x0F0F_0F0F_0F0F_0F0F).to_le_bytes();
            words[2 * half + i] = zerocopy::transmute!(bytes);
        }
    }
    for q in out {
        *q = level(*q as u8);
    }
}

/// [`nibbles`] with a fifth bit, minus `offset`.
#[inline(always)]
fn fives(qs: &[u8; 16], qh: [u8; 4], offset: i8, out: &mut [i8; 32]) {
    nibbles(qs, |q| q as i8, out);
    let high = u32::from_le_bytes(qh);
    for j in 0..32 {
        out[j] += (high >> j & 1) as i8 * 16 - offset;
    }
}

impl Flat for Q8_0 {
    #[inline(always)]
    fn unit(&self, _: usize, out: &mut FlatUnit) {
        out.levels = self.qs;
        out.d = [self.d.to_f32(); 2];
    }
}

impl Flat for Q4_0 {
    #[inline(always)]
    fn unit(&self, _: usize, out: &mut FlatUnit) {
        nibbles(&self.qs, |q| q as i8 - 8, &mut out.levels);
        out.d = [self.d.to_f32(); 2];
    }
}

impl Flat for Q4_1 {
    const MIN: bool = true;

    #[inline(always)]
    fn unit(&self, _: usize, out: &mut FlatUnit) {
        nibbles(&self.qs, |q| q as i8, &mut out.levels);
        out.d = [self.d.to_f32(); 2];
        out.m = self.m.to_f32();
    }
}

impl Flat for Q5_0 {
    #[inline(always)]
    fn unit(&self, _: usize, out: &mut FlatUnit) {
        fives(&self.qs, self.qh, 16, &mut out.levels);
        out.d = [self.d.to_f32(); 2];
    }
}

impl Flat for Q5_1 {
    const MIN: bool = true;

    #[inline(always)]
    fn unit(&self, _: usize, out: &mut FlatUnit) {
        fives(&self.qs, self.qh, 0, &mut out.levels);
        out.d = [self.d.to_f32(); 2];
        out.m = self.m.to_f32();
    }
}

impl Flat for Iq4Nl {
    #[inline(always)]
    fn unit(&self, _: usize, out: &mut FlatUnit) {
        let table = Self::levels();
        nibbles(&self.qs, |q| table[usize::from(q)], &mut out.levels);
        out.d = [self.d.to_f32(); 2];
    }
}

impl Flat for Mxfp4 {
    #[inline(always)]
    fn unit(&self, _: usize, out: &mut FlatUnit) {
        let table = Self::doubled_levels();
        nibbles(&self.qs, |q| table[usize::from(q)], &mut out.levels);
        out.d = [self.half_scale(); 2];
    }
}

impl Flat for Nvfp4 {
    const HALVES: bool = true;

    #[inline(always)]
    fn unit(&self, index: usize, out: &mut FlatUnit) {
        let (table, scales) = (Mxfp4::doubled_levels(), self.half_scales());
        for half in 0..2 {
            let s = 2 * index + half;
            for j in 0..8 {
                let q = self.qs[8 * s + j];
                out.levels[16 * half + j] = table[usize::from(q & 15)];
                out.levels[16 * half + 8 + j] = table[usize::from(q >> 4)];
            }
            out.d[half] = scales[s];
        }
    }
}

impl Flat for Q1_0 {
    #[inline(always)]
    fn unit(&self, index: usize, out: &mut FlatUnit) {
        for j in 0..32 {
            out.levels[j] = (self.qs[4 * index + j / 8] >> (j % 8) & 1) as i8 * 2 - 1;
        }
        out.d = [self.d.to_f32(); 2];
    }
}

impl Flat for Q2_0 {
    #[inline(always)]
    fn unit(&self, index: usize, out: &mut FlatUnit) {
        for j in 0..32 {
            out.levels[j] = (self.qs[8 * index + j / 4] >> (2 * (j % 4)) & 3) as i8 - 1;
        }
        out.d = [self.d.to_f32(); 2];
    }
}

//! The formats of 256 weights whose levels stand in bit fields.

use ggml_blocks::formats::{
    iq4_nl::Iq4Nl, iq4_xs::Iq4Xs, q2_k::Q2K, q3_k::Q3K, q4_k::Q4K, q5_k::Q5K, q6_k::Q6K, tq2_0::Tq2_0,
};

use super::{Super, SuperUnit};

/// Each of eight twice.
#[inline(always)]
fn twice<T: Copy + Default>(x: [T; 8]) -> [T; 16] {
    let mut out = [T::default(); 16];
    for i in 0..16 {
        out[i] = x[i / 2];
    }
    out
}

/// Eight bytes at a time: shifts of words vectorise, those of bytes do not.
#[inline(always)]
fn words<const N: usize>(bytes: &[u8; N], i: usize) -> u64 {
    u64::from_le_bytes(bytes.as_chunks::<8>().0[i])
}

/// Stores `word` as levels `8i..8i + 8`.
#[inline(always)]
fn put(out: &mut [i8; 256], i: usize, word: u64) {
    out.as_chunks_mut::<8>().0[i] = zerocopy::transmute!(word.to_le_bytes());
}

const ONES: u64 = 0x0101_0101_0101_0101;

/// Two-bit levels: bits `2k..2k + 2` of byte `32h + l` are weight `128h + 32k + l`, with `high` above.
#[inline(always)]
fn twos(qs: &[u8; 64], out: &mut [i8; 256], high: impl Fn(usize, usize) -> u64) {
    for h in 0..2 {
        for w in 0..4 {
            let word = words(qs, 4 * h + w);
            for k in 0..4 {
                let i = 4 * h + k;
                put(out, 4 * i + w, word >> (2 * k) & (3 * ONES) | high(i, w));
            }
        }
    }
}

/// Nibbles of groups of 64, low ones first, with `high` above.
#[inline(always)]
fn fours(qs: &[u8; 128], out: &mut [i8; 256], high: impl Fn(usize, usize) -> u64) {
    for g in 0..4 {
        for w in 0..4 {
            let word = words(qs, 4 * g + w);
            put(out, 8 * g + w, word & (15 * ONES) | high(2 * g, w));
            put(out, 8 * g + 4 + w, word >> 4 & (15 * ONES) | high(2 * g + 1, w));
        }
    }
}

/// Takes an offset off every level.
#[inline(always)]
fn lower(out: &mut [i8; 256], offset: i8) {
    for q in out {
        *q -= offset;
    }
}

impl Super for Q2K {
    const MINS: bool = true;

    #[inline(always)]
    fn unit(&self, out: &mut SuperUnit) {
        twos(&self.qs, &mut out.levels, |_, _| 0);
        for i in 0..16 {
            out.scales[i] = (self.scales[i] & 15) as i8;
            out.mins[i] = self.scales[i] >> 4;
        }
        (out.d, out.dmin) = (self.d.to_f32(), self.dmin.to_f32());
    }
}

impl Super for Q3K {
    #[inline(always)]
    fn unit(&self, out: &mut SuperUnit) {
        twos(&self.qs, &mut out.levels, |i, w| (words(&self.hmask, w) >> i & ONES) << 2);
        lower(&mut out.levels, 4);
        out.scales = self.sub_scales();
        out.d = self.d.to_f32();
    }
}

impl Super for Q4K {
    const MINS: bool = true;

    #[inline(always)]
    fn unit(&self, out: &mut SuperUnit) {
        fours(&self.qs, &mut out.levels, |_, _| 0);
        let [scales, mins] = self.sub_scales();
        (out.scales, out.mins) = (twice(scales).map(u8::cast_signed), twice(mins));
        (out.d, out.dmin) = (self.d.to_f32(), self.dmin.to_f32());
    }
}

impl Super for Q5K {
    const MINS: bool = true;

    #[inline(always)]
    fn unit(&self, out: &mut SuperUnit) {
        fours(&self.qs, &mut out.levels, |i, w| (words(&self.qh, w) >> i & ONES) << 4);
        let [scales, mins] = self.sub_scales();
        (out.scales, out.mins) = (twice(scales).map(u8::cast_signed), twice(mins));
        (out.d, out.dmin) = (self.d.to_f32(), self.dmin.to_f32());
    }
}

impl Super for Q6K {
    #[inline(always)]
    fn unit(&self, out: &mut SuperUnit) {
        for i in 0..8 {
            let (half, k) = (i / 4, i % 4);
            for w in 0..4 {
                let low = words(&self.ql, 8 * half + k % 2 * 4 + w) >> (k / 2 * 4) & (15 * ONES);
                let high = words(&self.qh, 4 * half + w) >> (2 * k) & (3 * ONES);
                put(&mut out.levels, 4 * i + w, low | high << 4);
            }
        }
        lower(&mut out.levels, 32);
        out.scales = self.scales;
        out.d = self.d.to_f32();
    }
}

impl Super for Iq4Xs {
    #[inline(always)]
    fn unit(&self, out: &mut SuperUnit) {
        let table = Iq4Nl::levels();
        for i in 0..8 {
            for l in 0..16 {
                let q = self.qs[16 * i + l];
                out.levels[32 * i + l] = table[usize::from(q & 15)];
                out.levels[32 * i + 16 + l] = table[usize::from(q >> 4)];
            }
        }
        out.scales = twice(self.sub_scales());
        out.d = self.d.to_f32();
    }
}

impl Super for Tq2_0 {
    #[inline(always)]
    fn unit(&self, out: &mut SuperUnit) {
        twos(&self.qs, &mut out.levels, |_, _| 0);
        lower(&mut out.levels, 1);
        out.scales = [1; 16];
        out.d = self.d.to_f32();
    }
}

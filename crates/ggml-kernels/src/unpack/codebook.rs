//! The formats whose levels come from codebooks, and trits that share bytes. Where a scale of sub-blocks is a
//! fraction, it is twice that here, an odd integer, and `d` takes the power of two.

use ggml_blocks::formats::{
    iq1_m::Iq1M, iq1_s::Iq1S, iq2_s::Iq2S, iq2_xs::Iq2Xs, iq2_xxs::Iq2Xxs, iq3_s::Iq3S, iq3_xxs::Iq3Xxs,
    tq1_0::Tq1_0,
};
use zerocopy::transmute;

use super::{Super, SuperUnit};
use crate::isa::Isa;

/// Four codebook entries of eight bytes.
#[inline(always)]
fn eights<I: Isa>(isa: I, entries: [u64; 4]) -> I::B {
    let mut bytes = [[0; 8]; 4];
    for i in 0..4 {
        bytes[i] = entries[i].to_le_bytes();
    }
    isa.bytes(&transmute!(bytes))
}

/// Eight codebook entries of four bytes.
#[inline(always)]
fn fours<I: Isa>(isa: I, entries: [u32; 8]) -> I::B {
    let mut bytes = [[0; 4]; 8];
    for i in 0..8 {
        bytes[i] = entries[i].to_le_bytes();
    }
    isa.bytes(&transmute!(bytes))
}

/// Magnitudes, negative where a bit is set.
#[inline(always)]
fn signed<I: Isa>(isa: I, magnitudes: I::B, signs: u32) -> [i8; 32] {
    isa.signed(isa.negate(magnitudes, isa.mask(signs)))
}

/// Levels plus 1/8, or less 1/8 where a bit is set, times 8.
#[inline(always)]
fn shifted<I: Isa>(isa: I, levels: I::B, down: u32) -> [i8; 32] {
    let eightfold = isa.and(isa.shl(levels, 3), isa.splat_byte(0xF8));
    let up = isa.or(eightfold, isa.splat_byte(1));
    isa.signed(isa.sub_bytes(up, isa.and(isa.mask(down), isa.splat_byte(2))))
}

/// 1, 3, 5 to 31, from sixteen nibbles.
#[inline(always)]
fn odd(scales: &[u8; 8]) -> [i8; 16] {
    let mut pairs = [[0; 2]; 8];
    for i in 0..8 {
        let byte = u16::from(scales[i]);
        pairs[i] = (2 * ((byte | byte << 4) & 0x0F0F) + 0x0101).to_le_bytes();
    }
    transmute!(pairs)
}

/// Each of eight positive scales twice. Assembled in words: what is stored byte by byte cannot be read as
/// more right after.
#[inline(always)]
fn pairs(scales: [i8; 8]) -> [i8; 16] {
    let mut words = [0; 2];
    for i in 0..8 {
        words[i / 4] |= u64::from(scales[i].cast_unsigned()) << (16 * (i % 4));
    }
    transmute!([(words[0] * 0x0101).to_le_bytes(), (words[1] * 0x0101).to_le_bytes()])
}

impl Super for Iq2Xxs {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, out: &mut SuperUnit) {
        for (s, out) in out.levels.as_chunks_mut().0.iter_mut().enumerate() {
            let (entries, signs) = self.entries(s);
            *out = signed(isa, eights(isa, entries), signs);
        }
        let mut scales = [0; 8];
        for s in 0..8 {
            scales[s] = 2 * self.sub_scale(s).cast_signed() + 1;
        }
        out.scales = pairs(scales);
        out.d = isa.half(self.d) * 0.125;
    }
}

impl Super for Iq2Xs {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, out: &mut SuperUnit) {
        for (s, out) in out.levels.as_chunks_mut().0.iter_mut().enumerate() {
            let (entries, signs) = self.entries(s);
            *out = signed(isa, eights(isa, entries), signs);
        }
        out.scales = odd(&self.scales);
        out.d = isa.half(self.d) * 0.125;
    }
}

impl Super for Iq2S {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, out: &mut SuperUnit) {
        for (s, out) in out.levels.as_chunks_mut().0.iter_mut().enumerate() {
            let (entries, signs) = self.entries(s);
            *out = signed(isa, eights(isa, entries), signs);
        }
        out.scales = odd(&self.scales);
        out.d = isa.half(self.d) * 0.125;
    }
}

impl Super for Iq3Xxs {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, out: &mut SuperUnit) {
        for (s, out) in out.levels.as_chunks_mut().0.iter_mut().enumerate() {
            let (entries, signs) = self.entries(s);
            *out = signed(isa, fours(isa, entries), signs);
        }
        let mut scales = [0; 8];
        for s in 0..8 {
            scales[s] = 2 * self.sub_scale(s).cast_signed() + 1;
        }
        out.scales = pairs(scales);
        out.d = isa.half(self.d) * 0.25;
    }
}

impl Super for Iq3S {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, out: &mut SuperUnit) {
        for (s, out) in out.levels.as_chunks_mut().0.iter_mut().enumerate() {
            let (entries, signs) = self.entries(s);
            *out = signed(isa, fours(isa, entries), signs);
        }
        let mut scales = [0; 8];
        for s in 0..8 {
            scales[s] = 2 * (self.scales[s / 2] >> (s % 2 * 4) & 15).cast_signed() + 1;
        }
        out.scales = pairs(scales);
        out.d = isa.half(self.d);
    }
}

impl Super for Iq1S {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, out: &mut SuperUnit) {
        for (s, out) in out.levels.as_chunks_mut().0.iter_mut().enumerate() {
            let (entries, down) = self.entries(s);
            *out = shifted(isa, eights(isa, entries), down);
        }
        let mut scales = [0; 8];
        for s in 0..8 {
            scales[s] = self.odd_scale(s);
        }
        out.scales = pairs(scales);
        out.d = isa.half(self.d) * 0.125;
    }
}

impl Super for Iq1M {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, out: &mut SuperUnit) {
        for (s, out) in out.levels.as_chunks_mut().0.iter_mut().enumerate() {
            let (entries, down) = self.entries(s);
            *out = shifted(isa, eights(isa, entries), down);
        }
        out.scales = self.odd_scales();
        out.d = isa.half(self.d()) * 0.125;
    }
}

/// The first base-3 digit of each byte as a fraction of 256, less 1.
#[inline(always)]
fn digits<I: Isa>(isa: I, x: I::B) -> [i8; 32] {
    // 86 and 171 are the first bytes of at least one and two thirds.
    let ones = isa.sub_bytes(isa.splat_byte(255), isa.at_least(x, 86));
    isa.signed(isa.sub_bytes(ones, isa.at_least(x, 171)))
}

/// `3 * x` per byte, wrapping: the next digits come to the front.
#[inline(always)]
fn next<I: Isa>(isa: I, x: I::B) -> I::B {
    isa.sub_bytes(x, isa.sub_bytes(isa.sub_bytes(isa.splat_byte(0), x), x))
}

/// The bytes of `a` whose bits are set, else those of `b`.
#[inline(always)]
fn pick<I: Isa>(isa: I, bits: u32, a: I::B, b: I::B) -> I::B {
    let mask = isa.mask(bits);
    isa.or(isa.and(a, mask), isa.sub_bytes(b, isa.and(b, mask)))
}

impl Super for Tq1_0 {
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, out: &mut SuperUnit) {
        let levels = out.levels.as_chunks_mut().0;
        let [first, second, third]: [[u8; 16]; 3] = transmute!(self.qs);
        let mut x = isa.bytes(&transmute!([first, second]));
        for n in 0..5 {
            levels[n] = digits(isa, x);
            x = next(isa, x);
        }
        // Sixteen bytes give two digits at a time; beside their fifth stand the four digits of `qh`.
        let mut x = isa.bytes(&transmute!([third, third]));
        x = pick(isa, 0xFFFF, x, next(isa, x));
        for n in 5..7 {
            levels[n] = digits(isa, x);
            x = next(isa, next(isa, x));
        }
        let mut quad = isa.splat_quad(self.qh);
        for n in 0..4 {
            x = pick(isa, 0xF_0000 << (4 * n), quad, x);
            quad = next(isa, quad);
        }
        levels[7] = digits(isa, x);
        out.scales = [1; 16];
        out.d = isa.half(self.d);
    }
}

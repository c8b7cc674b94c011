//! The formats whose levels come from codebooks, and trits that share bytes. Where a scale of sub-blocks is a
//! fraction, it is twice that here, an odd integer, and `d` takes the power of two.

use ggml_blocks::formats::{
    iq1_m::Iq1M, iq1_s::Iq1S, iq2_s::Iq2S, iq2_xs::Iq2Xs, iq2_xxs::Iq2Xxs, iq3_s::Iq3S, iq3_xxs::Iq3Xxs,
    tq1_0::Tq1_0,
};
use zerocopy::transmute;

use super::{Head, Super, Take};
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

/// -1 where a bit is set, else 1.
#[inline(always)]
fn bit_signs<I: Isa>(isa: I, bits: u32) -> I::B {
    isa.or(isa.mask(bits), isa.splat_byte(1))
}

/// What the levels of `IQ1_S` and `IQ1_M` are raised by.
const IQ1_RAISED: u8 = 9;

/// Levels -1, 0, 1 plus or less 1/8, times 8, raised: `up` is 2 or 0.
#[inline(always)]
fn shifted<I: Isa>(isa: I, levels: I::B, up: I::B) -> I::B {
    let ones = isa.sub_bytes(levels, isa.splat_byte(255));
    isa.or(isa.shl(ones, 3), up)
}

/// 2 for each eight weights whose bit is not set.
static UPS: [[[u8; 8]; 4]; 16] = {
    let mut table = [[[0; 8]; 4]; 16];
    let mut down = 0;
    while down < 16 {
        let mut group = 0;
        while group < 4 {
            table[down][group] = if down >> group & 1 == 1 { [0; 8] } else { [2; 8] };
            group += 1;
        }
        down += 1;
    }
    table
};

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
    fn head<I: Isa>(&self, isa: I) -> Head {
        let mut scales = [0; 8];
        for s in 0..8 {
            scales[s] = 2 * self.sub_scale(s).cast_signed() + 1;
        }
        let scales = pairs(scales);
        Head::new(scales, isa.half(self.d) * 0.125)
    }

    #[inline(always)]
    fn levels<I: Isa>(&self, isa: I, to: &mut impl Take<I>) {
        for s in 0..8 {
            let (entries, _) = self.entries(s);
            to.magnitudes(isa, s, eights(isa, entries), eights(isa, self.signs(s)));
        }
    }
}

impl Super for Iq2Xs {
    #[inline(always)]
    fn head<I: Isa>(&self, isa: I) -> Head {
        let scales = odd(&self.scales);
        Head::new(scales, isa.half(self.d) * 0.125)
    }

    #[inline(always)]
    fn levels<I: Isa>(&self, isa: I, to: &mut impl Take<I>) {
        for s in 0..8 {
            let (entries, _) = self.entries(s);
            to.magnitudes(isa, s, eights(isa, entries), eights(isa, self.signs(s)));
        }
    }
}

impl Super for Iq2S {
    #[inline(always)]
    fn head<I: Isa>(&self, isa: I) -> Head {
        let scales = odd(&self.scales);
        Head::new(scales, isa.half(self.d) * 0.125)
    }

    #[inline(always)]
    fn levels<I: Isa>(&self, isa: I, to: &mut impl Take<I>) {
        for s in 0..8 {
            let (entries, signs) = self.entries(s);
            to.magnitudes(isa, s, eights(isa, entries), bit_signs(isa, signs));
        }
    }
}

impl Super for Iq3Xxs {
    #[inline(always)]
    fn head<I: Isa>(&self, isa: I) -> Head {
        let mut scales = [0; 8];
        for s in 0..8 {
            scales[s] = 2 * self.sub_scale(s).cast_signed() + 1;
        }
        let scales = pairs(scales);
        Head::new(scales, isa.half(self.d) * 0.25)
    }

    #[inline(always)]
    fn levels<I: Isa>(&self, isa: I, to: &mut impl Take<I>) {
        for s in 0..8 {
            let (entries, _) = self.entries(s);
            to.magnitudes(isa, s, fours(isa, entries), eights(isa, self.signs(s)));
        }
    }
}

impl Super for Iq3S {
    #[inline(always)]
    fn head<I: Isa>(&self, isa: I) -> Head {
        let mut scales = [0; 8];
        for s in 0..8 {
            scales[s] = 2 * (self.scales[s / 2] >> (s % 2 * 4) & 15).cast_signed() + 1;
        }
        let scales = pairs(scales);
        Head::new(scales, isa.half(self.d))
    }

    #[inline(always)]
    fn levels<I: Isa>(&self, isa: I, to: &mut impl Take<I>) {
        for s in 0..8 {
            let (entries, signs) = self.entries(s);
            to.magnitudes(isa, s, fours(isa, entries), bit_signs(isa, signs));
        }
    }
}

impl Super for Iq1S {
    const RAISED: u8 = IQ1_RAISED;

    #[inline(always)]
    fn head<I: Isa>(&self, isa: I) -> Head {
        let mut scales = [0; 8];
        for s in 0..8 {
            scales[s] = self.odd_scale(s);
        }
        let scales = pairs(scales);
        Head::new(scales, isa.half(self.d) * 0.125)
    }

    #[inline(always)]
    fn levels<I: Isa>(&self, isa: I, to: &mut impl Take<I>) {
        for s in 0..8 {
            let (entries, down) = self.entries(s);
            let up = isa.splat_byte(!down as u8 & 2);
            to.raised(isa, s, shifted(isa, eights(isa, entries), up));
        }
    }
}

impl Super for Iq1M {
    const RAISED: u8 = IQ1_RAISED;

    #[inline(always)]
    fn head<I: Isa>(&self, isa: I) -> Head {
        Head::new(self.odd_scales(), isa.half(self.d()) * 0.125)
    }

    #[inline(always)]
    fn levels<I: Isa>(&self, isa: I, to: &mut impl Take<I>) {
        for s in 0..8 {
            let (entries, down) = self.entries(s);
            // A byte of ones or zeros each becomes a bit.
            let groups = (down & 0x0804_0201).wrapping_mul(0x0101_0101) >> 24;
            let up = isa.bytes(&transmute!(UPS[groups as usize % 16]));
            to.raised(isa, s, shifted(isa, eights(isa, entries), up));
        }
    }
}

/// The first base-3 digit of each byte as a fraction of 256; 128 has been taken from the bytes, which stays so
/// when they are tripled.
#[inline(always)]
fn digits<I: Isa>(isa: I, x: I::B) -> I::B {
    // 85 and 170 are the last bytes below one and two thirds: less 128.
    let ones = isa.sub_bytes(isa.splat_byte(0), isa.above(x, -43));
    isa.sub_bytes(ones, isa.above(x, 42))
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
    const RAISED: u8 = 1;

    #[inline(always)]
    fn head<I: Isa>(&self, isa: I) -> Head {
        Head::new([1; 16], isa.half(self.d))
    }

    #[inline(always)]
    fn levels<I: Isa>(&self, isa: I, to: &mut impl Take<I>) {
        let [first, second, third]: [[u8; 16]; 3] = transmute!(self.qs);
        let middle = isa.splat_byte(128);
        let mut x = isa.sub_bytes(isa.bytes(&transmute!([first, second])), middle);
        for n in 0..5 {
            to.raised(isa, n, digits(isa, x));
            x = next(isa, x);
        }
        // Sixteen bytes give two digits at a time; beside their fifth stand the four digits of `qh`.
        let mut x = isa.sub_bytes(isa.bytes(&transmute!([third, third])), middle);
        x = pick(isa, 0xFFFF, x, next(isa, x));
        for n in 5..7 {
            to.raised(isa, n, digits(isa, x));
            x = next(isa, next(isa, x));
        }
        let mut quad = isa.sub_bytes(isa.splat_quad(self.qh), middle);
        for n in 0..4 {
            x = pick(isa, 0xF_0000 << (4 * n), quad, x);
            quad = next(isa, quad);
        }
        to.raised(isa, 7, digits(isa, x));
    }
}

//! The formats of short blocks.

use ggml_blocks::formats::{
    iq4_nl::Iq4Nl, mxfp4::Mxfp4, nvfp4::Nvfp4, q1_0::Q1_0, q2_0::Q2_0, q4_0::Q4_0, q4_1::Q4_1, q5_0::Q5_0,
    q5_1::Q5_1, q8_0::Q8_0,
};

use zerocopy::transmute;

use super::Flat;
use crate::isa::Isa;

/// What makes the doubled levels of a 4-bit float unsigned.
pub(crate) const LIFT: u8 = 12;

/// Those levels, raised by it.
#[inline(always)]
pub(crate) fn lifted() -> [i8; 16] {
    let mut levels = *Mxfp4::doubled_levels();
    for q in &mut levels {
        *q += LIFT as i8;
    }
    levels
}

/// Levels through a table.
#[inline(always)]
pub(super) fn look_up<I: Isa>(isa: I, table: &[i8; 16], index: I::B) -> I::B {
    isa.lookup(isa.twice(table), index)
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

/// Nibbles of the first eight of each sixteen bytes, and of the others.
const LOW_EIGHTS: [u8; 32] = eights(0);
const HIGH_EIGHTS: [u8; 32] = eights(8);

const fn eights(first: usize) -> [u8; 32] {
    let mut nibbles = [0; 32];
    let mut i = first;
    while i < 32 {
        nibbles[i] = if (i - first) % 16 < 8 { 15 } else { 0 };
        i += 1;
    }
    nibbles
}

/// Nibbles with a fifth bit.
#[inline(always)]
fn fives<I: Isa>(isa: I, qs: &[u8; 16], qh: [u8; 4]) -> I::B {
    let high = isa.and(isa.mask(u32::from_le_bytes(qh)), isa.splat_byte(16));
    isa.or(isa.nibbles(qs), high)
}

impl Flat for Q8_0 {
    #[inline(always)]
    fn levels<I: Isa>(&self, isa: I, _: usize) -> I::B {
        isa.bytes(&transmute!(self.qs))
    }

    #[inline(always)]
    fn scales<I: Isa>(&self, isa: I, _: usize) -> [f32; 2] {
        [isa.half(self.d); 2]
    }
}

impl Flat for Q4_0 {
    const RAISED: Option<u8> = Some(8);

    #[inline(always)]
    fn levels<I: Isa>(&self, isa: I, _: usize) -> I::B {
        isa.nibbles(&self.qs)
    }

    #[inline(always)]
    fn scales<I: Isa>(&self, isa: I, _: usize) -> [f32; 2] {
        [isa.half(self.d); 2]
    }
}

impl Flat for Q4_1 {
    const RAISED: Option<u8> = Some(0);
    const MIN: bool = true;

    #[inline(always)]
    fn levels<I: Isa>(&self, isa: I, _: usize) -> I::B {
        isa.nibbles(&self.qs)
    }

    #[inline(always)]
    fn scales<I: Isa>(&self, isa: I, _: usize) -> [f32; 2] {
        [isa.half(self.d); 2]
    }

    #[inline(always)]
    fn min<I: Isa>(&self, isa: I) -> f32 {
        isa.half(self.m)
    }
}

impl Flat for Q5_0 {
    const RAISED: Option<u8> = Some(16);

    #[inline(always)]
    fn levels<I: Isa>(&self, isa: I, _: usize) -> I::B {
        fives(isa, &self.qs, self.qh)
    }

    #[inline(always)]
    fn scales<I: Isa>(&self, isa: I, _: usize) -> [f32; 2] {
        [isa.half(self.d); 2]
    }
}

impl Flat for Q5_1 {
    const RAISED: Option<u8> = Some(0);
    const MIN: bool = true;

    #[inline(always)]
    fn levels<I: Isa>(&self, isa: I, _: usize) -> I::B {
        fives(isa, &self.qs, self.qh)
    }

    #[inline(always)]
    fn scales<I: Isa>(&self, isa: I, _: usize) -> [f32; 2] {
        [isa.half(self.d); 2]
    }

    #[inline(always)]
    fn min<I: Isa>(&self, isa: I) -> f32 {
        isa.half(self.m)
    }
}

impl Flat for Iq4Nl {
    #[inline(always)]
    fn levels<I: Isa>(&self, isa: I, _: usize) -> I::B {
        look_up(isa, Self::levels(), isa.nibbles(&self.qs))
    }

    #[inline(always)]
    fn scales<I: Isa>(&self, isa: I, _: usize) -> [f32; 2] {
        [isa.half(self.d); 2]
    }
}

impl Flat for Mxfp4 {
    const RAISED: Option<u8> = Some(LIFT);

    #[inline(always)]
    fn levels<I: Isa>(&self, isa: I, _: usize) -> I::B {
        look_up(isa, &lifted(), isa.nibbles(&self.qs))
    }

    #[inline(always)]
    fn scales<I: Isa>(&self, _: I, _: usize) -> [f32; 2] {
        [self.half_scale(); 2]
    }
}

impl Flat for Nvfp4 {
    const RAISED: Option<u8> = Some(LIFT);
    const HALVES: bool = true;

    #[inline(always)]
    fn levels<I: Isa>(&self, isa: I, index: usize) -> I::B {
        // Eight low nibbles of each sixteen weights, then the high ones.
        let [a, b] = self.qs.as_chunks::<8>().0.as_chunks::<2>().0[index];
        let twice = isa.bytes(&transmute!([a, a, b, b]));
        let low = isa.and(twice, isa.bytes(&LOW_EIGHTS));
        let both = isa.or(low, isa.and(isa.shr(twice, 4), isa.bytes(&HIGH_EIGHTS)));
        look_up(isa, &lifted(), both)
    }

    #[inline(always)]
    fn scales<I: Isa>(&self, _: I, index: usize) -> [f32; 2] {
        self.half_scales(index)
    }
}

impl Flat for Q1_0 {
    const RAISED: Option<u8> = Some(1);

    #[inline(always)]
    fn levels<I: Isa>(&self, isa: I, index: usize) -> I::B {
        let bits = isa.mask(u32::from_le_bytes(self.qs.as_chunks::<4>().0[index]));
        isa.and(bits, isa.splat_byte(2))
    }

    #[inline(always)]
    fn scales<I: Isa>(&self, isa: I, _: usize) -> [f32; 2] {
        [isa.half(self.d); 2]
    }
}

impl Flat for Q2_0 {
    const RAISED: Option<u8> = Some(1);

    #[inline(always)]
    fn levels<I: Isa>(&self, isa: I, index: usize) -> I::B {
        // Each byte four times, and of each the field of its place.
        let eight: i64 = transmute!(self.qs.as_chunks::<8>().0[index]);
        let bytes = isa.lookup(isa.twice(&transmute!([eight; 2])), isa.bytes(&FOURS));
        let mut levels = isa.and(bytes, isa.splat_quad([3, 0, 0, 0]));
        for i in 1..4 {
            let mut place = [0; 4];
            place[i] = 3;
            levels = isa.or(levels, isa.and(isa.shr(bytes, 2 * i as i32), isa.splat_quad(place)));
        }
        levels
    }

    #[inline(always)]
    fn scales<I: Isa>(&self, isa: I, _: usize) -> [f32; 2] {
        [isa.half(self.d); 2]
    }
}

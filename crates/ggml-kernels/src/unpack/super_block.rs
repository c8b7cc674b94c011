//! The formats of 256 weights whose levels stand in bit fields.

use ggml_blocks::formats::{
    iq4_nl::Iq4Nl, iq4_xs::Iq4Xs, q2_k::Q2K, q3_k::Q3K, q4_k::Q4K, q5_k::Q5K, q6_k::Q6K, tq2_0::Tq2_0,
};

use zerocopy::transmute;

use super::flat::look_up;
use super::{Head, Super, Take};
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
    fn head<I: Isa>(&self, isa: I) -> Head {
        let (mut scales, mut mins) = ([0; 16], [0; 16]);
        for i in 0..16 {
            scales[i] = (self.scales[i] & 15) as i8;
            mins[i] = self.scales[i] >> 4;
        }
        Head { scales, mins, d: isa.half(self.d), dmin: isa.half(self.dmin) }
    }

    #[inline(always)]
    fn levels<I: Isa>(&self, isa: I, to: &mut impl Take<I>) {
        let qs = self.qs.as_chunks::<32>().0;
        for i in 0..8 {
            to.raised(isa, i, field(isa, &qs[i / 4], 2 * (i % 4), 0, 3));
        }
    }
}

impl Super for Q3K {
    const RAISED: u8 = 4;

    #[inline(always)]
    fn head<I: Isa>(&self, isa: I) -> Head {
        Head::new(self.sub_scales(), isa.half(self.d))
    }

    #[inline(always)]
    fn levels<I: Isa>(&self, isa: I, to: &mut impl Take<I>) {
        let qs = self.qs.as_chunks::<32>().0;
        for i in 0..8 {
            let low = field(isa, &qs[i / 4], 2 * (i % 4), 0, 3);
            to.raised(isa, i, isa.or(low, field(isa, &self.hmask, i, 2, 4)));
        }
    }
}

impl Super for Q4K {
    const MINS: bool = true;

    #[inline(always)]
    fn head<I: Isa>(&self, isa: I) -> Head {
        let [scales, mins] = self.sub_scales();
        let (d, dmin) = (isa.half(self.d), isa.half(self.dmin));
        Head { scales: transmute!(twice(scales)), mins: twice(mins), d, dmin }
    }

    #[inline(always)]
    fn levels<I: Isa>(&self, isa: I, to: &mut impl Take<I>) {
        let qs = self.qs.as_chunks::<32>().0;
        for i in 0..8 {
            to.raised(isa, i, field(isa, &qs[i / 2], 4 * (i % 2), 0, 15));
        }
    }
}

impl Super for Q5K {
    const MINS: bool = true;

    #[inline(always)]
    fn head<I: Isa>(&self, isa: I) -> Head {
        let [scales, mins] = self.sub_scales();
        let (d, dmin) = (isa.half(self.d), isa.half(self.dmin));
        Head { scales: transmute!(twice(scales)), mins: twice(mins), d, dmin }
    }

    #[inline(always)]
    fn levels<I: Isa>(&self, isa: I, to: &mut impl Take<I>) {
        let qs = self.qs.as_chunks::<32>().0;
        for i in 0..8 {
            let low = field(isa, &qs[i / 2], 4 * (i % 2), 0, 15);
            to.raised(isa, i, isa.or(low, field(isa, &self.qh, i, 4, 16)));
        }
    }
}

impl Super for Q6K {
    const RAISED: u8 = 32;

    #[inline(always)]
    fn head<I: Isa>(&self, isa: I) -> Head {
        Head::new(self.scales, isa.half(self.d))
    }

    #[inline(always)]
    fn levels<I: Isa>(&self, isa: I, to: &mut impl Take<I>) {
        let (ql, qh) = (self.ql.as_chunks::<32>().0, self.qh.as_chunks::<32>().0);
        for i in 0..8 {
            let (half, k) = (i / 4, i % 4);
            let low = field(isa, &ql[2 * half + k % 2], k / 2 * 4, 0, 15);
            to.raised(isa, i, isa.or(low, field(isa, &qh[half], 2 * k, 4, 0x30)));
        }
    }
}

impl Super for Iq4Xs {
    #[inline(always)]
    fn head<I: Isa>(&self, isa: I) -> Head {
        Head::new(twice(self.sub_scales()), isa.half(self.d))
    }

    #[inline(always)]
    fn levels<I: Isa>(&self, isa: I, to: &mut impl Take<I>) {
        for (i, qs) in self.qs.as_chunks().0.iter().enumerate() {
            to.signed(isa, i, look_up(isa, Iq4Nl::levels(), isa.nibbles(qs)));
        }
    }
}

impl Super for Tq2_0 {
    const RAISED: u8 = 1;

    #[inline(always)]
    fn head<I: Isa>(&self, isa: I) -> Head {
        Head::new([1; 16], isa.half(self.d))
    }

    #[inline(always)]
    fn levels<I: Isa>(&self, isa: I, to: &mut impl Take<I>) {
        let qs = self.qs.as_chunks::<32>().0;
        for i in 0..8 {
            to.raised(isa, i, field(isa, &qs[i / 4], 2 * (i % 4), 0, 3));
        }
    }
}

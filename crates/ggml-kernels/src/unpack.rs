//! What a block is to an integer dot product: levels, integer scales of sub-blocks, and one or
//! two floats. Every weight format gives this; the tiles and the small products are built on it.

mod codebook;
mod flat;
mod super_block;

use ggml_blocks::Block;
use ggml_blocks::GgmlType;
use ggml_blocks::formats::{
    iq1_m::Iq1M, iq1_s::Iq1S, iq2_s::Iq2S, iq2_xs::Iq2Xs, iq2_xxs::Iq2Xxs, iq3_s::Iq3S, iq3_xxs::Iq3Xxs,
    iq4_nl::Iq4Nl, iq4_xs::Iq4Xs, mxfp4::Mxfp4, nvfp4::Nvfp4, q1_0::Q1_0, q2_0::Q2_0, q2_k::Q2K, q3_k::Q3K,
    q4_0::Q4_0, q4_1::Q4_1, q4_k::Q4K, q5_0::Q5_0, q5_1::Q5_1, q5_k::Q5K, q6_k::Q6K, q8_0::Q8_0,
    tq1_0::Tq1_0, tq2_0::Tq2_0,
};

use crate::isa::Isa;
pub(crate) use flat::{LIFT, lifted};

/// 32 weights: `d[i / 16] * levels[i] + m`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlatUnit {
    pub(crate) levels: [i8; 32],
    pub(crate) d: [f32; 2],
    pub(crate) m: f32,
}

/// 256 weights: `d * scales[i / 16] * levels[i] - dmin * mins[i / 16]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SuperUnit {
    pub(crate) levels: [i8; 256],
    pub(crate) head: Head,
}

/// What a super-block has besides levels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) scales: [i8; 16],
    pub(crate) mins: [u8; 16],
    pub(crate) d: f32,
    pub(crate) dmin: f32,
}

impl FlatUnit {
    pub(crate) const ZERO: Self = Self { levels: [0; 32], d: [0.0; 2], m: 0.0 };
}

impl Head {
    /// Without minimums.
    #[inline(always)]
    pub(crate) const fn new(scales: [i8; 16], d: f32) -> Self {
        Self { scales, mins: [0; 16], d, dmin: 0.0 }
    }
}

impl SuperUnit {
    pub(crate) const ZERO: Self = Self { levels: [0; 256], head: Head::new([0; 16], 0.0) };
}

/// A format of short blocks: it meets activations in `Q8_0`, or in `Q8_1` if it has a minimum.
pub(crate) trait Flat: Block {
    /// Whether 16 weights have a scale of their own, not 32.
    const HALVES: bool = false;
    /// Whether there is a minimum.
    const MIN: bool = false;
    /// How much more the levels are than their value, where they are unsigned and up to 127. `None`: they are
    /// signed.
    const RAISED: Option<u8> = None;
    /// The levels of unit `index` of the block.
    fn levels<I: Isa>(&self, isa: I, index: usize) -> I::B;
    /// Its scales.
    fn scales<I: Isa>(&self, isa: I, index: usize) -> [f32; 2];
    /// Its minimum.
    #[inline(always)]
    fn min<I: Isa>(&self, _: I) -> f32 {
        0.0
    }
    /// All of it.
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, index: usize, out: &mut FlatUnit) {
        let levels = self.levels(isa, index);
        out.levels = isa.signed(isa.sub_bytes(levels, isa.splat_byte(Self::RAISED.unwrap_or(0))));
        out.d = self.scales(isa, index);
        out.m = self.min(isa);
    }
}

/// A format of 256 weights: it meets activations in `Q8_K`.
pub(crate) trait Super: Block {
    /// Whether there are minimums.
    const MINS: bool = false;
    /// Not 0: all levels are handed to [`Take::raised`], this much more than their value.
    const RAISED: u8 = 0;
    /// What there is besides levels.
    fn head<I: Isa>(&self, isa: I) -> Head;
    /// Hands over the levels, 32 at a time, in order.
    fn levels<I: Isa>(&self, isa: I, to: &mut impl Take<I>);
    /// All of it.
    #[inline(always)]
    fn unit<I: Isa>(&self, isa: I, out: &mut SuperUnit) {
        out.head = self.head(isa);
        self.levels(isa, &mut Kept(&mut out.levels, Self::RAISED));
    }
}

/// What levels are handed to.
pub(crate) trait Take<I: Isa> {
    /// Levels `32s..32s + 32`, signed.
    fn signed(&mut self, isa: I, s: usize, levels: I::B);
    /// The same, up to 127 and raised by the same number in the whole format.
    fn raised(&mut self, isa: I, s: usize, levels: I::B);
    /// The same, as magnitudes up to 127 and their signs, 1 or -1.
    fn magnitudes(&mut self, isa: I, s: usize, magnitudes: I::B, signs: I::B);
}

/// Keeps them. Beside them stands what they are raised by.
struct Kept<'a>(&'a mut [i8; 256], u8);

impl<I: Isa> Take<I> for Kept<'_> {
    #[inline(always)]
    fn signed(&mut self, isa: I, s: usize, levels: I::B) {
        self.0.as_chunks_mut::<32>().0[s] = isa.signed(levels);
    }

    #[inline(always)]
    fn raised(&mut self, isa: I, s: usize, levels: I::B) {
        self.signed(isa, s, isa.sub_bytes(levels, isa.splat_byte(self.1)));
    }

    #[inline(always)]
    fn magnitudes(&mut self, isa: I, s: usize, magnitudes: I::B, signs: I::B) {
        self.signed(isa, s, isa.with_signs(magnitudes, signs));
    }
}

/// Work that is generic over the format.
pub(crate) trait FormatOp {
    type Output;
    fn flat<B: Flat>(self) -> Self::Output;
    fn superblock<B: Super>(self) -> Self::Output;
}

macro_rules! formats {
    (flat $($flat:ident)+; superblock $($super:ident)+;) => {
        /// Runs `op` for a format of 32-weight units or of super-blocks; `None` for other types.
        #[inline(always)]
        pub(crate) fn with_format<T: FormatOp>(ty: GgmlType, op: T) -> Option<T::Output> {
            match ty {
                $(<$flat as Block>::TYPE => Some(op.flat::<$flat>()),)+
                $(<$super as Block>::TYPE => Some(op.superblock::<$super>()),)+
                _ => None,
            }
        }
    };
}

formats! {
    flat Q1_0 Q2_0 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Iq4Nl Mxfp4 Nvfp4;
    superblock Q2K Q3K Q4K Q5K Q6K Iq1S Iq1M Iq2Xxs Iq2Xs Iq2S Iq3Xxs Iq3S Iq4Xs Tq1_0 Tq2_0;
}

/// The type of the activations that a weight format meets; `None` for plain floats and for types that
/// are no weights.
pub(crate) fn activations(ty: GgmlType) -> Option<GgmlType> {
    struct Op;
    impl FormatOp for Op {
        type Output = GgmlType;
        #[inline(always)]
        fn flat<B: Flat>(self) -> GgmlType {
            if B::MIN { GgmlType::Q8_1 } else { GgmlType::Q8_0 }
        }
        #[inline(always)]
        fn superblock<B: Super>(self) -> GgmlType {
            GgmlType::Q8_K
        }
    }
    with_format(ty, Op)
}

#[cfg(test)]
mod tests;

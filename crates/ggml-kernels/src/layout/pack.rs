//! How packed layouts are made: the table of formats with their layouts, and the bits of each.

use std::marker::PhantomData;

use ggml_blocks::formats::{
    iq1_m::Iq1M, iq1_s::Iq1S, iq2_s::Iq2S, iq2_xs::Iq2Xs, iq2_xxs::Iq2Xxs, iq3_s::Iq3S, iq3_xxs::Iq3Xxs,
    iq4_nl::Iq4Nl, iq4_xs::Iq4Xs, mxfp4::Mxfp4, nvfp4::Nvfp4, q1_0::Q1_0, q2_0::Q2_0, q2_k::Q2K, q3_k::Q3K,
    q4_0::Q4_0, q4_1::Q4_1, q4_k::Q4K, q5_0::Q5_0, q5_1::Q5_1, q5_k::Q5K, q6_k::Q6K, q8_0::Q8_0,
    tq1_0::Tq1_0, tq2_0::Tq2_0,
};
use ggml_blocks::{Bf16, Block, F16, GgmlType};

use super::k::{Codesx8, Foldedx8, Iq4Xsx8, Q2Kx8, Q3Kx8, Q4Kx8, Q5Kx8, Q6Kx8, Tq2x8};
use super::nibble::{Iq4Nlx8, Mxfp4x8, Nvfp4x8, Q1x8, Q2x8, Q4x8, Q5x8, Q8x8, Q41x8};
use super::{FlatLayout, SuperLayout};
use crate::unpack::{Flat, FlatUnit, Super, SuperUnit, lifted};

/// How a format becomes a layout of 32-weight units.
pub(crate) trait FlatPack {
    /// The format.
    type Format: Flat;
    /// The layout.
    type Layout: FlatLayout;
    /// What the layout's levels are looked up in.
    fn table() -> [i8; 16] {
        [0; 16]
    }
    /// Puts a unit into lane `c` of `out`, which holds zeros there.
    fn put(block: &Self::Format, unit: &FlatUnit, c: usize, out: &mut [u8]);
}

/// How a format becomes a layout of 256-weight units.
pub(crate) trait SuperPack {
    /// The format.
    type Format: Super;
    /// The layout: formats may share one.
    type Layout: SuperLayout;
    /// What the layout's levels are looked up in.
    fn table() -> [i8; 16] {
        [0; 16]
    }
    /// Puts a unit into lane `c` of `out`, which holds zeros there.
    fn put(block: &Self::Format, unit: &SuperUnit, c: usize, out: &mut [u8]);
}

/// Work that is generic over how a format is packed.
pub(crate) trait LayoutOp: Sized {
    type Output;
    fn flat<P: FlatPack>(self) -> Self::Output;
    fn superblock<P: SuperPack>(self) -> Self::Output;
    /// `K` matrices, whose units alternate: for work to which it matters how many they are.
    fn planes<P: SuperPack, const K: usize>(self) -> Self::Output {
        self.superblock::<P>()
    }
}

/// What was packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A matrix.
    One(GgmlType),
    /// The planes of a set of two or three.
    Planes2,
    Planes3,
    /// Two planes, joined to one level.
    Folded,
}

impl Form {
    /// The format of what was packed.
    pub(crate) fn ty(self) -> GgmlType {
        match self {
            Self::One(ty) => ty,
            Self::Planes2 | Self::Planes3 | Self::Folded => GgmlType::TQ2_0,
        }
    }

    /// Runs `op` for the layout; `None` for a format without one.
    pub(crate) fn with<T: LayoutOp>(self, op: T) -> Option<T::Output> {
        match self {
            Self::One(ty) => with_layout(ty, op),
            Self::Planes2 => Some(op.planes::<Tq2x8, 2>()),
            Self::Planes3 => Some(op.planes::<Tq2x8, 3>()),
            Self::Folded => Some(op.superblock::<Foldedx8>()),
        }
    }
}

macro_rules! layouts {
    (flat $($flat:ty),+; superblock $($super:ty),+;) => {
        /// Runs `op` for the layout of a format; `None` for a format without one.
        fn with_layout<T: LayoutOp>(ty: GgmlType, op: T) -> Option<T::Output> {
            match ty {
                $(<<$flat as FlatPack>::Format as Block>::TYPE => Some(op.flat::<$flat>()),)+
                $(<<$super as SuperPack>::Format as Block>::TYPE => Some(op.superblock::<$super>()),)+
                _ => None,
            }
        }
    };
}

layouts! {
    flat Q8x8, Q4x8, Q41x8, Q5x8<false>, Q5x8<true>, Iq4Nlx8, Mxfp4x8, Nvfp4x8, Q1x8, Q2x8;
    superblock Q4Kx8, Q5Kx8, Q6Kx8, Iq4Xsx8, Q2Kx8, Q3Kx8, Tq2x8, Trits, Coded<Iq1S>, Coded<Iq1M>, Coded<Iq2Xxs>,
        Coded<Iq2Xs>, Coded<Iq2S>, Coded<Iq3Xxs>, Coded<Iq3S>;
}

/// A 16-bit number of lane `c` of eight.
fn half(bits: u16, c: usize, out: &mut [u8]) {
    out[2 * c..2 * c + 2].copy_from_slice(&bits.to_le_bytes());
}

/// Two bytes per lane for each two sub-blocks.
fn pairs(values: &[u8], c: usize, out: &mut [u8]) {
    for (p, pair) in values.chunks(2).enumerate() {
        out[16 * p + 2 * c..][..2].copy_from_slice(pair);
    }
}

/// Puts field `field(i, b)` of byte `b` of quad `i` into vectors of `per` quads to a byte: quad `i`
/// goes to vector `i % vectors` or `i / per`, as `place` says, and there to a bit.
fn fields(
    codes: &[u8; 32],
    c: usize,
    out: &mut [u8],
    place: impl Fn(usize) -> (usize, u32),
    field: impl Fn(u8) -> u8,
) {
    for i in 0..8 {
        let (vector, bit) = place(i);
        for b in 0..4 {
            out[32 * vector + 4 * c + b] |= field(codes[4 * i + b]) << bit;
        }
    }
}

fn fours(codes: &[u8; 32], c: usize, out: &mut [u8]) {
    fields(codes, c, out, |i| (i % 4, i as u32 / 4 * 4), |q| q & 15);
}

fn twos(codes: &[u8; 32], c: usize, out: &mut [u8], from: u32) {
    fields(codes, c, out, |i| (i / 4, i as u32 % 4 * 2), |q| q >> from & 3);
}

fn ones(codes: &[u8; 32], c: usize, out: &mut [u8], from: u32) {
    fields(codes, c, out, |i| (0, i as u32), |q| q >> from & 1);
}

/// Levels plus an offset.
fn codes(levels: &[i8; 32], offset: i32) -> [u8; 32] {
    levels.map(|q| (i32::from(q) + offset) as u8)
}

/// A table of levels, each plus `offset`.
fn raised(levels: &[i8; 16], offset: i32) -> [i8; 16] {
    levels.map(|q| (i32::from(q) + offset) as i8)
}

/// The place of each level in a table.
fn indices(levels: &[i8; 32], table: &[i8; 16]) -> [u8; 32] {
    debug_assert!(levels.iter().all(|q| table.contains(q)), "a level is in no place of the table");
    levels.map(|q| table.iter().position(|&t| t == q).unwrap_or(0) as u8)
}

impl FlatPack for Q8x8 {
    type Format = Q8_0;
    type Layout = Self;

    fn put(block: &Q8_0, unit: &FlatUnit, c: usize, out: &mut [u8]) {
        half(block.d.to_bits(), c, out);
        let quads = out[Self::DATA..].as_chunks_mut::<32>().0;
        for (out, q) in quads.iter_mut().zip(codes(&unit.levels, Self::OFFSET).as_chunks::<4>().0) {
            out[4 * c..4 * c + 4].copy_from_slice(q);
        }
    }
}

impl FlatPack for Q4x8 {
    type Format = Q4_0;
    type Layout = Self;

    fn put(block: &Q4_0, unit: &FlatUnit, c: usize, out: &mut [u8]) {
        half(block.d.to_bits(), c, out);
        fours(&codes(&unit.levels, Self::OFFSET), c, &mut out[Self::DATA..]);
    }
}

impl FlatPack for Iq4Nlx8 {
    type Format = Iq4Nl;
    type Layout = Self;

    fn table() -> [i8; 16] {
        raised(Iq4Nl::levels(), Self::OFFSET)
    }

    fn put(block: &Iq4Nl, unit: &FlatUnit, c: usize, out: &mut [u8]) {
        half(block.d.to_bits(), c, out);
        fours(&indices(&unit.levels, Iq4Nl::levels()), c, &mut out[Self::DATA..]);
    }
}

impl FlatPack for Mxfp4x8 {
    type Format = Mxfp4;
    type Layout = Self;

    fn table() -> [i8; 16] {
        lifted()
    }

    fn put(_: &Mxfp4, unit: &FlatUnit, c: usize, out: &mut [u8]) {
        // A power of two, which bf16 holds exactly.
        half(Bf16::from_f32(unit.d[0]).to_bits(), c, out);
        fours(&indices(&unit.levels, Mxfp4::doubled_levels()), c, &mut out[Self::DATA..]);
    }
}

/// What is in front of the quads where there are two numbers per unit.
fn two_halves([d, m]: [F16; 2], c: usize, out: &mut [u8]) {
    half(d.to_bits(), c, out);
    half(m.to_bits(), c, &mut out[16..]);
}

impl FlatPack for Q41x8 {
    type Format = Q4_1;
    type Layout = Self;

    fn put(block: &Q4_1, unit: &FlatUnit, c: usize, out: &mut [u8]) {
        two_halves([block.d, block.m], c, out);
        fours(&codes(&unit.levels, Self::OFFSET), c, &mut out[Self::DATA..]);
    }
}

/// The nibbles and high bits of `Q5_0` and `Q5_1`.
fn fives<const MIN: bool>(unit: &FlatUnit, c: usize, out: &mut [u8]) {
    let codes = codes(&unit.levels, Q5x8::<MIN>::OFFSET);
    let data = &mut out[Q5x8::<MIN>::DATA..];
    fours(&codes, c, data);
    ones(&codes, c, &mut data[128..], 4);
}

impl FlatPack for Q5x8<false> {
    type Format = Q5_0;
    type Layout = Self;

    fn put(block: &Q5_0, unit: &FlatUnit, c: usize, out: &mut [u8]) {
        half(block.d.to_bits(), c, out);
        fives::<false>(unit, c, out);
    }
}

impl FlatPack for Q5x8<true> {
    type Format = Q5_1;
    type Layout = Self;

    fn put(block: &Q5_1, unit: &FlatUnit, c: usize, out: &mut [u8]) {
        two_halves([block.d, block.m], c, out);
        fives::<true>(unit, c, out);
    }
}

impl FlatPack for Nvfp4x8 {
    type Format = Nvfp4;
    type Layout = Self;

    fn table() -> [i8; 16] {
        lifted()
    }

    fn put(_: &Nvfp4, unit: &FlatUnit, c: usize, out: &mut [u8]) {
        // Four significant bits and small exponents, which f16 holds exactly.
        two_halves(unit.d.map(F16::from_f32), c, out);
        fours(&indices(&unit.levels, Mxfp4::doubled_levels()), c, &mut out[Self::DATA..]);
    }
}

impl FlatPack for Q1x8 {
    type Format = Q1_0;
    type Layout = Self;

    fn put(block: &Q1_0, unit: &FlatUnit, c: usize, out: &mut [u8]) {
        half(block.d.to_bits(), c, out);
        ones(&codes(&unit.levels, Self::OFFSET), c, &mut out[Self::DATA..], 1);
    }
}

impl FlatPack for Q2x8 {
    type Format = Q2_0;
    type Layout = Self;

    fn put(block: &Q2_0, unit: &FlatUnit, c: usize, out: &mut [u8]) {
        half(block.d.to_bits(), c, out);
        twos(&codes(&unit.levels, Self::OFFSET), c, &mut out[Self::DATA..], 0);
    }
}

/// The chunks of a unit, each with its 32 levels.
fn chunks<'a, L: SuperLayout>(
    unit: &'a SuperUnit,
    out: &'a mut [u8],
) -> impl Iterator<Item = (&'a [i8; 32], &'a mut [u8])> {
    unit.levels.as_chunks::<32>().0.iter().zip(out[L::DATA..].chunks_exact_mut(L::CHUNK))
}

/// One of each two: the sub-blocks of 32 of a unit that counts in 16.
fn eighths<T: Copy>(x: &[T; 16], byte: impl Fn(T) -> u8) -> [u8; 8] {
    let mut out = [0; 8];
    for i in 0..8 {
        out[i] = byte(x[2 * i]);
    }
    out
}

/// `d`, `dmin`, minimums and scales of `Q4_K` and `Q5_K`.
fn with_mins([d, dmin]: [F16; 2], unit: &SuperUnit, c: usize, out: &mut [u8]) {
    half(d.to_bits(), c, out);
    half(dmin.to_bits(), c, &mut out[16..]);
    pairs(&eighths(&unit.head.mins, |m| m), c, &mut out[32..]);
    pairs(&eighths(&unit.head.scales, i8::cast_unsigned), c, &mut out[96..]);
}

impl SuperPack for Q4Kx8 {
    type Format = Q4K;
    type Layout = Self;

    fn put(block: &Q4K, unit: &SuperUnit, c: usize, out: &mut [u8]) {
        with_mins([block.d, block.dmin], unit, c, out);
        for (levels, out) in chunks::<Self>(unit, out) {
            fours(&codes(levels, 0), c, out);
        }
    }
}

impl SuperPack for Q5Kx8 {
    type Format = Q5K;
    type Layout = Self;

    fn put(block: &Q5K, unit: &SuperUnit, c: usize, out: &mut [u8]) {
        with_mins([block.d, block.dmin], unit, c, out);
        for (levels, out) in chunks::<Self>(unit, out) {
            fours(&codes(levels, 0), c, out);
            ones(&codes(levels, 0), c, &mut out[128..], 4);
        }
    }
}

impl SuperPack for Q6Kx8 {
    type Format = Q6K;
    type Layout = Self;

    fn put(block: &Q6K, unit: &SuperUnit, c: usize, out: &mut [u8]) {
        half(block.d.to_bits(), c, out);
        pairs(&unit.head.scales.map(i8::cast_unsigned), c, &mut out[16..]);
        for (levels, out) in chunks::<Self>(unit, out) {
            let codes = codes(levels, Self::OFFSET);
            fours(&codes, c, out);
            twos(&codes, c, &mut out[128..], 4);
        }
    }
}

impl SuperPack for Iq4Xsx8 {
    type Format = Iq4Xs;
    type Layout = Self;

    fn table() -> [i8; 16] {
        raised(Iq4Nl::levels(), Self::OFFSET)
    }

    fn put(block: &Iq4Xs, unit: &SuperUnit, c: usize, out: &mut [u8]) {
        half(block.d.to_bits(), c, out);
        pairs(&eighths(&unit.head.scales, i8::cast_unsigned), c, &mut out[16..]);
        for (levels, out) in chunks::<Self>(unit, out) {
            fours(&indices(levels, Iq4Nl::levels()), c, out);
        }
    }
}

impl SuperPack for Q2Kx8 {
    type Format = Q2K;
    type Layout = Self;

    fn put(block: &Q2K, unit: &SuperUnit, c: usize, out: &mut [u8]) {
        half(block.d.to_bits(), c, out);
        half(block.dmin.to_bits(), c, &mut out[16..]);
        pairs(&block.scales, c, &mut out[32..]);
        for (levels, out) in chunks::<Self>(unit, out) {
            twos(&codes(levels, 0), c, out, 0);
        }
    }
}

impl SuperPack for Q3Kx8 {
    type Format = Q3K;
    type Layout = Self;

    fn put(block: &Q3K, unit: &SuperUnit, c: usize, out: &mut [u8]) {
        half(block.d.to_bits(), c, out);
        pairs(&unit.head.scales.map(i8::cast_unsigned), c, &mut out[16..]);
        for (levels, out) in chunks::<Self>(unit, out) {
            let codes = codes(levels, Self::OFFSET);
            twos(&codes, c, out, 0);
            ones(&codes, c, &mut out[64..], 2);
        }
    }
}

impl SuperPack for Tq2x8 {
    type Format = Tq2_0;
    type Layout = Self;

    fn put(block: &Tq2_0, unit: &SuperUnit, c: usize, out: &mut [u8]) {
        half(block.d.to_bits(), c, out);
        for (levels, out) in chunks::<Self>(unit, out) {
            twos(&codes(levels, Self::OFFSET), c, out, 0);
        }
    }
}

/// `TQ1_0`, whose trits take the layout of `TQ2_0`'s.
pub(crate) struct Trits;

impl SuperPack for Trits {
    type Format = Tq1_0;
    type Layout = Tq2x8;

    fn put(block: &Tq1_0, unit: &SuperUnit, c: usize, out: &mut [u8]) {
        half(block.d.to_bits(), c, out);
        for (levels, out) in chunks::<Tq2x8>(unit, out) {
            twos(&codes(levels, Tq2x8::OFFSET), c, out, 0);
        }
    }
}

/// Codebook formats, none of which has more than sixteen levels.
pub(crate) struct Coded<B>(PhantomData<B>);

/// The levels of `IQ1`: -1, 0 or 1, more or less an eighth, times 8.
const IQ1: [i8; 16] = [-9, -7, -1, 1, 7, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// Those of the `IQ2` codebooks.
const IQ2: [i8; 16] = [-43, -25, -8, 8, 25, 43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// Those of `IQ3_XXS`.
const IQ3_XXS: [i8; 16] = [-62, -52, -44, -36, -28, -20, -12, -4, 4, 12, 20, 28, 36, 44, 52, 62];
/// Those of `IQ3_S`.
const IQ3_S: [i8; 16] = [-15, -13, -11, -9, -7, -5, -3, -1, 1, 3, 5, 7, 9, 11, 13, 15];

macro_rules! coded {
    ($($Format:ident $levels:ident;)+) => { $(
        impl SuperPack for Coded<$Format> {
            type Format = $Format;
            type Layout = Codesx8;

            fn table() -> [i8; 16] {
                raised(&$levels, Codesx8::OFFSET)
            }

            fn put(_: &$Format, unit: &SuperUnit, c: usize, out: &mut [u8]) {
                out[4 * c..4 * c + 4].copy_from_slice(&unit.head.d.to_le_bytes());
                pairs(&unit.head.scales.map(i8::cast_unsigned), c, &mut out[32..]);
                for (levels, out) in chunks::<Codesx8>(unit, out) {
                    fours(&indices(levels, &$levels), c, out);
                }
            }
        }
    )+ };
}

coded! {
    Iq1S IQ1;
    Iq1M IQ1;
    Iq2Xxs IQ2;
    Iq2Xs IQ2;
    Iq2S IQ2;
    Iq3Xxs IQ3_XXS;
    Iq3S IQ3_S;
}

/// The levels are those of both planes, the block is the fine one's.
impl SuperPack for Foldedx8 {
    type Format = Tq2_0;
    type Layout = Self;

    fn put(block: &Tq2_0, unit: &SuperUnit, c: usize, out: &mut [u8]) {
        half(block.d.to_bits(), c, out);
        for (levels, out) in chunks::<Self>(unit, out) {
            fours(&codes(levels, Self::OFFSET), c, out);
        }
    }
}

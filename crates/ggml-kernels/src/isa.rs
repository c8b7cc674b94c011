//! The vector vocabulary that kernels are written in, and the tokens that prove it can run.
//!
//! A kernel is a generic body over [`Isa`], compiled once per token by [`Isa::run`]. The mechanism is
//! that of `ggml-blocks`' codecs (a value proves the features, one list of features per token, one
//! `unsafe` block for the hop); the tokens are this crate's own, because integer dot products are
//! features that no codec needs.
//!
//! All vectors are eight lanes of 32 bits, whatever the registers. In tiles a lane is an output column, and
//! floats of different lanes never meet; integers may, for their order does not matter. So every ISA does the
//! same operations on the same floats in the same order.

use ggml_blocks::F16;

use crate::level::Level;

/// Stamps methods that hop into an inner function compiled for a feature list.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! hop {
    ($features:tt $token:ident $(
        #[$inline:meta]
        fn $name:ident $(<$T:ident: $Bound:path>)? ($this:ident $(, $a:ident: $t:ty)*) -> $r:ty $body:block
    )+) => { $(
        hop! { @one $features $token #[$inline] $name $(<$T: $Bound>)? ($this $(, $a: $t)*) ($r) $body }
    )+ };
    (@one [$($feature:tt)+] $token:ident #[$inline:meta]
        $name:ident $(<$T:ident: $Bound:path>)? ($this:ident $(, $a:ident: $t:ty)*) ($r:ty) $body:block
    ) => {
        #[inline(always)]
        #[expect(unsafe_code, reason = "the token proves the features")]
        fn $name $(<$T: $Bound>)? (self $(, $a: $t)*) -> $r {
            $(#[target_feature(enable = $feature)])+
            #[$inline]
            fn imp $(<$T: $Bound>)? ($this: $token $(, $a: $t)*) -> $r $body
            // SAFETY: `imp` needs exactly this feature list. A `$token` exists only where `detect`
            // found every feature of the same list, or where the caller of `Kernels::assume` vouched.
            unsafe { imp(self $(, $a)*) }
        }
    };
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
/// For each of eight words of a register or half of one, how to shuffle it to all of them.
static EVERY_WORD: [[[u8; 2]; 16]; 8] = {
    let mut table = [[[0; 2]; 16]; 8];
    let mut word = 0;
    while word < 8 {
        table[word] = [[2 * word as u8, 2 * word as u8 + 1]; 16];
        word += 1;
    }
    table
};

mod portable;
pub(crate) use portable::Portable;

#[cfg(target_arch = "x86_64")]
mod x86;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512Vnni, AvxVnni};

#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "aarch64")]
pub(crate) use neon::{Dotprod, I8mm, Neon};

/// A token: proof of CPU features, and what can be done with them.
///
/// *Levels* are weights without their scale, as unsigned bytes; *activations* are signed bytes of
/// -127..=127, never -128.
pub(crate) trait Isa: Copy + Send + Sync + 'static {
    /// The level that a value proves.
    const LEVEL: Level;
    /// Column vectors per tile: what the registers hold at [`Isa::ROWS`] rows.
    const COLS: usize;
    /// Rows per tile at most: 1, 2 or 4.
    const ROWS: usize;
    /// Whether weights times their sub-block's scale, as i16, are the fastest for many rows: there is no
    /// instruction that sums four products of bytes.
    const WORDS: bool;
    /// Whether an instruction multiplies two rows with two columns, eight deep: then tiles of more than one
    /// row are made of [`Isa::dot_matrix`], and there is room in the sums for any level.
    const MATRIX: bool = false;
    /// Bytes of a widened quad in a panel: 4, or 8 where widening is done once per panel.
    const WIDE_BYTES: usize;

    /// 32 bytes: four levels of each of eight columns, or a quad repeated.
    type B: Copy;
    /// Eight i32, or eight pairs of i16.
    type I: Copy;
    /// Partial sums of [`Isa::dot`].
    type S: Copy;
    /// Eight f32.
    type F: Copy;
    /// Levels widened for [`Isa::dot_wide`].
    type L: Copy;
    /// A quad widened for [`Isa::dot_wide`].
    type Q: Copy;

    /// Runs `op` compiled for this token's features. Never inlined.
    fn run<T: KernelOp>(self, op: T) -> T::Output;
    /// [`Isa::run`] for tiles, under a name of its own: so they are found in machine code and profiles.
    fn tile<T: KernelOp>(self, op: T) -> T::Output;

    /// How many [`Isa::dot`]s of levels up to `max` the partial sums hold; 0: use [`Isa::dot_wide`].
    fn room(max: u32) -> usize;

    /// Asks for the cache line of a byte that will be read soon. Nothing, where the CPU does well alone.
    #[inline(always)]
    fn prefetch(self, _: &u8) {}

    /// 32 bytes.
    fn bytes(self, x: &[u8; 32]) -> Self::B;
    /// One byte everywhere.
    fn splat_byte(self, x: u8) -> Self::B;
    /// Four bytes everywhere.
    fn splat_quad(self, x: [u8; 4]) -> Self::B;
    /// The bytes, as signed ones.
    fn signed(self, x: Self::B) -> [i8; 32];
    /// Sixteen bytes twice: a table.
    fn twice(self, x: &[i8; 16]) -> Self::B;
    /// The low nibbles of sixteen bytes, then the high ones.
    fn nibbles(self, x: &[u8; 16]) -> Self::B;
    /// All bits of byte `i` as bit `i`.
    fn mask(self, bits: u32) -> Self::B;
    /// `a - b` per byte, wrapping.
    fn sub_bytes(self, a: Self::B, b: Self::B) -> Self::B;
    /// `x` times 1 or -1 per byte.
    fn with_signs(self, x: Self::B, signs: Self::B) -> Self::B;
    /// All ones in signed bytes above `limit`.
    fn above(self, x: Self::B, limit: i8) -> Self::B;
    /// Bitwise and.
    fn and(self, a: Self::B, b: Self::B) -> Self::B;
    /// Bitwise or.
    fn or(self, a: Self::B, b: Self::B) -> Self::B;
    /// Each 16-bit word shifted right: callers mask what comes in from the neighbour.
    fn shr(self, a: Self::B, by: i32) -> Self::B;
    /// Each 16-bit word shifted left.
    fn shl(self, a: Self::B, by: i32) -> Self::B;
    /// `table[index]` per byte of 0..=15; the table stands twice in its 32 bytes.
    fn lookup(self, table: Self::B, index: Self::B) -> Self::B;

    /// No partial sums.
    fn no_sums(self) -> Self::S;
    /// Adds the four products of each lane. The sums hold [`Isa::room`] of them.
    fn dot(self, sums: Self::S, levels: Self::B, quad: Self::B) -> Self::S;
    /// Two quads of levels, as [`Isa::dot_matrix`] takes them. This and the next two are what tiles call where
    /// there is [`Isa::MATRIX`]; what stands here says what they mean.
    #[inline(always)]
    fn join(self, quads: [Self::B; 2]) -> [Self::B; 2] {
        quads
    }
    /// Adds the eight products of each lane with each of two rows: two quads of both. The sums are not a
    /// row's before [`Isa::rows`].
    #[inline(always)]
    fn dot_matrix(self, sums: [Self::S; 2], levels: [Self::B; 2], quads: [[[u8; 4]; 2]; 2]) -> [Self::S; 2] {
        let mut rows = sums;
        for (quad, levels) in quads.iter().zip(levels) {
            for r in 0..2 {
                rows[r] = self.dot(rows[r], levels, self.splat_quad(quad[r]));
            }
        }
        rows
    }
    /// The sums of each row.
    #[inline(always)]
    fn rows(self, sums: [Self::S; 2]) -> [Self::S; 2] {
        sums
    }
    /// Adds partial sums to totals.
    fn fold(self, total: Self::I, sums: Self::S) -> Self::I;
    /// Adds partial sums times sub-block scales, as [`Isa::sub_scale`] gives them.
    fn fold_scaled(self, total: Self::I, sums: Self::S, scale: Self::I) -> Self::I;
    /// One of each pair of i16, in the form that [`Isa::fold_scaled`] takes.
    fn sub_scale(self, pairs: Self::I, second: bool) -> Self::I;

    /// Levels of any byte, widened.
    fn wide(self, levels: Self::B) -> Self::L;
    /// A quad as a panel of [`Isa::WIDE_BYTES`] holds it.
    fn wide_quad(self, x: &[u8]) -> Self::Q;
    /// Adds the four products of each lane, exact for any level.
    fn dot_wide(self, total: Self::I, levels: Self::L, quad: Self::Q) -> Self::I;

    /// Sixteen unsigned bytes as eight pairs of i16.
    fn pairs_u8(self, x: &[u8; 16]) -> Self::I;
    /// Sixteen signed bytes as eight pairs of i16.
    fn pairs_i8(self, x: &[u8; 16]) -> Self::I;
    /// The low or the high nibbles of sixteen bytes as eight pairs of i16.
    fn pairs_nibble(self, x: &[u8; 16], high: bool) -> Self::I;
    /// One of each pair of i16, in both places.
    fn twin(self, pairs: Self::I, second: bool) -> Self::I;
    /// Levels less an offset, times the i16 of `scale`, of which both of a pair are the same: those of the
    /// first and third byte of each lane, then of the second and fourth, as pairs of i16.
    fn words(self, levels: Self::B, offset: i32, scale: Self::I) -> [Self::I; 2];
    /// The 4 bytes `i` of vector `j` become the 4 bytes `j` of vector `i`.
    fn transpose(self, x: [Self::B; 8]) -> [Self::B; 8];
    /// The bytes of eight i32.
    fn int_bytes(self, x: Self::I) -> [u8; 32];
    /// Adds the two products of each lane's pair.
    fn dot_pairs(self, total: Self::I, a: Self::I, b: Self::I) -> Self::I;
    /// One of each pair of i16, as i32.
    fn lane_scale(self, pairs: Self::I, second: bool) -> Self::I;
    /// `total + a * b` per lane.
    fn mul_add_i32(self, total: Self::I, a: Self::I, b: Self::I) -> Self::I;
    /// One number in every lane.
    fn splat_i32(self, x: i32) -> Self::I;
    /// Eight i32 or pairs of i16.
    fn ints(self, x: &[u8; 32]) -> Self::I;
    /// [`Isa::products`] of unsigned levels up to 127.
    #[inline(always)]
    fn raised_products(self, levels: Self::B, a: &[i8; 32]) -> Self::I {
        self.products(levels, a)
    }
    /// The products of 32 signed levels with 32 activations, those of neighbours added, as pairs of i16: of the
    /// first sixteen in the first four lanes, of the others in the last four.
    fn products(self, levels: Self::B, a: &[i8; 32]) -> Self::I;
    /// [`Isa::products`] of magnitudes up to 127 with signs of 1 or -1.
    #[inline(always)]
    fn signed_products(self, magnitudes: Self::B, signs: Self::B, a: &[i8; 32]) -> Self::I {
        self.products(self.with_signs(magnitudes, signs), a)
    }
    /// Sixteen scales as i16: the even ones in the first four lanes, the odd ones in the last four.
    fn half_scales(self, scales: &[i8; 16]) -> Self::I;
    /// Scales `2s` and `2s + 1` of [`Isa::half_scales`], in every i16 of their lanes.
    fn scales_of(self, scales: Self::I, s: usize) -> Self::I;
    /// Lane `i` is the sum of all lanes of `x[i]`.
    fn totals(self, x: &[Self::I; 8]) -> Self::I;
    /// Lane `i` is the sum of the first four lanes of `x[i]`; of the last four.
    fn half_totals(self, x: &[Self::I; 8]) -> [Self::I; 2];

    /// To f32, rounded to nearest.
    fn to_f32(self, x: Self::I) -> Self::F;
    /// Eight f32.
    fn floats(self, x: &[f32; 8]) -> Self::F;
    /// Eight f32, as an array.
    fn array(self, x: Self::F) -> [f32; 8];
    /// One number in every lane.
    fn splat(self, x: f32) -> Self::F;
    /// `a + b`.
    fn add(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a - b`.
    fn sub(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a * b`, rounded: never fused with what follows.
    fn mul(self, a: Self::F, b: Self::F) -> Self::F;
    /// One f16 widened.
    #[inline(always)]
    fn half(self, x: F16) -> f32 {
        x.to_f32()
    }
    /// Eight f16 widened.
    fn widen(self, x: &[u8; 16]) -> Self::F;
    /// Eight bf16 widened.
    fn widen_bf16(self, x: &[u8; 16]) -> Self::F;
}

/// Work that runs on any token. `run` and all it calls in hot loops are `#[inline(always)]`: only
/// inlined code is compiled for the token's features.
pub(crate) trait KernelOp {
    /// What the work gives.
    type Output;
    /// Does the work.
    fn run<I: Isa>(self, isa: I) -> Self::Output;
}

/// Bytes per quad in the panels for levels up to `max`, or for words.
#[inline(always)]
pub(crate) fn quad<I: Isa>(max: Option<u32>) -> usize {
    match max {
        None => 8,
        Some(max) if I::room(max) == 0 => I::WIDE_BYTES,
        Some(_) => 4,
    }
}

macro_rules! tokens {
    ($($(#[$cfg:meta])? $token:ident;)+) => {
        /// A token of any level.
        #[derive(Debug, Clone, Copy)]
        pub(crate) enum Token {
            $($(#[$cfg])? $token($token),)+
        }

        impl Token {
            /// The token of a level that this CPU has.
            pub(crate) fn detect(level: Level) -> Option<Self> {
                $($(#[$cfg])? if level == <$token as Isa>::LEVEL { return $token::detect().map(Self::$token); })+
                None
            }

            /// The token of a level, detected or not: the caller vouches for it.
            pub(crate) fn assume(level: Level) -> Option<Self> {
                $($(#[$cfg])? if level == <$token as Isa>::LEVEL { return Some(Self::$token($token::assume())); })+
                None
            }

            /// The level.
            pub(crate) fn level(self) -> Level {
                match self { $($(#[$cfg])? Self::$token(_) => <$token as Isa>::LEVEL,)+ }
            }

            /// [`Isa::COLS`].
            pub(crate) fn cols(self) -> usize {
                match self { $($(#[$cfg])? Self::$token(_) => <$token as Isa>::COLS,)+ }
            }

            /// [`Isa::ROWS`].
            pub(crate) fn rows(self) -> usize {
                match self { $($(#[$cfg])? Self::$token(_) => <$token as Isa>::ROWS,)+ }
            }

            /// [`Isa::WORDS`].
            pub(crate) fn words(self) -> bool {
                match self { $($(#[$cfg])? Self::$token(_) => <$token as Isa>::WORDS,)+ }
            }

            /// Bytes per quad in the panels for levels up to `max`, or for words.
            pub(crate) fn quad(self, max: Option<u32>) -> usize {
                match self { $($(#[$cfg])? Self::$token(_) => quad::<$token>(max),)+ }
            }

            /// [`Isa::run`] on the token with the same vectors but no dot products: work other than tiles
            /// has none, and need not be compiled once more.
            pub(crate) fn run<T: KernelOp>(self, op: T) -> T::Output {
                match self { $($(#[$cfg])? Self::$token(token) => token.plain().run(op),)+ }
            }

            /// [`Isa::tile`].
            pub(crate) fn tile<T: KernelOp>(self, op: T) -> T::Output {
                match self { $($(#[$cfg])? Self::$token(token) => token.tile(op),)+ }
            }
        }
    };
}

tokens! {
    Portable;
    #[cfg(target_arch = "x86_64")] Avx2;
    #[cfg(target_arch = "x86_64")] AvxVnni;
    #[cfg(target_arch = "x86_64")] Avx512Vnni;
    #[cfg(target_arch = "aarch64")] Neon;
    #[cfg(target_arch = "aarch64")] Dotprod;
    #[cfg(target_arch = "aarch64")] I8mm;
}

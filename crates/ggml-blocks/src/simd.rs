//! CPU-feature tokens and the one entry that runs generic code under a target feature.
//!
//! A value of a token type proves that the CPU has the token's features, so generic code takes a
//! token by value and needs no checks of its own. [`dispatch`] picks the best token once per
//! process; an operation is a [`SimdOp`] whose body is compiled once per token. All tokens give the
//! same bits: nothing here reorders or fuses floating-point arithmetic.
//!
//! Everything `unsafe` in this crate is the one block of the `hop!` macro.

use std::cell::Cell;
use std::fmt;
use std::sync::OnceLock;

use crate::F16;

/// A set of CPU features that code can be compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// The target's baseline: SSE2 on x86-64.
    Portable,
    /// NEON, which every aarch64 CPU has.
    Neon,
    /// AVX2 with FMA, F16C, BMI1, BMI2, LZCNT and POPCNT (x86-64-v3).
    Avx2,
    /// AVX-512 F, BW, CD, DQ and VL on top of AVX2 (x86-64-v4).
    Avx512,
}

impl Level {
    /// Every level, lowest first.
    pub const ALL: [Self; 4] = [Self::Portable, Self::Neon, Self::Avx2, Self::Avx512];

    /// The name that the environment variable `GGML_BLOCKS_SIMD` takes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Neon => "neon",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// The levels that this CPU supports, lowest first. `Portable` is always among them.
    pub fn supported() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|&level| Token::detect(level).is_some())
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A token: proof of a level's features, and the few operations that plain code cannot express well.
pub trait Simd: Arith + Levels + Send + Sync + 'static {
    /// The level that a value proves.
    const LEVEL: Level;
    /// How many `f32` one register holds: a hint for the width of plain-array lanes.
    const LANES: usize;
    /// The token for 256-bit code on this CPU, [`Simd::narrow`].
    type Narrow: Simd;

    /// The token whose code uses registers of 256 bits at most: plain-array code is often slower
    /// when compiled for 512.
    fn narrow(self) -> Self::Narrow;

    /// Runs `op` compiled for this token's features. Never inlined: one call per row, not per block.
    fn run<T: SimdOp>(self, op: T) -> T::Output;

    /// One f16 widened, NaN payloads as in [`F16::to_f32`].
    #[inline(always)]
    fn widen(self, h: F16) -> f32 {
        h.to_f32()
    }

    /// [`Simd::widen`] that does not wait for the last one: for loops short enough to be bound by
    /// that wait. It costs more elsewhere.
    #[inline(always)]
    fn widen_apart(self, h: F16) -> f32 {
        self.widen(h)
    }

    /// Eight f16 widened.
    #[inline(always)]
    fn widen8(self, h: [u16; 8]) -> [f32; 8] {
        h.map(|h| F16::from_bits(h).to_f32())
    }

    /// Eight f32 rounded to f16 as [`F16::from_f32`] does.
    #[inline(always)]
    fn round8(self, x: [f32; 8]) -> [u16; 8] {
        x.map(|x| F16::from_f32(x).to_bits())
    }

    /// Sixteen signed bytes as floats, the first byte lowest in the first word.
    #[inline(always)]
    fn floats16(self, bytes: [u64; 2]) -> [f32; 16] {
        let bytes: [[u8; 8]; 2] = bytes.map(u64::to_le_bytes);
        core::array::from_fn(|i| f32::from(bytes[i / 8][i % 8] as i8))
    }

    /// Eight signed bytes as floats, the first byte lowest.
    #[inline(always)]
    fn floats8(self, bytes: u64) -> [f32; 8] {
        bytes.to_le_bytes().map(|b| f32::from(b as i8))
    }

    /// `table[index[i]]` for bytes of 0..=15.
    #[inline(always)]
    fn lookup16(self, table: &[i8; 16], index: [u64; 2]) -> [u64; 2] {
        index.map(|word| u64::from_le_bytes(word.to_le_bytes().map(|i| table[usize::from(i & 15)] as u8)))
    }

    /// `table[index[lane] & 7]` in each lane.
    #[inline(always)]
    fn pick8(self, table: [f32; 8], index: [u32; 8]) -> [f32; 8] {
        index.map(|i| table[(i & 7) as usize])
    }

    /// [`Simd::pick8`] for a table whose upper half repeats the lower.
    #[inline(always)]
    fn pick4(self, table: [f32; 8], index: [u32; 8]) -> [f32; 8] {
        index.map(|i| table[(i & 3) as usize])
    }

    /// In each lane where `x < least`, both replaced: `(x, code)` instead of `(least, codes)`.
    #[inline(always)]
    fn keep_less(
        self,
        x: [f32; 8],
        code: [u32; 8],
        least: [f32; 8],
        codes: [u32; 8],
    ) -> ([f32; 8], [u32; 8]) {
        let less = |i: usize| x[i] < least[i];
        (
            std::array::from_fn(|i| if less(i) { x[i] } else { least[i] }),
            std::array::from_fn(|i| if less(i) { code[i] } else { codes[i] }),
        )
    }

    /// Bit `lane` says whether `x > y` there.
    #[inline(always)]
    fn greater(self, x: [f32; 8], y: [f32; 8]) -> u32 {
        (0..8).fold(0, |mask, i| mask | u32::from(x[i] > y[i]) << i)
    }

    /// The first lane that holds the smallest number. None is NaN.
    #[inline(always)]
    fn first_least(self, x: [f32; 8]) -> usize {
        let least = x.into_iter().fold(f32::INFINITY, |a, b| if b < a { b } else { a });
        x.iter().position(|&x| x == least).unwrap_or(0)
    }
}

/// Work that can run on any token. Implementations mark `run` `#[inline(always)]`, and every
/// function it calls in hot loops too: only inlined code is compiled for the token's features.
pub trait SimdOp {
    /// What the work gives.
    type Output;
    /// Does the work.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// Stamps methods that hop into an inner function compiled for a feature list. The list arrives
/// from the callback macros below, so that it stands once per token.
#[cfg(target_arch = "x86_64")]
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
            // found every feature of the same list, or of a list that contains it; for `Portable`
            // the list is what the target's baseline has.
            unsafe { imp(self $(, $a)*) }
        }
    };
}

#[cfg(target_arch = "x86_64")]
/// Stamps the token type and its detection.
macro_rules! token {
    ([$($feature:tt)+] $(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name(());

        impl $name {
            pub(super) fn detect() -> Option<Self> {
                ($(is_x86_feature_detected!($feature))&&+).then_some(Self(()))
            }
        }
    };
}

/// The baseline token, available everywhere.
#[derive(Debug, Clone, Copy)]
pub struct Portable;

impl Arith for Portable {}

impl Levels for Portable {}

impl Simd for Portable {
    const LEVEL: Level = Level::Portable;
    const LANES: usize = 4;
    type Narrow = Self;

    #[inline(always)]
    fn narrow(self) -> Self {
        self
    }

    #[inline(never)]
    fn run<T: SimdOp>(self, op: T) -> T::Output {
        op.run(self)
    }

    #[cfg(target_arch = "x86_64")]
    hop! { ["sse2"] Portable
        #[inline]
        fn floats16(_token, bytes: [u64; 2]) -> [f32; 16] {
            x86::floats16_sse2(bytes)
        }
    }
}

mod arith;
mod levels;
pub use arith::{Arith, F8, M8};
pub(crate) use arith::{MAGIC, each, nearest_int};
pub use levels::Levels;

#[cfg(target_arch = "x86_64")]
mod x86;
#[cfg(target_arch = "x86_64")]
pub use x86::{Avx2, Avx512};

#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "aarch64")]
pub use neon::Neon;

#[derive(Debug, Clone, Copy)]
enum Token {
    Portable(Portable),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
}

impl Token {
    fn detect(level: Level) -> Option<Self> {
        match level {
            Level::Portable => Some(Self::Portable(Portable)),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => Avx2::detect().map(Self::Avx2),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => Avx512::detect().map(Self::Avx512),
            #[cfg(target_arch = "aarch64")]
            Level::Neon => Some(Self::Neon(Neon)),
            #[cfg(not(target_arch = "x86_64"))]
            Level::Avx2 | Level::Avx512 => None,
            #[cfg(not(target_arch = "aarch64"))]
            Level::Neon => None,
        }
    }

    fn level(self) -> Level {
        match self {
            Self::Portable(_) => Level::Portable,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => Level::Avx2,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => Level::Avx512,
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => Level::Neon,
        }
    }

    /// The best supported level, not above the one that `GGML_BLOCKS_SIMD` names.
    fn best() -> Self {
        let cap = std::env::var("GGML_BLOCKS_SIMD").ok();
        let cap = cap.and_then(|name| Level::ALL.into_iter().find(|l| l.name() == name));
        let mut best = Self::Portable(Portable);
        for level in Level::ALL {
            if cap.is_none_or(|cap| level <= cap)
                && let Some(token) = Self::detect(level)
            {
                best = token;
            }
        }
        best
    }
}

thread_local! {
    static FORCED: Cell<Option<Token>> = const { Cell::new(None) };
}

fn current() -> Token {
    static BEST: OnceLock<Token> = OnceLock::new();
    FORCED.get().unwrap_or_else(|| *BEST.get_or_init(Token::best))
}

/// The level that [`dispatch`] uses on this thread.
#[must_use]
pub fn level() -> Level {
    current().level()
}

/// Runs `op` on the best token of this CPU.
pub fn dispatch<T: SimdOp>(op: T) -> T::Output {
    match current() {
        Token::Portable(token) => token.run(op),
        #[cfg(target_arch = "x86_64")]
        Token::Avx2(token) => token.run(op),
        #[cfg(target_arch = "x86_64")]
        Token::Avx512(token) => token.run(op),
        #[cfg(target_arch = "aarch64")]
        Token::Neon(token) => token.run(op),
    }
}

/// [`dispatch`] on the token that [`Simd::narrow`] gives.
pub fn dispatch_narrow<T: SimdOp>(op: T) -> T::Output {
    match current() {
        #[cfg(target_arch = "x86_64")]
        Token::Avx512(token) => token.narrow().run(op),
        _ => dispatch(op),
    }
}

/// Runs `f` with every [`dispatch`] of this thread at `level`, for tests and benchmarks; `None`
/// where the CPU lacks it.
pub fn with_level<R>(level: Level, f: impl FnOnce() -> R) -> Option<R> {
    struct Restore(Option<Token>);
    impl Drop for Restore {
        fn drop(&mut self) {
            FORCED.set(self.0);
        }
    }
    let token = Token::detect(level)?;
    let _restore = Restore(FORCED.replace(Some(token)));
    Some(f())
}

#[cfg(test)]
mod tests;

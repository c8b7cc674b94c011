//! Which instruction sets there are, and which this CPU has.

use std::fmt;
use std::sync::OnceLock;

use crate::isa::Token;

/// An instruction set that kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// Plain Rust for the target's baseline: the reference that all others equal bit for bit.
    Portable,
    /// NEON without dot products, on every aarch64 CPU.
    Neon,
    /// NEON with `sdot`.
    Dotprod,
    /// NEON with `usmmla` and `usdot`.
    I8mm,
    /// AVX2 with FMA and F16C.
    Avx2,
    /// AVX2 with `vpdpbusd` in VEX encoding.
    AvxVnni,
    /// 256-bit registers with `vpdpbusd` of AVX-512 VNNI and VL.
    Avx512Vnni,
}

impl Level {
    /// Every level, lowest first.
    pub const ALL: [Self; 7] =
        [Self::Portable, Self::Neon, Self::Dotprod, Self::I8mm, Self::Avx2, Self::AvxVnni, Self::Avx512Vnni];

    /// The name that the environment variable `GGML_KERNELS_SIMD` takes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Neon => "neon",
            Self::Dotprod => "dotprod",
            Self::I8mm => "i8mm",
            Self::Avx2 => "avx2",
            Self::AvxVnni => "avxvnni",
            Self::Avx512Vnni => "avx512vnni",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The kernels of one level. A value exists only for a level that this CPU has.
#[derive(Debug, Clone, Copy)]
pub struct Kernels {
    pub(crate) token: Token,
}

impl Kernels {
    /// The kernels that this CPU can run, best first. The last are [`Level::Portable`].
    pub fn supported() -> impl Iterator<Item = Self> {
        Level::ALL.into_iter().rev().filter_map(Self::at)
    }

    /// The best kernels of this CPU, not above the level that `GGML_KERNELS_SIMD` names. Found once
    /// per process.
    #[must_use]
    pub fn best() -> Self {
        static BEST: OnceLock<Kernels> = OnceLock::new();
        *BEST.get_or_init(|| {
            let cap = std::env::var("GGML_KERNELS_SIMD").ok();
            let cap = cap.and_then(|name| Level::ALL.into_iter().find(|l| l.name() == name));
            Self::up_to(cap.unwrap_or(Level::Avx512Vnni))
        })
    }

    /// The best kernels of this CPU that are not above `level`.
    #[must_use]
    pub fn up_to(level: Level) -> Self {
        let found = Self::supported().find(|k| k.level() <= level);
        found.unwrap_or(Self { token: Token::Portable(crate::isa::Portable) })
    }

    /// The kernels of just this level; `None` where the CPU lacks it.
    #[must_use]
    pub fn at(level: Level) -> Option<Self> {
        Token::detect(level).map(|token| Self { token })
    }

    /// The kernels of a level that detection did not find: for tests that emulate instructions.
    /// `None` for a level of another architecture.
    ///
    /// # Safety
    /// Every instruction of the level must work where the kernels run.
    #[must_use]
    #[expect(unsafe_code, reason = "the caller vouches for the features")]
    pub unsafe fn assume(level: Level) -> Option<Self> {
        Token::assume(level).map(|token| Self { token })
    }

    /// Their level.
    #[must_use]
    pub fn level(self) -> Level {
        self.token.level()
    }
}

//! Lanes: a value of a [`Lanes`] type is `N` independent f32 problems advancing together.
//!
//! The encoder searches are written once, generic over `Lanes`, and hold one block per lane: each
//! lane then performs exactly the sequence of operations of the scalar algorithm, so the width
//! cannot change a bit. `f32` itself is the one-lane form, the reference; [`Wide`] holds registers of
//! a token's arithmetic (see [`crate::simd`]).

use core::ops::{Add, BitAnd, Div, Mul, Neg, Not, Sub};

use crate::simd::{F8, M8, MAGIC, Simd, each};

pub(crate) use crate::simd::nearest_int;

/// `N` independent f32 values. No operation mixes lanes except [`Lanes::any`] and [`Lanes::all`].
pub(crate) trait Lanes:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// The number of lanes.
    const N: usize;
    /// One truth value per lane.
    type Mask: Copy + BitAnd<Output = Self::Mask> + Not<Output = Self::Mask>;

    /// The number in every lane. `self` only says which lanes.
    fn splat(self, v: f32) -> Self;
    fn get(self, lane: usize) -> f32;
    fn set(&mut self, lane: usize, v: f32);
    fn sqrt(self) -> Self;
    fn abs(self) -> Self;
    /// `self < o ? self : o`: the second operand where either is NaN.
    fn min_lt(self, o: Self) -> Self;
    /// `self > o ? self : o`: the second operand where either is NaN.
    fn max_gt(self, o: Self) -> Self;
    fn gt(self, o: Self) -> Self::Mask;
    fn ge(self, o: Self) -> Self::Mask;
    fn eq(self, o: Self) -> Self::Mask;
    /// Whether any lane is set. `self` only says which lanes.
    fn any(self, m: Self::Mask) -> bool;
    /// `m ? a : b`.
    fn select(m: Self::Mask, a: Self, b: Self) -> Self;
    /// [`nearest_int`] for any value, as f32.
    fn nearest_wrapping(self) -> Self;
    /// `out[i]` holds in lane `l` the element `src[at[l] + i]`.
    fn columns<const LEN: usize>(src: &[f32], at: &[usize], out: &mut [Self; LEN]);

    #[inline(always)]
    fn all(self, m: Self::Mask) -> bool {
        !self.any(!m)
    }

    #[inline(always)]
    fn lt(self, o: Self) -> Self::Mask {
        o.gt(self)
    }

    #[inline(always)]
    fn le(self, o: Self) -> Self::Mask {
        o.ge(self)
    }

    /// True with NaN.
    #[inline(always)]
    fn ne(self, o: Self) -> Self::Mask {
        !self.eq(o)
    }

    /// [`nearest_int`] as f32, for values known to lie within ±4194303.
    #[inline(always)]
    fn nearest(self) -> Self {
        (self + self.splat(MAGIC)) - self.splat(MAGIC)
    }

    /// Clamps between integer bounds, then rounds: the same as rounding first.
    #[inline(always)]
    fn level(self, lo: Self, hi: Self) -> Self {
        self.max_gt(lo).min_lt(hi).nearest()
    }
}

impl Lanes for f32 {
    const N: usize = 1;
    type Mask = bool;

    #[inline(always)]
    fn splat(self, v: f32) -> Self {
        v
    }
    #[inline(always)]
    fn get(self, _: usize) -> f32 {
        self
    }
    #[inline(always)]
    fn set(&mut self, _: usize, v: f32) {
        *self = v;
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self::sqrt(self)
    }
    #[inline(always)]
    fn abs(self) -> Self {
        Self::abs(self)
    }
    #[inline(always)]
    fn min_lt(self, o: Self) -> Self {
        if self < o { self } else { o }
    }
    #[inline(always)]
    fn max_gt(self, o: Self) -> Self {
        if self > o { self } else { o }
    }
    #[inline(always)]
    fn gt(self, o: Self) -> bool {
        self > o
    }
    #[inline(always)]
    fn ge(self, o: Self) -> bool {
        self >= o
    }
    #[inline(always)]
    fn eq(self, o: Self) -> bool {
        self == o
    }
    #[inline(always)]
    fn any(self, m: bool) -> bool {
        m
    }
    #[inline(always)]
    fn select(m: bool, a: Self, b: Self) -> Self {
        if m { a } else { b }
    }
    #[inline(always)]
    fn nearest_wrapping(self) -> Self {
        nearest_int(self) as Self
    }
    #[inline(always)]
    fn columns<const LEN: usize>(src: &[f32], at: &[usize], out: &mut [Self; LEN]) {
        out.copy_from_slice(&src[at[0]..at[0] + LEN]);
    }
}

/// `8 * K` lanes: `K` registers of the token's arithmetic side by side. Two of them hide the latency
/// of one.
#[derive(Clone, Copy)]
pub(crate) struct Wide<S, const K: usize>(S, [F8; K]);

/// One truth value per lane of a [`Wide`].
#[derive(Clone, Copy)]
pub(crate) struct WideMask<const K: usize>([M8; K]);

impl<S: Simd, const K: usize> Wide<S, K> {
    /// Zero in every lane.
    #[inline(always)]
    pub(crate) fn zero(simd: S) -> Self {
        Self(simd, [[0.0; 8]; K])
    }

    #[inline(always)]
    fn map(self, f: impl Fn(S, F8) -> F8) -> Self {
        let mut out = self;
        for k in 0..K {
            out.1[k] = f(self.0, self.1[k]);
        }
        out
    }

    #[inline(always)]
    fn zip(self, o: Self, f: impl Fn(S, F8, F8) -> F8) -> Self {
        let mut out = self;
        for k in 0..K {
            out.1[k] = f(self.0, self.1[k], o.1[k]);
        }
        out
    }

    #[inline(always)]
    fn compare(self, o: Self, f: impl Fn(S, F8, F8) -> M8) -> WideMask<K> {
        let mut out = [[0; 8]; K];
        for k in 0..K {
            out[k] = f(self.0, self.1[k], o.1[k]);
        }
        WideMask(out)
    }

    /// Changes the bits of every lane.
    #[inline(always)]
    fn bits(self, f: impl Fn(u32) -> u32) -> Self {
        self.map(
            #[inline(always)]
            |_, x| {
                each(
                    x,
                    #[inline(always)]
                    |x| f32::from_bits(f(x.to_bits())),
                )
            },
        )
    }
}

macro_rules! operators {
    ($($Trait:ident $method:ident)+) => { $(
        impl<S: Simd, const K: usize> $Trait for Wide<S, K> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, o: Self) -> Self {
                self.zip(o, S::$method)
            }
        }
    )+ };
}
operators! { Add add  Sub sub  Mul mul  Div div }

impl<S: Simd, const K: usize> Neg for Wide<S, K> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        self.bits(|x| x ^ 1 << 31)
    }
}

impl<const K: usize> BitAnd for WideMask<K> {
    type Output = Self;
    #[inline(always)]
    fn bitand(mut self, o: Self) -> Self {
        for k in 0..K {
            for i in 0..8 {
                self.0[k][i] &= o.0[k][i];
            }
        }
        self
    }
}

impl<const K: usize> Not for WideMask<K> {
    type Output = Self;
    #[inline(always)]
    fn not(mut self) -> Self {
        for m in self.0.as_flattened_mut() {
            *m = !*m;
        }
        self
    }
}

impl<S: Simd, const K: usize> Lanes for Wide<S, K> {
    const N: usize = 8 * K;
    type Mask = WideMask<K>;

    #[inline(always)]
    fn splat(self, v: f32) -> Self {
        Self(self.0, [self.0.splat(v); K])
    }
    #[inline(always)]
    fn get(self, lane: usize) -> f32 {
        self.1.as_flattened()[lane]
    }
    #[inline(always)]
    fn set(&mut self, lane: usize, v: f32) {
        self.1.as_flattened_mut()[lane] = v;
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        self.map(S::sqrt)
    }
    #[inline(always)]
    fn abs(self) -> Self {
        self.bits(|x| x & 0x7fff_ffff)
    }
    #[inline(always)]
    fn min_lt(self, o: Self) -> Self {
        self.zip(o, S::min)
    }
    #[inline(always)]
    fn max_gt(self, o: Self) -> Self {
        self.zip(o, S::max)
    }
    #[inline(always)]
    fn gt(self, o: Self) -> WideMask<K> {
        self.compare(o, S::gt)
    }
    #[inline(always)]
    fn ge(self, o: Self) -> WideMask<K> {
        self.compare(o, S::ge)
    }
    #[inline(always)]
    fn eq(self, o: Self) -> WideMask<K> {
        self.compare(o, S::eq)
    }
    #[inline(always)]
    fn any(self, m: WideMask<K>) -> bool {
        let mut all = m.0[0];
        for k in 1..K {
            for i in 0..8 {
                all[i] |= m.0[k][i];
            }
        }
        self.0.any(all)
    }
    #[inline(always)]
    fn select(m: WideMask<K>, a: Self, b: Self) -> Self {
        let mut out = a;
        for k in 0..K {
            out.1[k] = a.0.select(m.0[k], a.1[k], b.1[k]);
        }
        out
    }
    #[inline(always)]
    fn nearest_wrapping(self) -> Self {
        self.map(S::nearest_wrapping)
    }
    #[inline(always)]
    fn columns<const LEN: usize>(src: &[f32], at: &[usize], out: &mut [Self; LEN]) {
        let simd = out[0].0;
        for k in 0..K {
            let rows: [&[f32; LEN]; 8] = core::array::from_fn(
                #[inline(always)]
                |l| src[at[8 * k + l]..].first_chunk().expect("a block lies within the rows"),
            );
            for (i, columns) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                let mut square = [[0.0; 8]; 8];
                for l in 0..8 {
                    square[l] = rows[l].as_chunks().0[i];
                }
                for (column, values) in columns.iter_mut().zip(simd.transpose(square)) {
                    column.1[k] = values;
                }
            }
        }
    }
}

//! Lanes: a value of a [`Lanes`] type is `N` independent f32 problems advancing together.
//!
//! The encoder searches are written once, generic over `Lanes`, and hold one block per lane: each
//! lane then performs exactly the sequence of operations of the scalar algorithm, so the width
//! cannot change a bit. `f32` itself is the one-lane form, the reference. [`Pack`] is a plain array:
//! one operation per loop, which the compiler turns into vector code inside a function compiled for
//! the features (see [`crate::simd`]).

use core::ops::{Add, BitAnd, Div, Mul, Neg, Not, Sub};

/// 1.5 * 2^23: adding it leaves the nearest integer (ties to even) in the low mantissa bits.
const MAGIC: f32 = 12_582_912.0;

/// ggml's `nearest_int`. Wraps outside of ±4194303, as ggml's does.
#[inline(always)]
pub(crate) fn nearest_int(v: f32) -> i32 {
    ((v + MAGIC).to_bits() & 0x7f_ffff) as i32 - 0x40_0000
}

/// `N` independent f32 values. No operation mixes lanes except [`Lanes::any`] and [`Lanes::all`].
pub(crate) trait Lanes:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// The number of lanes.
    const N: usize;
    /// One truth value per lane.
    type Mask: Copy + BitAnd<Output = Self::Mask> + Not<Output = Self::Mask>;

    fn splat(v: f32) -> Self;
    fn get(self, lane: usize) -> f32;
    fn set(&mut self, lane: usize, v: f32);
    fn sqrt(self) -> Self;
    fn abs(self) -> Self;
    /// `self < o ? self : o`: the second operand where either is NaN.
    fn min_lt(self, o: Self) -> Self;
    /// `self > o ? self : o`: the second operand where either is NaN.
    fn max_gt(self, o: Self) -> Self;
    fn gt(self, o: Self) -> Self::Mask;
    fn lt(self, o: Self) -> Self::Mask;
    fn le(self, o: Self) -> Self::Mask;
    fn ge(self, o: Self) -> Self::Mask;
    fn eq(self, o: Self) -> Self::Mask;
    fn ne(self, o: Self) -> Self::Mask;
    fn any(m: Self::Mask) -> bool;
    /// `m ? a : b`.
    fn select(m: Self::Mask, a: Self, b: Self) -> Self;
    /// [`nearest_int`] for any value, as f32.
    fn nearest_wrapping(self) -> Self;
    /// `out[i]` holds in lane `l` the element `src[at[l] + i]`.
    fn columns<const LEN: usize>(src: &[f32], at: &[usize], out: &mut [Self; LEN]);

    #[inline(always)]
    fn all(m: Self::Mask) -> bool {
        !Self::any(!m)
    }

    /// [`nearest_int`] as f32, for values known to lie within ±4194303.
    #[inline(always)]
    fn nearest(self) -> Self {
        (self + Self::splat(MAGIC)) - Self::splat(MAGIC)
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
    fn splat(v: f32) -> Self {
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
    fn lt(self, o: Self) -> bool {
        self < o
    }
    #[inline(always)]
    fn le(self, o: Self) -> bool {
        self <= o
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
    fn ne(self, o: Self) -> bool {
        self != o
    }
    #[inline(always)]
    fn any(m: bool) -> bool {
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

/// `L` lanes in a plain array.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(crate) struct Pack<const L: usize>([f32; L]);

/// One truth value per lane of a [`Pack`].
#[derive(Clone, Copy)]
pub(crate) struct PackMask<const L: usize>([bool; L]);

/// One operation per loop over constant `L`: the form that vectorises.
#[inline(always)]
fn map<const L: usize>(a: Pack<L>, f: impl Fn(f32) -> f32) -> Pack<L> {
    let mut out = [0.0; L];
    for i in 0..L {
        out[i] = f(a.0[i]);
    }
    Pack(out)
}

#[inline(always)]
fn zip<const L: usize>(a: Pack<L>, b: Pack<L>, f: impl Fn(f32, f32) -> f32) -> Pack<L> {
    let mut out = [0.0; L];
    for i in 0..L {
        out[i] = f(a.0[i], b.0[i]);
    }
    Pack(out)
}

#[inline(always)]
fn compare<const L: usize>(a: Pack<L>, b: Pack<L>, f: impl Fn(f32, f32) -> bool) -> PackMask<L> {
    let mut out = [false; L];
    for i in 0..L {
        out[i] = f(a.0[i], b.0[i]);
    }
    PackMask(out)
}

macro_rules! operator {
    ($($Trait:ident $method:ident $op:tt)+) => { $(
        impl<const L: usize> $Trait for Pack<L> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, o: Self) -> Self {
                zip(self, o, #[inline(always)] |x, y| x $op y)
            }
        }
    )+ };
}
operator! { Add add +  Sub sub -  Mul mul *  Div div / }

impl<const L: usize> Neg for Pack<L> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        map(
            self,
            #[inline(always)]
            |x| -x,
        )
    }
}

impl<const L: usize> BitAnd for PackMask<L> {
    type Output = Self;
    #[inline(always)]
    fn bitand(self, o: Self) -> Self {
        Self(core::array::from_fn(
            #[inline(always)]
            |i| self.0[i] & o.0[i],
        ))
    }
}

impl<const L: usize> Not for PackMask<L> {
    type Output = Self;
    #[inline(always)]
    fn not(self) -> Self {
        Self(self.0.map(
            #[inline(always)]
            |x| !x,
        ))
    }
}

macro_rules! compare {
    ($($name:ident $op:tt)+) => { $(
        #[inline(always)]
        fn $name(self, o: Self) -> PackMask<L> {
            compare(self, o, #[inline(always)] |x, y| x $op y)
        }
    )+ };
}

impl<const L: usize> Lanes for Pack<L> {
    const N: usize = L;
    type Mask = PackMask<L>;

    #[inline(always)]
    fn splat(v: f32) -> Self {
        Self([v; L])
    }
    #[inline(always)]
    fn get(self, lane: usize) -> f32 {
        self.0[lane]
    }
    #[inline(always)]
    fn set(&mut self, lane: usize, v: f32) {
        self.0[lane] = v;
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        map(
            self,
            #[inline(always)]
            |x| x.sqrt(),
        )
    }
    #[inline(always)]
    fn abs(self) -> Self {
        map(
            self,
            #[inline(always)]
            |x| x.abs(),
        )
    }
    #[inline(always)]
    fn min_lt(self, o: Self) -> Self {
        zip(
            self,
            o,
            #[inline(always)]
            |x, y| if x < y { x } else { y },
        )
    }
    #[inline(always)]
    fn max_gt(self, o: Self) -> Self {
        zip(
            self,
            o,
            #[inline(always)]
            |x, y| if x > y { x } else { y },
        )
    }
    compare! { gt >  lt <  le <=  ge >=  eq ==  ne != }
    #[inline(always)]
    fn any(m: PackMask<L>) -> bool {
        m.0.iter().fold(
            false,
            #[inline(always)]
            |a, &b| a | b,
        )
    }
    #[inline(always)]
    fn select(m: PackMask<L>, a: Self, b: Self) -> Self {
        Self(core::array::from_fn(
            #[inline(always)]
            |i| if m.0[i] { a.0[i] } else { b.0[i] },
        ))
    }
    #[inline(always)]
    fn nearest_wrapping(self) -> Self {
        map(
            self,
            #[inline(always)]
            |x| nearest_int(x) as f32,
        )
    }
    #[inline(always)]
    fn columns<const LEN: usize>(src: &[f32], at: &[usize], out: &mut [Self; LEN]) {
        for l in (0..L).step_by(4) {
            let rows: [&[f32; LEN]; 4] = core::array::from_fn(
                #[inline(always)]
                |k| row(src, at[l + k]),
            );
            for i in (0..LEN).step_by(4) {
                for (k, column) in transpose4(rows, i).into_iter().enumerate() {
                    out[i + k].0[l..l + 4].copy_from_slice(&column);
                }
            }
        }
    }
}

#[inline(always)]
fn row<const LEN: usize>(src: &[f32], at: usize) -> &[f32; LEN] {
    src[at..].first_chunk().expect("a block lies within the rows")
}

/// Columns `i..i + 4` of four rows. In two steps of pairs, as the vector units shuffle.
#[inline(always)]
fn transpose4<const LEN: usize>(rows: [&[f32; LEN]; 4], i: usize) -> [[f32; 4]; 4] {
    let r = |k: usize| -> [f32; 4] { [rows[k][i], rows[k][i + 1], rows[k][i + 2], rows[k][i + 3]] };
    let (a, b, c, d) = (r(0), r(1), r(2), r(3));
    let (p, q) = ([a[0], b[0], a[1], b[1]], [c[0], d[0], c[1], d[1]]);
    let (s, t) = ([a[2], b[2], a[3], b[3]], [c[2], d[2], c[3], d[3]]);
    [[p[0], p[1], q[0], q[1]], [p[2], p[3], q[2], q[3]], [s[0], s[1], t[0], t[1]], [s[2], s[3], t[2], t[3]]]
}

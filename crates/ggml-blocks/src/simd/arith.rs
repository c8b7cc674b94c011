//! Arithmetic on eight floats: one instruction each on AVX2, plain loops elsewhere.

/// Eight floats, none of which knows the others.
pub type F8 = [f32; 8];

/// Eight truth values: all bits set, or none.
pub type M8 = [u32; 8];

/// 1.5 * 2^23: adding it leaves the nearest integer (ties to even) in the low mantissa bits.
pub(crate) const MAGIC: f32 = 12_582_912.0;

/// ggml's `nearest_int`. Wraps outside of ±4194303, as ggml's does.
#[inline(always)]
pub(crate) fn nearest_int(v: f32) -> i32 {
    ((v + MAGIC).to_bits() & 0x7f_ffff) as i32 - 0x40_0000
}

/// `array::map` that always inlines: the standard one is a call, compiled for the baseline.
#[inline(always)]
pub(crate) fn each<T: Copy, U: Copy + Default, const N: usize>(x: [T; N], of: impl Fn(T) -> U) -> [U; N] {
    let mut out = [U::default(); N];
    for i in 0..N {
        out[i] = of(x[i]);
    }
    out
}

macro_rules! each {
    ($($(#[$doc:meta])* $name:ident ($($a:ident),+) -> $out:ident $e:expr;)+) => { $(
        $(#[$doc])*
        #[inline(always)]
        fn $name(self, $($a: F8),+) -> $out {
            core::array::from_fn(#[inline(always)] |i| { $(let $a = $a[i];)+ $e })
        }
    )+ };
}

#[inline(always)]
fn mask(b: bool) -> u32 {
    if b { u32::MAX } else { 0 }
}

/// The operations, each on every lane for itself and rounded once.
pub trait Arith: Copy {
    each! {
        /// `a + b`.
        add(a, b) -> F8 a + b;
        /// `a - b`.
        sub(a, b) -> F8 a - b;
        /// `a * b`.
        mul(a, b) -> F8 a * b;
        /// `a / b`.
        div(a, b) -> F8 a / b;
        /// The square root.
        sqrt(a) -> F8 a.sqrt();
        /// `a < b ? a : b`: `b` where either is NaN.
        min(a, b) -> F8 if a < b { a } else { b };
        /// `a > b ? a : b`: `b` where either is NaN.
        max(a, b) -> F8 if a > b { a } else { b };
        /// `a > b`, false with NaN.
        gt(a, b) -> M8 mask(a > b);
        /// `a >= b`, false with NaN.
        ge(a, b) -> M8 mask(a >= b);
        /// `a == b`, false with NaN.
        eq(a, b) -> M8 mask(a == b);
        /// `nearest_int` as a float, wrapping as ggml's.
        nearest_wrapping(a) -> F8 nearest_int(a) as f32;
    }

    /// The integer part, the least integer for NaN. Lanes beyond ±2^31 come out as the CPU likes:
    /// callers have none.
    #[inline(always)]
    fn truncate(self, a: F8) -> [i32; 8] {
        each(
            a,
            #[inline(always)]
            |a| if a.is_nan() { i32::MIN } else { a as i32 },
        )
    }

    /// The integer away from zero: of 0.1 it is 1. Magnitudes are below 2^22.
    #[inline(always)]
    fn away(self, a: F8) -> [i32; 8] {
        each(
            a,
            #[inline(always)]
            |a| {
                let size = a.abs() as i32;
                let size = size + i32::from((size as f32) < a.abs());
                if a.is_sign_negative() { -size } else { size }
            },
        )
    }

    /// The number in every lane.
    #[inline(always)]
    fn splat(self, v: f32) -> F8 {
        [v; 8]
    }

    /// `m ? a : b`.
    #[inline(always)]
    fn select(self, m: M8, a: F8, b: F8) -> F8 {
        core::array::from_fn(
            #[inline(always)]
            |i| if m[i] != 0 { a[i] } else { b[i] },
        )
    }

    /// Whether any lane is set.
    #[inline(always)]
    fn any(self, m: M8) -> bool {
        m.iter().fold(0, |a, b| a | b) != 0
    }

    /// Rows become columns.
    #[inline(always)]
    fn transpose(self, rows: [F8; 8]) -> [F8; 8] {
        let mut out = rows;
        for i in 0..8 {
            for k in 0..8 {
                out[i][k] = rows[k][i];
            }
        }
        out
    }

    /// The two halves of every four lanes side by side, so that an operation on both results folds
    /// the fours of `a` and of `b` to twos. Which half comes first is not said.
    #[inline(always)]
    fn halves_of_fours(self, a: F8, b: F8) -> [F8; 2] {
        [[a[2], a[3], b[0], b[1], a[6], a[7], b[4], b[5]], [a[0], a[1], b[2], b[3], a[4], a[5], b[6], b[7]]]
    }

    /// The same for the twos that came out of it.
    #[inline(always)]
    fn halves_of_twos(self, a: F8, b: F8) -> [F8; 2] {
        [[a[0], a[2], b[0], b[2], a[4], a[6], b[4], b[6]], [a[1], a[3], b[1], b[3], a[5], a[7], b[5], b[7]]]
    }

    /// The same for all eight lanes.
    #[inline(always)]
    fn halves_of_eights(self, a: F8, b: F8) -> [F8; 2] {
        [[a[4], a[5], a[6], a[7], b[0], b[1], b[2], b[3]], [a[0], a[1], a[2], a[3], b[4], b[5], b[6], b[7]]]
    }
}

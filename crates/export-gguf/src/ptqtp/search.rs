//! Which trits a weight gets.

/// The trits of one weight, plane after plane; planes that are not in use have 0.
pub(super) type Tuple = [i8; 3];

/// The tuples of one plane, in the order in which the first of equally near ones wins: fewer non-zero
/// trits first, among those finer planes first, then -1 before 1.
pub(super) const ONE: [Tuple; 3] = tuples();
/// The same of two planes.
pub(super) const TWO: [Tuple; 9] = tuples();
/// The same of three.
pub(super) const THREE: [Tuple; 27] = tuples();

/// All tuples of `log3(N)` planes, in order.
const fn tuples<const N: usize>() -> [Tuple; N] {
    // Which planes are set, coarsest in the lowest bit.
    const SUPPORTS: [[u8; 8]; 3] =
        [[0, 1, 0, 0, 0, 0, 0, 0], [0, 2, 1, 3, 0, 0, 0, 0], [0, 4, 2, 1, 6, 5, 3, 7]];
    let planes = match N {
        3 => 1,
        9 => 2,
        _ => 3,
    };
    let mut out = [[0; 3]; N];
    let mut at = 0;
    let mut i = 0;
    while i < 1 << planes {
        let support = SUPPORTS[planes - 1][i];
        let mut signs = 0_u8;
        while signs < 1 << support.count_ones() {
            // The first plane's sign is the highest bit.
            let mut bit = support.count_ones();
            let mut plane = 0;
            while plane < planes {
                if support >> plane & 1 == 1 {
                    bit -= 1;
                    out[at][plane] = if signs >> bit & 1 == 1 { 1 } else { -1 };
                }
                plane += 1;
            }
            at += 1;
            signs += 1;
        }
        i += 1;
    }
    out
}

/// The tuples of so many planes.
pub(super) fn all(planes: usize) -> &'static [Tuple] {
    match planes {
        1 => &ONE,
        2 => &TWO,
        _ => &THREE,
    }
}

/// What a tuple stands for, in f32 from the first plane on.
#[inline(always)]
pub(super) fn value(planes: usize, scales: [f32; 3], tuple: Tuple) -> f32 {
    let mut sum = scales[0] * f32::from(tuple[0]);
    for p in 1..planes {
        sum += scales[p] * f32::from(tuple[p]);
    }
    sum
}

/// The nearest tuple for each weight; none for weights that are not finite.
pub(super) fn nearest(planes: usize, weights: &[f32], scales: [f32; 3], out: &mut [Tuple]) {
    let tuples = all(planes);
    let values: Vec<f32> = tuples.iter().map(|t| value(planes, scales, *t)).collect();
    for (&x, out) in weights.iter().zip(out) {
        let square = |v: f32| (x - v) * (x - v);
        let mut best = 0;
        if x.is_finite() {
            let mut least = square(values[0]);
            for i in 1..values.len() {
                if square(values[i]) < least {
                    (best, least) = (i, square(values[i]));
                }
            }
        }
        *out = tuples[best];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuples_stand_in_their_order() {
        let text = |tuples: &[Tuple], planes| {
            let sign = |t: &i8| ['-', '0', '+'][(t + 1) as usize];
            tuples.iter().map(|t| t[..planes].iter().map(sign).collect()).collect::<Vec<String>>().join(" ")
        };
        assert_eq!(text(&ONE, 1), "0 - +");
        assert_eq!(text(&TWO, 2), "00 0- 0+ -0 +0 -- -+ +- ++");
        assert_eq!(
            text(&THREE, 3),
            "000 00- 00+ 0-0 0+0 -00 +00 0-- 0-+ 0+- 0++ -0- -0+ +0- +0+ --0 -+0 +-0 ++0 \
             --- --+ -+- -++ +-- +-+ ++- +++"
        );
    }
}

//! The scale search of IQ2 and IQ3: try a row of scales, snap every group of weights to the grid under
//! each, and keep the scale that fits best.
//!
//! The scales are the lanes: levels and sums of all of them advance together, each by ggml's
//! sequence of operations. Only snapping goes group by group, with the candidates as lanes.

use super::codebook::Codebook;
use super::nearest::{nearest, terms};
use crate::lanes::nearest_int;
use crate::simd::{Simd, SimdOp};

/// The weights of a sub-block: magnitudes `x` (a flipped sign makes one negative), weights `w` and
/// their square roots, which are the weights of the search on the grid.
pub(super) struct Sub<const N: usize> {
    pub(super) x: [f32; N],
    pub(super) w: [f32; N],
    pub(super) root: [f32; N],
}

/// How a format walks through the scales.
pub(super) struct Steps {
    /// The steps are `first..first + count`.
    pub(super) first: i8,
    pub(super) count: usize,
    /// What one step adds to the level that the largest weight is scaled to.
    pub(super) by: f32,
    /// Which groups are snapped again under the scale found.
    pub(super) again: Again,
}

/// Which groups are snapped again under the scale found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// All.
    All,
    /// All, if one was off the grid or no scale was found.
    AllIfAny,
    /// Those off the grid.
    Off,
}

/// The result for a sub-block.
pub(super) struct Found<const K: usize> {
    /// Negative if the weights are better with all signs changed.
    pub(super) scale: f32,
    /// One code on the grid per group.
    pub(super) codes: [u16; K],
}

/// The values of the levels, repeated as [`super::nearest::Terms`] wants them.
#[inline(always)]
const fn values(bits: u32) -> [f32; 8] {
    if bits == 2 {
        [1.0, 3.0, 5.0, 5.0, 1.0, 3.0, 5.0, 5.0]
    } else {
        [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0]
    }
}

#[inline(always)]
const fn top_level(bits: u32) -> i32 {
    if bits == 2 { 2 } else { 7 }
}

/// The level of `x` under the inverse scale `id`.
#[inline(always)]
fn level<const BITS: u32>(id: f32, x: f32) -> u32 {
    nearest_int(0.5 * (id * x - 1.0)).clamp(0, top_level(BITS)) as u32
}

/// Searches one sub-block of `N` weights in `K` groups of `G` with `BITS` bits per level. `T` is
/// `steps.count` rounded up to whole vectors, at most 32. The largest weight is `max` (or what stands for
/// it), `scale` is the scale if no step gives a fit.
#[inline(always)]
pub(super) fn search<
    S: Simd,
    const BITS: u32,
    const G: usize,
    const N: usize,
    const K: usize,
    const T: usize,
>(
    simd: S,
    book: &Codebook,
    steps: &Steps,
    sub: &Sub<N>,
    max: f32,
    scale: f32,
) -> Found<K> {
    // A call of its own, which formats of the same shape share.
    simd.run(Search::<BITS, G, N, K, T> { book, steps, sub, max, scale })
}

struct Search<'a, const BITS: u32, const G: usize, const N: usize, const K: usize, const T: usize> {
    book: &'a Codebook,
    steps: &'a Steps,
    sub: &'a Sub<N>,
    max: f32,
    scale: f32,
}

impl<const BITS: u32, const G: usize, const N: usize, const K: usize, const T: usize> SimdOp
    for Search<'_, BITS, G, N, K, T>
{
    type Output = Found<K>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Found<K> {
        let Self { book, steps, sub, max, scale } = self;
        let base = (2 * top_level(BITS) + 1) as f32;
        let mut ids = [0.0; T];
        let mut scales = [0.0; T];
        for t in 0..T {
            ids[t] = (base + (i32::from(steps.first) + t as i32) as f32 * steps.by) / max;
            scales[t] = 1.0 / ids[t];
        }
        let (x, root) = (sub.x.as_chunks::<G>().0, sub.root.as_chunks::<G>().0);
        let mut codes = [[0; T]; K];
        for (codes, x) in codes.iter_mut().zip(x) {
            for i in 0..G {
                for t in 0..T {
                    codes[t] |= level::<BITS>(ids[t], x[i]) << (BITS * i as u32);
                }
            }
        }

        // Which (group, step) are off the grid: first those with one vector of candidates, then the rest,
        // so that the inner loops branch predictably.
        let (mut short, mut long) = ([[0_u16; T]; K], [[0_u16; T]; K]);
        let (short, long) = (short.as_flattened_mut(), long.as_flattened_mut());
        let (mut shorts, mut longs) = (0, 0);
        let mut off = [0_u32; K];
        for k in 0..K {
            for t in 0..steps.count {
                let vectors = book.vectors(codes[k][t]);
                let place = (k * 32 + t) as u16;
                short[shorts] = place;
                long[longs] = place;
                shorts += usize::from(vectors == 1);
                longs += usize::from(vectors > 1);
                off[k] |= u32::from(vectors > 0) << t;
            }
        }
        for &place in &short[..shorts] {
            let (k, t) = (usize::from(place / 32), usize::from(place % 32));
            let terms = terms(&values(BITS), scales[t], &x[k], &root[k]);
            let candidates = &book.candidates(codes[k][t])[..1];
            codes[k][t] = u32::from(nearest::<S, G, BITS>(simd, candidates, &terms));
        }
        for &place in &long[..longs] {
            let (k, t) = (usize::from(place / 32), usize::from(place % 32));
            let terms = terms(&values(BITS), scales[t], &x[k], &root[k]);
            codes[k][t] = u32::from(nearest::<S, G, BITS>(simd, book.candidates(codes[k][t]), &terms));
        }

        let (mut sumqx, mut sumq2) = ([0.0; T], [0.0; T]);
        for k in 0..K {
            for i in 0..G {
                let w = sub.w[k * G + i];
                let wx = w * sub.x[k * G + i];
                for t in 0..T {
                    let q = value::<BITS>(codes[k][t], i);
                    sumqx[t] += wx * q;
                    sumq2[t] += w * q * q;
                }
            }
        }
        let mut found = Found { scale, codes: [0; K] };
        let mut again = if steps.again == Again::Off { [false; K] } else { [true; K] };
        let mut best = 0.0;
        let mut pick = None;
        for t in 0..steps.count {
            if sumq2[t] > 0.0 && sumqx[t] * sumqx[t] > best * sumq2[t] {
                found.scale = sumqx[t] / sumq2[t];
                best = found.scale * sumqx[t];
                pick = Some(t);
            }
        }
        if let Some(t) = pick {
            for k in 0..K {
                found.codes[k] = codes[k][t] as u16;
                again[k] = off[k] >> t & 1 == 1;
            }
        }
        match steps.again {
            Again::All => again = [true; K],
            Again::AllIfAny => again = [again.contains(&true); K],
            Again::Off => {}
        }
        if again.contains(&true) && found.scale > 0.0 {
            snap_again::<S, BITS, G, N, K>(simd, book, sub, again, &mut found);
        }
        found
    }
}

/// The value that level `i` of a code stands for.
#[inline(always)]
fn value<const BITS: u32>(code: u32, i: usize) -> f32 {
    let level = (code >> (BITS * i as u32)) & ((1 << BITS) - 1);
    (2 * level + 1) as i32 as f32
}

/// Snaps the chosen groups under the scale found, then fits the scale to the levels.
#[inline(always)]
fn snap_again<S: Simd, const BITS: u32, const G: usize, const N: usize, const K: usize>(
    simd: S,
    book: &Codebook,
    sub: &Sub<N>,
    again: [bool; K],
    found: &mut Found<K>,
) {
    let id = 1.0 / found.scale;
    let (x, root) = (sub.x.as_chunks::<G>().0, sub.root.as_chunks::<G>().0);
    for k in 0..K {
        if !again[k] {
            continue;
        }
        let mut code = 0;
        for i in 0..G {
            code |= level::<BITS>(id, x[k][i]) << (BITS * i as u32);
        }
        found.codes[k] = if book.vectors(code) == 0 {
            code as u16
        } else {
            let terms = terms(&values(BITS), found.scale, &x[k], &root[k]);
            nearest::<S, G, BITS>(simd, book.candidates(code), &terms)
        };
    }
    let (mut sumqx, mut sumq2) = (0.0, 0.0);
    for k in 0..K {
        for i in 0..G {
            let w = sub.w[k * G + i];
            let q = value::<BITS>(u32::from(found.codes[k]), i);
            sumqx += w * sub.x[k * G + i] * q;
            sumq2 += w * q * q;
        }
    }
    if sumq2 > 0.0 {
        found.scale = sumqx / sumq2;
    }
}

//! What an encoder needs to know about a codebook: which level patterns stand in it, and for every
//! pattern that does not, the points that ggml compares.
//!
//! A *code* packs the levels of one group, `bits` each, first weight lowest. The points compared are
//! those of the nearest few distances from the code, ordered by (distance, index): a total order, so
//! the lists here are ggml's whatever sort made them. They are built on first use, once per process;
//! decoding never touches them.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use crate::grid;

/// Eight candidate codes, one per lane.
pub(super) type Candidates = [u16; 8];

/// A codebook and the candidate lists of every code off it.
pub(super) struct Codebook {
    /// Per code: low 8 bits the number of candidate vectors, 0 for a code on the grid; above them the
    /// first vector's position, or the grid index.
    entries: Vec<u32>,
    lists: Vec<Candidates>,
}

/// The shape of a codebook's patterns.
#[derive(Clone, Copy)]
struct Shape {
    /// Weights per group.
    group: u32,
    /// Bits per level in a code.
    bits: u32,
    /// Levels per weight.
    levels: u16,
    /// How many different distances the candidates may have.
    shells: usize,
}

impl Codebook {
    /// The number of candidate vectors of a code, 0 if it is a point of the grid.
    #[inline(always)]
    pub(super) fn vectors(&self, code: u32) -> u32 {
        self.entries[code as usize] & 0xFF
    }

    /// The candidates of a code off the grid, never empty. In list order they stand lane by lane:
    /// lane 0 of every vector, then lane 1 and so on; the end is filled with the first.
    #[inline(always)]
    pub(super) fn candidates(&self, code: u32) -> &[Candidates] {
        let entry = self.entries[code as usize];
        let start = (entry >> 8) as usize;
        &self.lists[start..start + (entry & 0xFF) as usize]
    }

    /// The index of a code that is on the grid.
    #[inline(always)]
    pub(super) fn index(&self, code: u16) -> u16 {
        (self.entries[usize::from(code)] >> 8) as u16
    }

    fn new(codes: &[u16], shape: Shape) -> Self {
        let Shape { group, bits, levels, shells } = shape;
        let half_bits = group / 2 * bits;
        let halves: Vec<u16> = (0..1 << half_bits).filter(|&half| valid(half, shape)).collect();
        let top = halves.last().copied().unwrap_or(0);
        // Distances of all points from every half of a code; a code's are the sums of two rows.
        let rows = |shift: u32| -> Vec<Vec<u8>> {
            let mask = (1 << half_bits) - 1;
            let row = |half: u16| codes.iter().map(|c| distance(half, (c >> shift) & mask, shape)).collect();
            (0..=top).map(|half| if valid(half, shape) { row(half) } else { Vec::new() }).collect()
        };
        let (low, high) = (rows(0), rows(half_bits));

        let mut book = Self { entries: vec![0; 1 << (group * bits)], lists: Vec::new() };
        let mut distances = vec![0; codes.len()];
        let mut found = Vec::new();
        for &hi in &halves {
            for &lo in &halves {
                let code = hi << half_bits | lo;
                if let Ok(index) = codes.binary_search(&code) {
                    book.entries[usize::from(code)] = (index as u32) << 8;
                    continue;
                }
                for ((d, a), b) in distances.iter_mut().zip(&low[usize::from(lo)]).zip(&high[usize::from(hi)])
                {
                    *d = a + b;
                }
                nearest_shells(&distances, shells, &mut found);
                let start = book.lists.len() as u32;
                let vectors = found.len().div_ceil(8);
                for v in 0..vectors {
                    let candidate = |lane: usize| found.get(lane * vectors + v).unwrap_or(&found[0]).1;
                    book.lists.push(std::array::from_fn(|lane| codes[candidate(lane)]));
                }
                book.entries[usize::from(code)] = start << 8 | vectors as u32;
            }
        }
        debug_assert!(levels <= 1 << bits);
        book
    }
}

/// The codes of a grid's points: a level is the rank of its magnitude among the grid's.
fn codes<const N: usize>(points: &[[u8; N]], shape: Shape) -> Vec<u16> {
    let values: BTreeSet<i8> = points.as_flattened().iter().map(|&byte| byte as i8).collect();
    let level = |&byte: &u8| values.range(..byte as i8).count() as u16;
    let code = |point: &[u8; N]| point.iter().rev().fold(0, |code, byte| code << shape.bits | level(byte));
    points.iter().map(code).collect()
}

/// Whether every level of half a code exists.
fn valid(half: u16, shape: Shape) -> bool {
    (0..shape.group / 2).all(|i| digit(half, i, shape) < shape.levels)
}

fn digit(code: u16, i: u32, shape: Shape) -> u16 {
    (code >> (i * shape.bits)) & ((1 << shape.bits) - 1)
}

/// The squared distance of two half codes: at most 98, so that the sum of two fits in a byte.
fn distance(a: u16, b: u16, shape: Shape) -> u8 {
    let square = |i| u32::from(digit(a, i, shape).abs_diff(digit(b, i, shape))).pow(2);
    (0..shape.group / 2).map(square).sum::<u32>() as u8
}

/// The points of the `shells` smallest distances as (distance, index), in this order.
fn nearest_shells(distances: &[u8], shells: usize, found: &mut Vec<(u8, usize)>) {
    let mut limit = distances.iter().fold(u8::MAX, |m, &d| m.min(d));
    for _ in 1..shells {
        limit = distances.iter().fold(u8::MAX, |m, &d| if d > limit { m.min(d) } else { m });
    }
    found.clear();
    for (start, chunk) in (0..).step_by(32).zip(distances.chunks(32)) {
        if chunk.iter().fold(false, |any, &d| any | (d <= limit)) {
            found.extend(chunk.iter().zip(start..).filter(|&(&d, _)| d <= limit).map(|(&d, i)| (d, i)));
        }
    }
    found.sort_unstable();
}

macro_rules! codebooks {
    ($($(#[$doc:meta])* $name:ident: $grid:ident, $shape:expr;)+) => { $(
        $(#[$doc])*
        pub(super) fn $name() -> &'static Codebook {
            static BOOK: OnceLock<Codebook> = OnceLock::new();
            BOOK.get_or_init(|| Codebook::new(&codes(&grid::$grid.map(|point| point.to_le_bytes()), $shape), $shape))
        }
    )+ };
}

const PAIRS: Shape = Shape { group: 8, bits: 2, levels: 3, shells: 2 };
const TRIPLES: Shape = Shape { group: 4, bits: 3, levels: 8, shells: 2 };

codebooks! {
    /// `IQ1_S` and `IQ1_M`: 2048 points of -1, 0, 1.
    iq1: IQ1S, Shape { shells: 3, ..PAIRS };
    /// `IQ2_XXS`: 256 points of 1, 3, 5.
    iq2_xxs: IQ2XXS, PAIRS;
    /// `IQ2_XS`: 512 points of 1, 3, 5.
    iq2_xs: IQ2XS, PAIRS;
    /// `IQ2_S`: 1024 points of 1, 3, 5.
    iq2_s: IQ2S, Shape { shells: 1, ..PAIRS };
    /// `IQ3_XXS`: 256 points of 1, 3 .. 15.
    iq3_xxs: IQ3XXS, TRIPLES;
    /// `IQ3_S`: 512 points of 1, 3 .. 15.
    iq3_s: IQ3S, Shape { shells: 3, ..TRIPLES };
}

#[cfg(test)]
mod tests;

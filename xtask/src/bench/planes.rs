//! Plane sets against what a caller would do without them: a folded pair and planes in one pass against a
//! product per plane (activations quantized once, outputs added), and `TQ2_0` against `Q4_K`. All take
//! turns.

use super::kernels::{noise, weights};
use super::median;
use crate::util::Outcome;
use ggml_kernels::{GgmlType, Kernels, Lhs, Packed, PlaneSet, Rhs, Scratch};
use std::time::Instant;

/// What a case multiplies: rows, outputs and inputs, and whether the weights come from memory, where all
/// copies of a side together fill 512 MiB. Of 512 outputs and 1024 inputs every side's weights stay in an L2
/// cache, of 4096 and 4096 in an L3 cache.
const CASES: [(usize, [usize; 2], bool); 8] = [
    (1, L2, false),
    (4, L2, false),
    (1, L3, false),
    (4, L3, false),
    (16, L3, false),
    (128, L3, false),
    (512, L3, false),
    (1, L3, true),
];
const L2: [usize; 2] = [512, 1024];
const L3: [usize; 2] = [4096, 4096];
const FROM_MEMORY: usize = 512 << 20;
const ROUNDS: usize = 15;
/// Products of a turn: as many as are a few milliseconds.
const TURN: usize = 1 << 26;

/// The sides, each compared with one before it.
const SIDES: [(&str, Option<usize>); 7] = [
    ("Q4_K", None),
    ("one plane", Some(0)),
    ("two products", None),
    ("two planes", Some(2)),
    ("folded", Some(2)),
    ("three products", None),
    ("three planes", Some(5)),
];

/// Prints a line per case and side.
pub(super) fn run() -> Outcome {
    let kernels = Kernels::best();
    println!(
        "level {}, median of {ROUNDS} turns; ratio: how many times as fast, of turns and of best ones",
        kernels.level()
    );
    println!(
        "{:<15} {:>4} {:>9} {:>5} {:>3} {:>9} {:>8} {:>7} {:>9} {:>6} {:>6} against",
        "side", "m", "n x k", "from", "thr", "us", "GOP/s", "GB/s", "best us", "ratio", "best"
    );
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(|e| e.to_string())?;
        for (m, [n, k], memory) in CASES {
            pool.install(|| Case::new(kernels, m, n, k, memory)?.run(threads))?;
        }
    }
    Ok(())
}

/// One size, all sides.
struct Case {
    kernels: Kernels,
    m: usize,
    n: usize,
    k: usize,
    memory: bool,
    q4_k: Vec<u8>,
    /// The first two are tied.
    planes: [Vec<u8>; 3],
}

fn text(e: ggml_kernels::Error) -> String {
    e.to_string()
}

impl Case {
    /// Weights are noise.
    fn new(kernels: Kernels, m: usize, n: usize, k: usize, memory: bool) -> Outcome<Self> {
        let plane = || weights(GgmlType::TQ2_0, n, k);
        let [mut coarse, mut fine, third] = [plane()?, plane()?, plane()?];
        for (coarse, fine) in coarse.chunks_exact_mut(66).zip(fine.chunks_exact_mut(66)) {
            // Other trits, and 3 and 1 in f16.
            fine[..64].reverse();
            coarse[64..].copy_from_slice(&0x4200_u16.to_le_bytes());
            fine[64..].copy_from_slice(&0x3C00_u16.to_le_bytes());
        }
        let q4_k = weights(GgmlType::Q4_K, n, k)?;
        Ok(Self { kernels, m, n, k, memory, q4_k, planes: [coarse, fine, third] })
    }

    /// The packs of a side, whose products are added.
    fn pack(&self, side: usize) -> Outcome<Vec<Packed>> {
        let Self { kernels, n, k, .. } = *self;
        let plane = |p: usize| Rhs::new(GgmlType::TQ2_0, &self.planes[p], n, k);
        let set = |count: usize| PlaneSet::new((0..count).map(plane).collect::<Result<Vec<_>, _>>()?);
        let apart = |count: usize| (0..count).map(|p| kernels.pack(&plane(p)?)).collect();
        let packs = match side {
            0 => Rhs::new(GgmlType::Q4_K, &self.q4_k, n, k).and_then(|w| Ok(vec![kernels.pack(&w)?])),
            1 => apart(1),
            2 => apart(2),
            3 => set(2).and_then(|w| Ok(vec![kernels.pack_planes(&w)?])),
            4 => set(2).and_then(|w| Ok(vec![kernels.pack_folded(&w)?])),
            5 => apart(3),
            _ => set(3).and_then(|w| Ok(vec![kernels.pack_planes(&w)?])),
        };
        packs.map_err(text)
    }

    fn run(&self, threads: usize) -> Outcome {
        let Self { m, n, k, memory, .. } = *self;
        let x = noise(m * k);
        let mut y = [vec![0.0; m * n], vec![0.0; m * n]];
        let mut scratch = Scratch::new();
        let mut sides = Vec::new();
        for side in 0..SIDES.len() {
            let first = self.pack(side)?;
            let size: usize = first.iter().map(Packed::size).sum();
            let mut copies = vec![first];
            while memory && copies.len() * size < FROM_MEMORY {
                copies.push(self.pack(side)?);
            }
            sides.push((copies, size, Vec::new()));
        }
        let turn = if memory { 1 } else { (TURN / (m * n * k)).max(1) };
        for round in 0..ROUNDS {
            for (copies, _, times) in &mut sides {
                let packs = &copies[round % copies.len()];
                if !memory {
                    // The other sides have driven the weights out of the cache.
                    product(packs, &x, k, &mut y, &mut scratch).map_err(text)?;
                }
                let start = Instant::now();
                for _ in 0..turn {
                    product(packs, &x, k, &mut y, &mut scratch).map_err(text)?;
                }
                times.push(start.elapsed().as_nanos() as f64 / turn as f64);
            }
        }
        for (name, against, (_, size, times)) in SIDES.iter().zip(&sides).map(|((n, a), s)| (n, a, s)) {
            // Of each two turns in a row, as a machine with other work changes its pace.
            let ratio = against.map_or(String::new(), |a| {
                let ratios = sides[a].2.iter().zip(times).map(|(a, b)| a / b).collect();
                let bests = best(&sides[a].2) / best(times);
                format!("{:>6.2} {bests:>6.2} {}", median(ratios), SIDES[a].0)
            });
            let time = median(times.clone());
            println!(
                "{name:<15} {m:>4} {:>9} {:>5} {threads:>3} {:>9.1} {:>8.1} {:>7.1} {:>9.1} {ratio}",
                format!("{n}x{k}"),
                if memory { "DRAM" } else { "cache" },
                time / 1e3,
                2.0 * (m * n * k) as f64 / time,
                *size as f64 / time,
                best(times) / 1e3,
            );
        }
        Ok(())
    }
}

fn best(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The sum of the products with all packs.
fn product(
    packs: &[Packed],
    x: &[f32],
    k: usize,
    [y, next]: &mut [Vec<f32>; 2],
    scratch: &mut Scratch,
) -> Result<(), ggml_kernels::Error> {
    let [first, others @ ..] = packs else { return Ok(()) };
    if others.is_empty() {
        return first.matmul(x, y, scratch);
    }
    let lhs = Lhs::quantize(first.activations(), x, k)?;
    first.matmul_lhs(&lhs, y, scratch)?;
    for packed in others {
        packed.matmul_lhs(&lhs, next, scratch)?;
        for (y, next) in y.iter_mut().zip(&*next) {
            *y += next;
        }
    }
    Ok(())
}

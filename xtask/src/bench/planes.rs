//! Plane sets against what a caller would do without them: a folded pair and planes in one pass against a
//! product per plane (activations quantized once, outputs added), and `TQ2_0` against `Q4_K`. All take
//! turns.

use super::kernels::{noise, weights};
use super::median;
use crate::util::Outcome;
use ggml_kernels::{GgmlType, Kernels, Lhs, Packed, PlaneSet, Rhs, Scratch};
use std::time::Instant;

/// Outputs and inputs.
const SIDE: usize = 4096;
/// Rows, and whether the weights come from memory: then all copies of a side together fill 512 MiB.
const CASES: [(usize, bool); 6] =
    [(1, true), (1, false), (4, false), (16, false), (128, false), (512, false)];
const FROM_MEMORY: usize = 512 << 20;
const ROUNDS: usize = 15;

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
    println!("level {}, n = k = {SIDE}, median of {ROUNDS}; ratio: how many times as fast", kernels.level());
    println!(
        "{:<15} {:>4} {:>5} {:>3} {:>9} {:>8} {:>7} {:>6} against",
        "side", "m", "from", "thr", "us", "GOP/s", "GB/s", "ratio"
    );
    let q4_k = weights(GgmlType::Q4_K)?;
    let planes = tied_planes()?;
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(|e| e.to_string())?;
        for (m, memory) in CASES {
            pool.install(|| case(kernels, &q4_k, &planes, m, memory, threads))?;
        }
    }
    Ok(())
}

/// Three planes of noise; the first two are tied.
fn tied_planes() -> Outcome<[Vec<u8>; 3]> {
    let plane = || weights(GgmlType::TQ2_0);
    let [mut coarse, mut fine, third] = [plane()?, plane()?, plane()?];
    for (coarse, fine) in coarse.chunks_exact_mut(66).zip(fine.chunks_exact_mut(66)) {
        // Other trits, and 3 and 1 in f16.
        fine[..64].reverse();
        coarse[64..].copy_from_slice(&0x4200_u16.to_le_bytes());
        fine[64..].copy_from_slice(&0x3C00_u16.to_le_bytes());
    }
    Ok([coarse, fine, third])
}

fn text(e: ggml_kernels::Error) -> String {
    e.to_string()
}

/// The packs of a side, whose products are added.
fn pack(kernels: Kernels, side: usize, q4_k: &[u8], planes: &[Vec<u8>; 3]) -> Outcome<Vec<Packed>> {
    let plane = |p: usize| Rhs::new(GgmlType::TQ2_0, &planes[p], SIDE, SIDE);
    let set = |count: usize| PlaneSet::new((0..count).map(plane).collect::<Result<Vec<_>, _>>()?);
    let apart = |count: usize| (0..count).map(|p| kernels.pack(&plane(p)?)).collect();
    let packs = match side {
        0 => Rhs::new(GgmlType::Q4_K, q4_k, SIDE, SIDE).and_then(|w| Ok(vec![kernels.pack(&w)?])),
        1 => apart(1),
        2 => apart(2),
        3 => set(2).and_then(|w| Ok(vec![kernels.pack_planes(&w)?])),
        4 => set(2).and_then(|w| Ok(vec![kernels.pack_folded(&w)?])),
        5 => apart(3),
        _ => set(3).and_then(|w| Ok(vec![kernels.pack_planes(&w)?])),
    };
    packs.map_err(text)
}

fn case(
    kernels: Kernels,
    q4_k: &[u8],
    planes: &[Vec<u8>; 3],
    m: usize,
    memory: bool,
    threads: usize,
) -> Outcome {
    let x = noise(m * SIDE);
    let mut y = [vec![0.0; m * SIDE], vec![0.0; m * SIDE]];
    let mut scratch = Scratch::new();
    let mut sides = Vec::new();
    for side in 0..SIDES.len() {
        let first = pack(kernels, side, q4_k, planes)?;
        let size: usize = first.iter().map(Packed::size).sum();
        let mut copies = vec![first];
        for _ in 1..if memory { FROM_MEMORY.div_ceil(size) } else { 1 } {
            copies.push(pack(kernels, side, q4_k, planes)?);
        }
        sides.push((copies, size, Vec::new()));
    }
    let few = !memory && m < 16;
    for round in 0..ROUNDS {
        for (copies, _, times) in &mut sides {
            let packs = &copies[round % copies.len()];
            // The other sides have driven cached weights out: the first run, untimed, brings them back.
            for run in 0..if few { 4 } else { 1 } {
                let start = Instant::now();
                product(packs, &x, &mut y, &mut scratch).map_err(text)?;
                if run > 0 || !few {
                    times.push(start.elapsed().as_nanos() as f64);
                }
            }
        }
    }
    let work: Vec<(f64, usize)> = sides.into_iter().map(|(_, size, times)| (median(times), size)).collect();
    for ((name, against), (time, size)) in SIDES.iter().zip(&work) {
        let ratio = against.map_or(String::new(), |a| format!("{:>6.2} {}", work[a].0 / time, SIDES[a].0));
        println!(
            "{name:<15} {m:>4} {:>5} {threads:>3} {:>9.1} {:>8.1} {:>7.1} {ratio}",
            if memory { "DRAM" } else { "cache" },
            time / 1e3,
            2.0 * (m * SIDE * SIDE) as f64 / time,
            *size as f64 / time,
        );
    }
    Ok(())
}

/// The sum of the products with all packs.
fn product(
    packs: &[Packed],
    x: &[f32],
    [y, next]: &mut [Vec<f32>; 2],
    scratch: &mut Scratch,
) -> Result<(), ggml_kernels::Error> {
    let [first, others @ ..] = packs else { return Ok(()) };
    if others.is_empty() {
        return first.matmul(x, y, scratch);
    }
    let lhs = Lhs::quantize(first.activations(), x, SIDE)?;
    first.matmul_lhs(&lhs, y, scratch)?;
    for packed in others {
        packed.matmul_lhs(&lhs, next, scratch)?;
        for (y, next) in y.iter_mut().zip(&*next) {
            *y += next;
        }
    }
    Ok(())
}

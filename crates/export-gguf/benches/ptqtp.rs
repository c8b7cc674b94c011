//! The trit-plane solver: eight groups side by side against one weight after the other, on one thread, in
//! alternation. `cargo xtask bench ptqtp` runs it; results are kept in `docs/benchmarks.md`.
#![expect(clippy::print_stdout, reason = "prints its table")]

use std::hint::black_box;
use std::time::Instant;

use export_gguf::ptqtp::{GROUP, Options, quantize_groups, solve_group};
use ggml_blocks::F16;
use ggml_blocks::formats::tq2_0::Tq2_0;

/// Weights per measurement of the lanes, and of the plain form.
const MANY: usize = 8192 * GROUP;
const FEW: usize = 256 * GROUP;
const ROUNDS: usize = 5;

/// Nearly normal numbers of a standard deviation of 0.02.
fn weights() -> Vec<f32> {
    let mut state = 7_u64;
    let mut unit = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u64 << 24) as f32
    };
    (0..MANY).map(|_| ((0..12).map(|_| unit()).sum::<f32>() - 6.0) * 0.02).collect()
}

/// Seconds that this thread has run, where the system tells; waiting for a busy core does not count.
fn cpu_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split(' ').next()?.parse::<f64>().ok()? / 1e9)
}

/// Millions of weights per second of this thread.
fn speed(weights: &[f32], run: impl FnOnce(&[f32])) -> f64 {
    let (start, cpu) = (Instant::now(), cpu_seconds());
    run(black_box(weights));
    let seconds = match (cpu, cpu_seconds()) {
        (Some(before), Some(after)) => after - before,
        _ => start.elapsed().as_secs_f64(),
    };
    weights.len() as f64 / seconds / 1e6
}

fn main() {
    let weights = weights();
    println!("{:<8} {:>12} {:>12} {:>7} {:>8}  M weights/s", "fit", "lanes", "plain", "ratio", "rounds");
    for (name, planes, tie_scales) in [
        ("K=1", 1, false),
        ("K=2", 2, false),
        ("K=3", 3, false),
        ("K=2 tied", 2, true),
        ("K=3 tied", 3, true),
    ] {
        let options = Options { tie_scales, ..Options::with_planes(planes) };
        let mut blocks = vec![vec![Tq2_0 { qs: [0; 64], d: F16::from_bits(0) }; MANY / GROUP]; planes];
        let mut mean = 0.0;
        let (mut lanes, mut plain) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            lanes.push(speed(&weights, |w| {
                let mut out: Vec<&mut [Tq2_0]> = blocks.iter_mut().map(Vec::as_mut_slice).collect();
                let found = quantize_groups(w, &options, &mut out).expect("whole groups");
                mean = found.mean_rounds();
            }));
            plain.push(speed(&weights[..FEW], |w| {
                let mut trits = [[0; 3]; GROUP];
                for group in w.chunks(GROUP) {
                    black_box(solve_group(group, &options, &mut trits)).expect("whole groups");
                }
            }));
        }
        let median = |all: &mut Vec<f64>| {
            all.sort_by(f64::total_cmp);
            all[ROUNDS / 2]
        };
        let (lanes, plain) = (median(&mut lanes), median(&mut plain));
        println!("{name:<8} {lanes:>12.2} {plain:>12.2} {:>6.1}x {mean:>8.1}", lanes / plain);
    }
}

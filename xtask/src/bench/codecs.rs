//! Every codec against ggml's, on one thread: M weights per second and the ratio.

use super::median;
use crate::oracle::{CONFIGS, Oracle, Source, VERSION};
use crate::util::Outcome;
use ggml_blocks::{FORMATS, Format, simd};
use gguf_format::{Importance, Kind};
use std::hint::black_box;
use std::time::Instant;

const ROW: usize = 1024;
/// Alternations of a case.
const ROUNDS: usize = 11;
/// A call of ggml should take at least this long, in nanoseconds.
const CALL: u64 = 10_000_000;
/// Most rows of a call: 16 MB of f32.
const MOST_ROWS: usize = 4096;

/// Prints a line per format and case.
pub(super) fn run(only: &[&str]) -> Outcome {
    let mut oracle = Source::fetch(VERSION)?.start(CONFIGS[0])?;
    println!(
        "level {}, ggml {}, M weights/s on one thread, median of {ROUNDS}",
        simd::level(),
        CONFIGS[0].flags.join(" ")
    );
    println!("{:<8} {:<18} {:>8} {:>8} {:>6}", "format", "case", "ggml", "ours", "ratio");
    let noise = noise(MOST_ROWS * ROW);
    let weights: Vec<f32> = noise[..ROW].iter().map(|x| x * x * 2500.0 + 0.05).collect();
    let blocks = FORMATS.iter().filter(|f| matches!(f.info().kind, Kind::Block | Kind::Activation));
    for format in blocks.filter(|f| only.is_empty() || only.iter().any(|o| o.eq_ignore_ascii_case(f.name())))
    {
        let importance = format.importance();
        if format.can_encode() && importance != Importance::Required {
            encode(&mut oracle, format, &noise, None)?;
        }
        if format.can_encode() && importance != Importance::Ignored {
            encode(&mut oracle, format, &noise, Some(&weights))?;
        }
        decode(&mut oracle, format, &noise, &weights)?;
    }
    Ok(())
}

/// Numbers like those of a model: normal of 0.02, by a sum of uniform ones.
fn noise(count: usize) -> Vec<f32> {
    let mut state = 1u64;
    let mut unit = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 40) as f32 / 16_777_216.0
    };
    (0..count).map(|_| ((0..12).map(|_| unit()).sum::<f32>() - 6.0) * 0.02).collect()
}

fn encode(oracle: &mut Oracle, format: &Format, noise: &[f32], weights: Option<&[f32]>) -> Outcome {
    let ty = format.info().id;
    let mut rows = 32;
    loop {
        oracle.quantize(ty, &noise[..rows * ROW], ROW, weights)??;
        if rows == MOST_ROWS || oracle.again()? >= CALL {
            break;
        }
        rows *= 2;
    }
    let values = &noise[..rows * ROW];
    let expected = oracle.quantize(ty, values, ROW, weights)??;
    let mut out = vec![0; expected.len()];
    let what = if weights.is_some() { "encode, importance" } else { "encode" };
    alternate(oracle, format, what, values.len(), || {
        format.encode_rows(black_box(values), ROW, weights, black_box(&mut out)).map_err(|e| e.to_string())
    })?;
    if out == expected { Ok(()) } else { Err(format!("{} {what}: bytes differ from ggml's", format.name())) }
}

fn decode(oracle: &mut Oracle, format: &Format, noise: &[f32], weights: &[f32]) -> Outcome {
    let ty = format.info().id;
    let weights = (format.importance() == Importance::Required).then_some(weights);
    // A few rows, repeated: what is decoded does not matter to the speed.
    let some = oracle.quantize(ty, &noise[..64 * ROW], ROW, weights)??;
    let bytes = some.repeat(MOST_ROWS / 64 / 4);
    let count = MOST_ROWS / 4 * ROW;
    let expected = oracle.dequantize(ty, &bytes, count)?;
    let mut out = vec![0.0; count];
    alternate(oracle, format, "decode", count, || {
        format.decode_rows(black_box(&bytes), ROW, black_box(&mut out)).map_err(|e| e.to_string())
    })?;
    let same = out.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits());
    if same { Ok(()) } else { Err(format!("{} decode: values differ from ggml's", format.name())) }
}

/// Times the oracle's last request and `ours` in turn, and prints the line.
fn alternate(
    oracle: &mut Oracle,
    format: &Format,
    what: &str,
    weights: usize,
    mut ours: impl FnMut() -> Outcome,
) -> Outcome {
    let (mut theirs_ns, mut ours_ns) = (Vec::new(), Vec::new());
    ours()?;
    for _ in 0..ROUNDS {
        theirs_ns.push(oracle.again()? as f64);
        let start = Instant::now();
        ours()?;
        ours_ns.push(start.elapsed().as_nanos() as f64);
    }
    let (theirs, ours) = (median(theirs_ns), median(ours_ns));
    let speed = |ns: f64| weights as f64 * 1e3 / ns;
    println!(
        "{:<8} {what:<18} {:>8.1} {:>8.1} {:>6.2}",
        format.name(),
        speed(theirs),
        speed(ours),
        theirs / ours
    );
    Ok(())
}

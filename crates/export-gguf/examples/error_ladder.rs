//! What trit-planes lose, beside block formats of about the same size.
//!
//! Over all matrices of a GGUF file whose rows are multiples of 256, or without an argument over a few
//! rows of a real model: bits per weight and relative Frobenius error.
//!
//! `cargo run --release -p export-gguf --example error_ladder [FILE.gguf]`

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::path::Path;

use export_gguf::ptqtp::{GROUP, Options, Statistics, quantize_matrix};
use export_gguf::source::{GgufSource, Source};
use ggml_blocks::Format;
use gguf_format::GgmlType;

/// Formats to compare with.
const FORMATS: [GgmlType; 5] =
    [GgmlType::Q6_K, GgmlType::Q4_K, GgmlType::Q3_K, GgmlType::Q2_K, GgmlType::TQ2_0];

/// Planes, and whether they are tied.
const FITS: [(usize, bool); 5] = [(3, false), (3, true), (2, false), (2, true), (1, false)];

fn main() -> Result<(), Box<dyn Error>> {
    let matrices = match std::env::args().nth(1) {
        Some(path) => of_file(Path::new(&path))?,
        None => vec![sample()?],
    };
    let count: usize = matrices.iter().map(|(w, _)| w.len()).sum();
    println!("{} matrices, {count} weights", matrices.len());
    let mut errors = Vec::new();
    for (planes, tie_scales) in FITS {
        let options = Options { tie_scales, ..Options::with_planes(planes) };
        let mut sum = Statistics::default();
        for (w, row_len) in &matrices {
            sum.add(&quantize_matrix(w, *row_len, &options)?.statistics);
        }
        let name = format!("K={planes} {}", if tie_scales { "tied" } else { "free" });
        let rounds = sum.mean_rounds();
        println!(
            "{name:<9} {:6.4} bits  error {:.4}  {rounds:4.1} rounds",
            2.0625 * planes as f64,
            sum.relative_error()
        );
        errors.push((planes, sum.relative_error()));
    }
    for ty in FORMATS {
        let format = Format::of(ty).ok_or("no such format")?;
        let (mut error, mut power) = (0.0, 0.0);
        for (w, row_len) in &matrices {
            let mut bytes = vec![0; format.row_bytes(w.len())?];
            format.encode_rows(w, *row_len, None, &mut bytes)?;
            let mut stored = vec![0.0; w.len()];
            format.decode_rows(&bytes, *row_len, &mut stored)?;
            for (&a, &b) in w.iter().zip(&stored) {
                error += f64::from(a - b).powi(2);
                power += f64::from(a).powi(2);
            }
        }
        let bits = 8.0 * format.block_bytes() as f64 / format.block_len() as f64;
        let relative = (error / power).sqrt();
        println!("{:<9} {bits:6.4} bits  error {relative:.4}", format.name());
        if ty == GgmlType::TQ2_0 {
            errors.push((0, relative));
        }
    }
    let fewer_planes_lose_more = errors.windows(2).all(|w| w[0].0 == w[1].0 || w[0].1 < w[1].1);
    if fewer_planes_lose_more { Ok(()) } else { Err(format!("not a ladder: {errors:?}").into()) }
}

type Matrix = (Vec<f32>, usize);

/// All matrices that can be decomposed.
fn of_file(path: &Path) -> Result<Vec<Matrix>, Box<dyn Error>> {
    let source = GgufSource::open(path, false)?;
    let mut out = Vec::new();
    for (index, t) in source.tensors().iter().enumerate() {
        let matrix = t.dims.len() == 2 && t.row_len().is_multiple_of(GROUP as u64) && t.decodable;
        if matrix && t.name.ends_with(".weight") && !t.name.contains("norm") {
            let mut values = vec![0.0; usize::try_from(t.elements())?];
            source.values(index, 0, &mut values)?;
            out.push((values, usize::try_from(t.row_len())?));
        }
    }
    if out.is_empty() { Err("no matrix has rows of a multiple of 256".into()) } else { Ok(out) }
}

/// Rows of all-MiniLM-L6-v2.
fn sample() -> Result<Matrix, Box<dyn Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/inputs/minilm.f32");
    let bytes = std::fs::read(path)?;
    Ok((bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect(), 1536))
}

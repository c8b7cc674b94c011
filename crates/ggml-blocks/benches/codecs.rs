//! Decoding and encoding, per format and SIMD level. `cargo bench -p ggml-blocks -- Q4_K` takes one
//! format, `-- decode/` one direction, `-- avx2` one level.

#![expect(missing_docs, reason = "the macros of criterion make public functions")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ggml_blocks::simd::{Level, with_level};
use ggml_blocks::{FORMATS, Format};
use gguf_format::Importance;

/// Weights per call: the rows stay in the second-level cache.
const WEIGHTS: usize = 1 << 16;
const ROW: usize = 4096;

/// Sums of uniform numbers: bell-shaped like the weights of a layer.
fn weights(scale: f32) -> Vec<f32> {
    let mut state = 1u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / 16_777_216.0 - 0.5
    };
    (0..WEIGHTS).map(|_| (0..6).map(|_| uniform()).sum::<f32>() * scale).collect()
}

/// Bytes to decode: encoded weights, or zeros where there is no encoder.
fn encoded(format: &Format, values: &[f32], importance: &[f32]) -> Vec<u8> {
    let mut bytes = vec![0; WEIGHTS / format.block_len() * format.block_bytes()];
    if format.can_encode() {
        let done = format.encode_rows(values, ROW, Some(importance), &mut bytes);
        done.expect("ordinary weights encode");
    }
    bytes
}

fn decode(c: &mut Criterion) {
    let (values, importance) = (weights(0.03), vec![1.0; ROW]);
    let mut out = vec![0.0; WEIGHTS];
    for format in &FORMATS {
        let bytes = encoded(format, &values, &importance);
        let mut group = c.benchmark_group(format!("decode/{}", format.name()));
        group.throughput(Throughput::Elements(WEIGHTS as u64));
        for level in Level::supported() {
            group.bench_function(level.name(), |b| {
                with_level(level, || {
                    b.iter(|| format.decode_rows(black_box(&bytes), ROW, &mut out));
                });
            });
        }
    }
}

fn encode(c: &mut Criterion) {
    let values = weights(0.03);
    let importance: Vec<f32> = weights(1.0)[..ROW].iter().map(|x| x * x + 0.01).collect();
    for format in FORMATS.iter().filter(|f| f.can_encode()) {
        let mut out = encoded(format, &values, &importance);
        for (suffix, importance) in [("", None), ("-importance", Some(&importance[..]))] {
            let (plain, weighted) = match format.importance() {
                Importance::Required => (false, true),
                Importance::Optional => (true, true),
                _ => (true, false),
            };
            if !(if importance.is_some() { weighted } else { plain }) {
                continue;
            }
            let mut group = c.benchmark_group(format!("encode/{}{suffix}", format.name()));
            group.throughput(Throughput::Elements(WEIGHTS as u64));
            group.sample_size(10);
            for level in Level::supported() {
                group.bench_function(level.name(), |b| {
                    with_level(level, || {
                        b.iter(|| format.encode_rows(black_box(&values), ROW, importance, &mut out));
                    });
                });
            }
        }
    }
}

criterion_group!(codecs, decode, encode);
criterion_main!(codecs);

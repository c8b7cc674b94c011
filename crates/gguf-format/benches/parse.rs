//! Parsing a header of the size of a large vocabulary model: 152k tokens, 151k merges, 290 tensors.
//!
//! Besides times, it prints what one parse allocates.
#![expect(missing_docs, reason = "criterion's macro makes a public function")]
#![expect(clippy::print_stderr, reason = "the allocations are a result")]

use std::alloc::System;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use gguf_format::{Bounds, Builder, GgmlType, Gguf, ParseOptions};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const TOKENS: usize = 152_064;
const MERGES: usize = 151_387;
const LAYERS: usize = 24;

/// Words of 2 to 12 letters, all different, as a tokenizer has them.
fn word(i: usize) -> String {
    let tail: String = (0..i % 8).map(|k| char::from(b'a' + ((i / (k + 3)) % 26) as u8)).collect();
    format!("{i:x}{tail}")
}

/// The header of a model in the shape of Qwen2-0.5B, without data.
fn header() -> (Vec<u8>, u64) {
    let mut builder = Builder::new();
    builder
        .set("general.architecture", "qwen2")
        .set("general.name", "a model")
        .set("general.file_type", 1_u32);
    for key in ["block_count", "context_length", "embedding_length", "feed_forward_length"] {
        builder.set(&format!("qwen2.{key}"), 896_u32);
    }
    builder
        .set("tokenizer.ggml.model", "gpt2")
        .set("tokenizer.ggml.tokens", (0..TOKENS).map(word).collect::<Vec<_>>())
        .set("tokenizer.ggml.token_type", vec![1_i32; TOKENS])
        .set(
            "tokenizer.ggml.merges",
            (0..MERGES).map(|i| format!("{} {}", word(i), word(i / 2))).collect::<Vec<_>>(),
        )
        .set("tokenizer.chat_template", "{% for message in messages %}...".repeat(60));
    builder.tensor("token_embd.weight", &[896, TOKENS as u64], GgmlType::F16).unwrap();
    builder.tensor("output_norm.weight", &[896], GgmlType::F32).unwrap();
    for layer in 0..LAYERS {
        for (name, rows) in [
            ("attn_norm", 1),
            ("ffn_norm", 1),
            ("attn_q", 896),
            ("attn_k", 128),
            ("attn_v", 128),
            ("attn_output", 896),
            ("ffn_gate", 4864),
            ("ffn_up", 4864),
            ("ffn_down", 4864),
            ("q_bias", 1),
            ("k_bias", 1),
            ("v_bias", 1),
        ] {
            builder.tensor(&format!("blk.{layer}.{name}.weight"), &[896, rows], GgmlType::F16).unwrap();
        }
    }
    let layout = builder.layout().unwrap();
    assert_eq!(layout.tensors().len(), 290);
    (layout.header().to_vec(), layout.total_len())
}

fn parse(c: &mut Criterion) {
    let (header, file_len) = header();
    let bounds = Bounds::HeaderOnly { file_len: Some(file_len) };
    let options = ParseOptions { bounds, ..ParseOptions::default() };
    let open = || Gguf::parse_with(black_box(&header), &options).unwrap();

    let region = Region::new(ALLOCATOR);
    let gguf = open();
    let stats = region.change();
    eprintln!(
        "header of {} bytes: {} allocations and {} reallocations of {} bytes in all, {} bytes kept",
        header.len(),
        stats.allocations,
        stats.reallocations,
        stats.bytes_allocated,
        stats.bytes_allocated - stats.bytes_deallocated,
    );

    let mut group = c.benchmark_group("header of 152k tokens");
    group.bench_function("parse, nothing decoded", |b| b.iter(open));
    group.bench_function("iterate over the tokens", |b| {
        b.iter(|| {
            let tokens = gguf.get("tokenizer.ggml.tokens").unwrap().as_array().unwrap();
            tokens.strings().unwrap().map(|s| s.as_bytes().len()).sum::<usize>()
        });
    });
    group.bench_function("find each tensor by name", |b| {
        b.iter(|| gguf.tensors().filter(|t| gguf.tensor(t.name()).is_some()).count());
    });
    group.bench_function("copy the metadata and lay out", |b| {
        b.iter(|| Builder::from_gguf(&gguf).layout().unwrap().total_len());
    });
    group.finish();
}

criterion_group!(benches, parse);
criterion_main!(benches);

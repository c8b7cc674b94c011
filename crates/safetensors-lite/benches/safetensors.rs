//! Parsing and writing, side by side with the `safetensors` crate.

#![expect(missing_docs, reason = "the macro makes a public function")]

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use safetensors_lite::{Builder, Dtype, SafeTensors, Tensor, fs, serialize};
use std::{env, hint::black_box, io::Write};

/// A header of a large model: 5,000 tensors, scalars so that the data stays small.
fn many(shuffled: bool) -> Vec<u8> {
    const PARTS: [&str; 5] =
        ["self_attn.q_proj", "self_attn.k_proj", "mlp.gate_proj", "mlp.up_proj", "input_norm"];
    let names: Vec<String> = (0..5000)
        .map(|i| format!("model.layers.{}.{}.weight", i / PARTS.len(), PARTS[i % PARTS.len()]))
        .collect();
    let tensors: Vec<_> =
        names.iter().map(|name| Tensor { name, dtype: Dtype::BF16, shape: &[1, 2], data: &[0; 4] }).collect();
    let bytes = serialize(&tensors, Some(&[("format", "pt")])).unwrap();
    if shuffled { shuffle(&bytes) } else { bytes }
}

/// The same file with its JSON in another order than its data.
fn shuffle(bytes: &[u8]) -> Vec<u8> {
    let file = SafeTensors::parse(bytes).unwrap();
    let mut entries: Vec<String> = file
        .tensors()
        .map(|t| {
            let offsets = t.info().offsets();
            let (name, shape) = (t.name(), t.shape());
            format!(
                r#""{name}":{{"dtype":"{}","shape":{shape:?},"data_offsets":[{},{}]}}"#,
                t.dtype(),
                offsets.start,
                offsets.end
            )
        })
        .collect();
    let count = entries.len();
    for i in 0..count {
        entries.swap(i, i * 7919 % count);
    }
    let json = format!("{{{}}}", entries.join(","));
    let data = &bytes[file.header().data_offset() as usize..];
    [&(json.len() as u64).to_le_bytes(), json.as_bytes(), data].concat()
}

/// The header of a BERT of six layers, with the names and shapes of `all-MiniLM-L6-v2`; its data is zeros. A real
/// file takes its place where `MINILM` names one.
fn minilm() -> Vec<u8> {
    if let Some(path) = env::var_os("MINILM") {
        return std::fs::read(path).unwrap();
    }
    let mut builder = Builder::new();
    builder.metadata("format", "pt");
    let mut add = |name: String, shape: &[u64]| {
        builder.tensor(&name, Dtype::F32, shape).unwrap();
    };
    add("embeddings.word_embeddings.weight".into(), &[30522, 384]);
    add("embeddings.position_embeddings.weight".into(), &[512, 384]);
    add("embeddings.token_type_embeddings.weight".into(), &[2, 384]);
    for layer in 0..6 {
        for (part, shape) in [
            ("attention.self.query", &[384, 384]),
            ("attention.self.key", &[384, 384]),
            ("attention.self.value", &[384, 384]),
            ("attention.output.dense", &[384, 384]),
            ("intermediate.dense", &[1536, 384]),
            ("output.dense", &[384, 1536]),
        ] {
            add(format!("encoder.layer.{layer}.{part}.weight"), shape);
            add(format!("encoder.layer.{layer}.{part}.bias"), &shape[..1]);
        }
        for part in ["attention.output.LayerNorm", "output.LayerNorm"] {
            add(format!("encoder.layer.{layer}.{part}.weight"), &[384]);
            add(format!("encoder.layer.{layer}.{part}.bias"), &[384]);
        }
    }
    let layout = builder.layout().unwrap();
    let mut bytes = layout.head().to_vec();
    bytes.resize(layout.total_len() as usize, 0);
    bytes
}

fn parse(c: &mut Criterion) {
    for (name, bytes) in [("5000", many(false)), ("5000-shuffled", many(true)), ("minilm", minilm())] {
        let mut group = c.benchmark_group(format!("parse/{name}"));
        group.bench_function("lite", |b| b.iter(|| SafeTensors::parse(black_box(&bytes)).unwrap().len()));
        group.bench_function("safetensors", |b| {
            b.iter(|| safetensors::SafeTensors::deserialize(black_box(&bytes)).unwrap().len());
        });
        group.finish();
    }
}

fn write(c: &mut Criterion) {
    const LEN: usize = 64 << 20;
    let data = vec![7u8; LEN];
    let shape = [LEN / 4];
    let view = safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape.to_vec(), &data).unwrap();
    let tensor = Tensor { name: "w", dtype: Dtype::F32, shape: &[LEN as u64 / 4], data: &data };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.safetensors");

    let mut group = c.benchmark_group("write");
    group.throughput(Throughput::Bytes(LEN as u64)).sample_size(10);
    group.bench_function("memory/memcpy", |b| {
        b.iter(|| {
            let mut copy = Vec::with_capacity(LEN);
            copy.extend_from_slice(black_box(&data));
            copy
        });
    });
    group.bench_function("memory/lite", |b| b.iter(|| serialize(black_box(&[tensor]), None).unwrap()));
    group.bench_function("memory/safetensors", |b| {
        b.iter(|| safetensors::serialize(black_box([("w", &view)]), None).unwrap());
    });
    group.bench_function(BenchmarkId::new("file", "plain write, synced"), |b| {
        b.iter_batched(
            || (),
            |()| {
                let mut file = std::fs::File::create(&path).unwrap();
                file.write_all(&data).unwrap();
                file.sync_all().unwrap();
            },
            BatchSize::PerIteration,
        );
    });
    group.bench_function(BenchmarkId::new("file", "lite, synced"), |b| {
        b.iter(|| fs::save(&path, &[tensor], None).unwrap());
    });
    group.bench_function(BenchmarkId::new("file", "safetensors, not synced"), |b| {
        b.iter(|| safetensors::serialize_to_file([("w", &view)], None, &path).unwrap());
    });
    group.finish();
}

criterion_group!(benches, parse, write);
criterion_main!(benches);

//! Bases and adapters of small whole numbers.

use gguf_format::{Builder, GgmlType, Gguf};
use safetensors_lite::{Dtype, Tensor, serialize};
use serde_json::{Value, json};

use crate::support::*;

/// Small whole numbers that differ from seed to seed.
pub(crate) fn numbers(n: u64, seed: u64) -> Vec<f32> {
    (0..n).map(|i| ((i * 7 + seed * 13 + i * i % 5) % 9) as f32 - 4.0).collect()
}

/// A tensor of an adapter: name, shape, values.
pub(crate) type Piece = (String, Vec<u64>, Vec<f32>);

/// `MODULE.lora_A.weight` and `MODULE.lora_B.weight` of rank `r`, for `rows` rows of `width`.
pub(crate) fn pair(module: &str, r: u64, rows: u64, width: u64) -> [Piece; 2] {
    [
        (format!("base_model.model.{module}.lora_A.weight"), vec![r, width], numbers(r * width, r + width)),
        (format!("base_model.model.{module}.lora_B.weight"), vec![rows, r], numbers(rows * r, rows + 1)),
    ]
}

/// `scale * B * A`, which small numbers make exact.
pub(crate) fn delta(pair: &[Piece; 2], scale: f32) -> Vec<f32> {
    let [(_, a_shape, a), (_, b_shape, b)] = pair;
    let (r, width, rows) = (a_shape[0] as usize, a_shape[1] as usize, b_shape[0] as usize);
    let sum = |row: usize, col: usize| (0..r).map(|k| b[row * r + k] * a[k * width + col]).sum::<f32>();
    (0..rows * width).map(|i| scale * sum(i / width, i % width)).collect()
}

/// One added to the other.
pub(crate) fn plus(base: &[f32], delta: &[f32]) -> Vec<f32> {
    assert_eq!(base.len(), delta.len());
    base.iter().zip(delta).map(|(a, b)| a + b).collect()
}

/// A file of safetensors in F32.
pub(crate) fn safetensors(pieces: &[Piece]) -> Vec<u8> {
    let data: Vec<Vec<u8>> = pieces.iter().map(|(.., v)| f32s(v.iter().copied())).collect();
    let tensors: Vec<Tensor<'_>> = pieces
        .iter()
        .zip(&data)
        .map(|((name, shape, _), data)| Tensor { name, dtype: Dtype::F32, shape, data })
        .collect();
    serialize(&tensors, Some(&[("format", "pt")])).unwrap()
}

/// What PEFT writes for rank 2 and alpha 4, with changes; `null` removes a key.
pub(crate) fn config(changes: Value) -> String {
    let mut all = json!({
        "peft_type": "LORA", "r": 2, "lora_alpha": 4, "bias": "none", "fan_in_fan_out": false,
        "use_rslora": false, "use_dora": false, "rank_pattern": {}, "alpha_pattern": {},
        "modules_to_save": null, "target_modules": ["q_proj", "v_proj"], "task_type": "CAUSAL_LM",
        "base_model_name_or_path": "base", "init_lora_weights": true, "lora_dropout": 0.05,
    });
    for (key, value) in changes.as_object().unwrap() {
        all[key] = value.clone();
    }
    all.to_string()
}

/// The base's file as a builder of keys.
pub(crate) fn keys(architecture: &str) -> Builder {
    let mut b = Builder::new();
    b.set("general.architecture", architecture).set("general.name", "base");
    for (key, n) in [
        ("block_count", 1_u32),
        ("embedding_length", 8),
        ("attention.head_count", 2),
        ("attention.head_count_kv", 1),
    ] {
        b.set(&format!("{architecture}.{key}"), n);
    }
    b
}

/// The bytes of small numbers in a type.
pub(crate) fn bytes(ty: GgmlType, values: &[f32]) -> Vec<u8> {
    let format = ggml_blocks::Format::of(ty).unwrap();
    let mut out = vec![0; format.row_bytes(values.len()).unwrap()];
    format.encode_rows(values, values.len(), None, &mut out).unwrap();
    out
}

/// Tensors with these names and dimensions; vectors are F32, matrices `ty`.
pub(crate) fn with(b: Builder, ty: GgmlType, tensors: &[(&str, &[u64])]) -> Vec<u8> {
    let data: Vec<Data<'_>> = tensors
        .iter()
        .enumerate()
        .map(|(i, &(name, dims))| {
            let ty = if dims.len() > 1 { ty } else { GgmlType::F32 };
            (name, dims, ty, bytes(ty, &numbers(dims.iter().product(), i as u64)))
        })
        .collect();
    whole(b, &data)
}

pub(crate) const DECODER: [(&str, &[u64]); 12] = [
    ("token_embd.weight", &[8, 16]),
    ("blk.0.attn_norm.weight", &[8]),
    ("blk.0.attn_q.weight", &[8, 8]),
    ("blk.0.attn_k.weight", &[8, 4]),
    ("blk.0.attn_v.weight", &[8, 4]),
    ("blk.0.attn_output.weight", &[8, 8]),
    ("blk.0.ffn_norm.weight", &[8]),
    ("blk.0.ffn_gate.weight", &[8, 12]),
    ("blk.0.ffn_up.weight", &[8, 12]),
    ("blk.0.ffn_down.weight", &[12, 8]),
    ("output_norm.weight", &[8]),
    ("output.weight", &[8, 16]),
];

/// A decoder of one block.
pub(crate) fn base(architecture: &str, ty: GgmlType) -> Vec<u8> {
    with(keys(architecture), ty, &DECODER)
}

/// A folder as PEFT saves it.
pub(crate) fn peft(place: &Place, folder: &str, config: &str, pieces: &[Piece]) {
    std::fs::create_dir_all(place.path(folder)).unwrap();
    place.write(&format!("{folder}/adapter_config.json"), config.as_bytes());
    place.write(&format!("{folder}/adapter_model.safetensors"), &safetensors(pieces));
}

/// A GGUF adapter with these tensors, whose shapes are given outermost first.
pub(crate) fn gguf_adapter(architecture: &str, alpha: Option<f32>, pieces: &[Piece]) -> Vec<u8> {
    let mut b = Builder::new();
    b.set("general.architecture", architecture).set("general.type", "adapter").set("adapter.type", "lora");
    if let Some(alpha) = alpha {
        b.set("adapter.lora.alpha", alpha);
    }
    let dims: Vec<Vec<u64>> = pieces.iter().map(|(_, s, _)| s.iter().rev().copied().collect()).collect();
    let data: Vec<Data<'_>> = pieces
        .iter()
        .zip(&dims)
        .map(|((name, _, v), dims)| (name.as_str(), dims.as_slice(), GgmlType::F32, f32s(v.iter().copied())))
        .collect();
    whole(b, &data)
}

/// Merges with these arguments; what changed must be just this, and all else the same bytes.
pub(crate) fn check(place: &Place, base: &[u8], args: &[&str], changed: &[(&str, Vec<f32>)]) {
    let merged = place.export(base, args);
    let (old, new) = (Gguf::parse(base).unwrap(), Gguf::parse(&merged).unwrap());
    let metadata = |g: &Gguf<'_>| g.metadata().map(|kv| kv.raw().to_vec()).collect::<Vec<_>>();
    assert_eq!(metadata(&old), metadata(&new));
    for (a, b) in old.tensors().zip(new.tensors()) {
        assert_eq!((a.name(), a.ty(), a.dims()), (b.name(), b.ty(), b.dims()));
        match changed.iter().find(|(name, _)| *name == a.name()) {
            Some((name, want)) => assert_eq!(&values(&merged, name), want, "{name}"),
            None => assert_eq!(old.data(&a), new.data(&b), "{}", a.name()),
        }
    }
    assert!(changed.iter().all(|(name, _)| old.tensor(name).is_some()));
}

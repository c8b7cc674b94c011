//! Broken adapters: every prefix of every file, and every byte changed. Whatever is said, nothing panics, and a
//! shorter file is never taken for the whole.

use std::path::Path;

use export_gguf::Cancel;
use export_gguf::lora::{Adapter, MergedSource, measure, resolve};
use export_gguf::source::{GgufSource, Source};
use gguf_format::GgmlType;
use serde_json::json;

use super::make::*;
use crate::support::*;

/// Opens an adapter, finds its place in the base and reads all of it.
fn merges(base: &GgufSource, adapter: &Path, alpha: Option<f64>) -> Result<usize, String> {
    let adapters = [Adapter::open(adapter, 1.0, alpha).map_err(|e| e.to_string())?];
    let merges = resolve(&adapters, base.tensors(), &base.model().gguf()).map_err(|e| e.to_string())?;
    let source = MergedSource::new(base, &adapters, merges);
    measure(&source, &Cancel::default()).map(|m| m.len()).map_err(|e| e.to_string())
}

/// Breaks `file` in every way; `adapter` is what is opened.
fn breaks(base: &GgufSource, file: &Path, adapter: &Path, alpha: Option<f64>, cuts_show: bool) {
    let whole = std::fs::read(file).unwrap();
    assert!(merges(base, adapter, alpha).is_ok());
    for len in 0..whole.len() {
        std::fs::write(file, &whole[..len]).unwrap();
        let said = merges(base, adapter, alpha);
        assert!(said.is_err() || !cuts_show, "{} bytes of {}: {said:?}", len, file.display());
    }
    let mut broken = whole.clone();
    for at in 0..whole.len() {
        for byte in [0, 0x7F, 0xFF, whole[at] ^ 1] {
            broken[at] = byte;
            std::fs::write(file, &broken).unwrap();
            let _ = merges(base, adapter, alpha);
        }
        broken[at] = whole[at];
    }
    std::fs::write(file, whole).unwrap();
}

#[test]
fn peft_folders() {
    let place = Place::new();
    let base = GgufSource::open(place.write("base.gguf", &base("llama", GgmlType::F32)), false).unwrap();
    let config = config(json!({"rank_pattern": {"k_proj": 2}, "use_dora": false}));
    peft(&place, "adapter", &config, &pair("model.layers.0.self_attn.k_proj", 2, 4, 8));
    let folder = place.path("adapter");
    breaks(&base, &folder.join("adapter_config.json"), &folder, None, true);
    breaks(&base, &folder.join("adapter_model.safetensors"), &folder, None, true);
}

#[test]
fn gguf_files() {
    let place = Place::new();
    let base = GgufSource::open(place.write("base.gguf", &base("qwen3", GgmlType::F32)), false).unwrap();
    let [a, b] = pair("x", 2, 4, 8);
    let pieces = [
        ("blk.0.attn_k.weight.lora_a".to_owned(), a.1, a.2),
        ("blk.0.attn_k.weight.lora_b".to_owned(), b.1, b.2),
    ];
    let file = place.write("adapter.gguf", &gguf_adapter("qwen3", Some(4.0), &pieces));
    breaks(&base, &file, &file, None, true);
}

#[test]
fn plain_files() {
    let place = Place::new();
    let base = GgufSource::open(place.write("base.gguf", &base("qwen3", GgmlType::F32)), false).unwrap();
    let [a, b] = pair("x", 2, 4, 8);
    let pieces = [("layers.0.k.lora_a".to_owned(), a.1, a.2), ("layers.0.k.lora_b".to_owned(), b.1, b.2)];
    let file = place.write("any.safetensors", &safetensors(&pieces));
    breaks(&base, &file, &file, Some(4.0), true);
}

/// Sizes that no bytes back up ask for no memory.
#[test]
fn stacks_of_nothing() {
    let place = Place::new();
    let base = GgufSource::open(place.write("base.gguf", &base("qwen3", GgmlType::F32)), false).unwrap();
    let pieces = [
        ("blk.0.attn_k.weight.lora_a".to_owned(), vec![1 << 40, 0, 8], vec![]),
        ("blk.0.attn_k.weight.lora_b".to_owned(), vec![1 << 40, 4, 0], vec![]),
    ];
    let file = place.write("adapter.gguf", &gguf_adapter("qwen3", Some(4.0), &pieces));
    let said = merges(&base, &file, None).unwrap_err();
    assert!(said.contains("no values"), "{said}");
}

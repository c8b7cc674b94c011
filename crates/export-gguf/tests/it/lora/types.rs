//! Merging and types: what stays, what is transcoded in the same pass, what is refused.

use gguf_format::GgmlType;
use serde_json::json;

use super::make::*;
use crate::support::*;

const V: &str = "model.layers.0.self_attn.v_proj";

/// A base whose rows every block divides, and an adapter for it.
fn wide(ty: GgmlType) -> (Place, Vec<u8>, [Piece; 2]) {
    let tensors: [(&str, &[u64]); 4] = [
        ("token_embd.weight", &[256, 8]),
        ("blk.0.attn_q.weight", &[256, 4]),
        ("blk.0.attn_v.weight", &[256, 4]),
        ("output.weight", &[256, 8]),
    ];
    let (place, v) = (Place::new(), pair(V, 2, 4, 256));
    peft(&place, "adapter", &config(json!({})), &v);
    (place, with(keys("qwen3"), ty, &tensors), v)
}

/// ggml-org/llama.cpp#10049: the base's types stay. paiml/aprender#2189: the adapter has its own.
#[test]
fn types_of_the_base_stay() {
    for ty in [GgmlType::F32, GgmlType::F16, GgmlType::BF16] {
        let (place, base, v) = wide(ty);
        let want = plus(&values(&base, "blk.0.attn_v.weight"), &delta(&v, 2.0));
        check(&place, &base, &["--adapters", "adapter"], &[("blk.0.attn_v.weight", want)]);
    }
}

/// ggml-org/llama.cpp#8974, Lightning-AI/litgpt#513: quantized values change only on request.
#[test]
fn quantized_bases_are_refused_unless_asked_for() {
    let (place, base, v) = wide(GgmlType::Q8_0);
    let said = place.refuse(&base, &["--adapters", "adapter"]);
    assert!(said.contains("the base is quantized") && said.contains("blk.0.attn_v.weight (Q8_0)"), "{said}");
    assert!(said.contains("--allow-requantize"), "{said}");
    let said = place.refuse(&base, &["--adapters", "adapter", "--dtype", "q4_k"]);
    assert!(said.contains("the base is quantized"), "{said}");
    let ran =
        place.run(&["--from-gguf", "in.gguf", "--out", "x", "--adapters", "adapter", "--allow-requantize"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("needs a type to write"), "{}", ran.err);

    // Decoded, merged and encoded once.
    let merged = plus(&values(&base, "blk.0.attn_v.weight"), &delta(&v, 2.0));
    for (target, ty) in [("q4_k", GgmlType::Q4_K), ("q8_0", GgmlType::Q8_0), ("f16", GgmlType::F16)] {
        let args = ["--adapters", "adapter", "--dtype", target, "--allow-requantize"];
        let out = place.export(&base, &args);
        assert_eq!(data(&out, "blk.0.attn_v.weight"), bytes(ty, &merged), "{target}");
        assert_eq!(
            data(&out, "blk.0.attn_q.weight"),
            bytes(ty, &values(&base, "blk.0.attn_q.weight")),
            "{target}"
        );
    }
}

/// One pass gives the bytes that merging and transcoding one after the other give.
#[test]
fn one_pass_is_as_good_as_two() {
    let (place, base, _) = wide(GgmlType::F32);
    let merged = place.export(&base, &["--adapters", "adapter"]);
    for more in [&["--dtype", "q6_k"][..], &["--mix", "q4_k_m"], &["--mix", "q8_0", "--pure"]] {
        let one = place.export(&base, &[&["--adapters", "adapter"], more].concat());
        assert!(one == place.export(&merged, more), "{more:?}");
    }
}

#[test]
fn split_bases_and_split_results() {
    let (place, base, _) = wide(GgmlType::F16);
    let whole = place.export(&base, &["--adapters", "adapter"]);
    place.write("in.gguf", &base);
    let cut = |input: &str, out: &str, more: &[&str]| {
        let args = [&["--from-gguf", input, "--out", out, "--split-max-tensors", "2"], more].concat();
        let ran = place.run(&args);
        assert_eq!(ran.code, 0, "{}", ran.err);
    };
    cut("in.gguf", "base.gguf", &[]);
    cut("base-00001-of-00002.gguf", "merged.gguf", &["--adapters", "adapter"]);
    let ran = place.run(&["--from-gguf", "merged-00001-of-00002.gguf", "--out", "joined.gguf"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(place.read("joined.gguf") == whole);
}

#[test]
fn threads_and_cuts_do_not_change_bytes() {
    // Rows longer than a strip, so that pieces of rows are merged, with DoRA's need of whole ones.
    let tensors: [(&str, &[u64]); 2] = [("blk.0.attn_v.weight", &[9000, 5]), ("output.weight", &[256, 8])];
    let base = with(keys("qwen3"), GgmlType::F32, &tensors);
    let v = pair(V, 2, 5, 9000);
    let m = (format!("base_model.model.{V}.lora_magnitude_vector"), vec![5], numbers(5, 3));
    for (name, changes, pieces) in [
        ("lora", json!({}), v.to_vec()),
        ("dora", json!({"use_dora": true}), [&v[..], std::slice::from_ref(&m)].concat()),
    ] {
        let place = Place::new();
        peft(&place, name, &config(changes), &pieces);
        let want = place.export(&base, &["--adapters", name, "--threads", "1"]);
        if name == "lora" {
            let exact = plus(&values(&base, "blk.0.attn_v.weight"), &delta(&v, 2.0));
            assert_eq!(values(&want, "blk.0.attn_v.weight"), exact);
        } else {
            for (row, m) in values(&want, "blk.0.attn_v.weight").chunks(9000).zip(&m.2) {
                let length = row.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
                assert!((length - f64::from(m.abs())).abs() < 1e-5, "{length} {m}");
            }
        }
        for threads in ["2", "7"] {
            assert!(
                want == place.export(&base, &["--adapters", name, "--threads", threads]),
                "{name} {threads}"
            );
        }
    }
}

#[test]
fn values_out_of_range_are_refused_as_always() {
    let (place, base, _) = wide(GgmlType::F16);
    let said = place.refuse(&base, &["--adapters", "adapter@1e5"]);
    assert!(said.contains("blk.0.attn_v.weight") && said.contains("out of the range of F16"), "{said}");
}

#[test]
fn tensors_that_are_left_out_cannot_be_merged() {
    let (place, base, _) = wide(GgmlType::F32);
    let said = place.refuse(&base, &["--adapters", "adapter", "--mix", "q8_0", "--prune-layers", "0"]);
    assert!(said.contains("blk.0.attn_v.weight") && said.contains("--prune-layers"), "{said}");
}

/// The adapter is an input, so it is never written over.
#[test]
fn the_adapter_is_no_target() {
    let (place, base, _) = wide(GgmlType::F32);
    place.write("in.gguf", &base);
    let target = "adapter/adapter_model.safetensors";
    let ran = place.run(&["--from-gguf", "in.gguf", "--out", target, "--adapters", "adapter", "--force"]);
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert_eq!(place.read(target), safetensors(&pair(V, 2, 4, 256)));
}

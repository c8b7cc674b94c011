//! The other kinds of adapters, several of them, and the scales that the caller gives.

use gguf_format::{Builder, GgmlType};
use serde_json::json;

use super::make::*;
use crate::support::*;

const F32: GgmlType = GgmlType::F32;
const V: &str = "model.layers.0.self_attn.v_proj";

/// `layers.0.v.lora_a` and `.lora_b`, for the pair of a module.
fn plain(pair: &[Piece; 2]) -> [Piece; 2] {
    let names = ["layers.0.v.lora_a", "layers.0.v.lora_b"];
    std::array::from_fn(|i| (names[i].to_owned(), pair[i].1.clone(), pair[i].2.clone()))
}

/// The same as a GGUF adapter.
fn gguf(pair: &[Piece; 2], alpha: f32) -> Vec<u8> {
    let names = ["blk.0.attn_v.weight.lora_a", "blk.0.attn_v.weight.lora_b"];
    let pieces: [Piece; 2] =
        std::array::from_fn(|i| (names[i].to_owned(), pair[i].1.clone(), pair[i].2.clone()));
    gguf_adapter("qwen3", Some(alpha), &pieces)
}

#[test]
fn plain_files_need_alpha() {
    let (place, base, v) = (Place::new(), base("qwen3", F32), pair(V, 2, 4, 8));
    let file = safetensors(&plain(&v));
    std::fs::create_dir_all(place.path("ckpt")).unwrap();
    place.write("ckpt/adapters.safetensors", &file);
    place.write("any.safetensors", &file);
    std::fs::create_dir_all(place.path("peft-name")).unwrap();
    place.write("peft-name/adapter_model.safetensors", &file);
    let want = plus(&values(&base, "blk.0.attn_v.weight"), &delta(&v, 2.0));
    for path in ["ckpt", "any.safetensors", "ckpt/adapters.safetensors", "peft-name"] {
        check(&place, &base, &["--adapters", path, "--alpha", "4"], &[("blk.0.attn_v.weight", want.clone())]);
        let said = place.refuse(&base, &["--adapters", path]);
        assert!(said.contains("does not say alpha") && said.contains("--alpha"), "{said}");
    }
}

/// The trainer's checkpoints have other frames behind the adapter.
#[test]
fn plain_files_are_read_by_their_first_frame() {
    let (place, base, v) = (Place::new(), base("qwen3", F32), pair(V, 2, 4, 8));
    let file = safetensors(&plain(&v));
    place.write("any.safetensors", &[file.clone(), safetensors(&[])].concat());
    let want = plus(&values(&base, "blk.0.attn_v.weight"), &delta(&v, 2.0));
    check(
        &place,
        &base,
        &["--adapters", "any.safetensors", "--alpha", "4"],
        &[("blk.0.attn_v.weight", want)],
    );
    place.write("any.safetensors", &file[..file.len() - 1]);
    let said = place.refuse(&base, &["--adapters", "any.safetensors", "--alpha", "4"]);
    assert!(said.contains("any.safetensors: "), "{said}");
    // PEFT writes one frame, so more is a broken file.
    peft(&place, "peft", &config(json!({})), &v);
    let broken = [safetensors(&v), vec![0]].concat();
    place.write("peft/adapter_model.safetensors", &broken);
    let said = place.refuse(&base, &["--adapters", "peft"]);
    assert!(said.contains("goes on after its tensors"), "{said}");
}

#[test]
fn gguf_adapters_say_alpha_themselves() {
    let (place, base, v) = (Place::new(), base("qwen3", F32), pair(V, 2, 4, 8));
    place.write("adapter.gguf", &gguf(&v, 6.0));
    let want = plus(&values(&base, "blk.0.attn_v.weight"), &delta(&v, 3.0));
    check(&place, &base, &["--adapters", "adapter.gguf"], &[("blk.0.attn_v.weight", want)]);
}

/// llama.cpp's converter saves factors in `Q8_0` too, and whole norms beside them.
#[test]
fn gguf_adapters_may_be_quantized_and_hold_norms() {
    let tensors: [(&str, &[u64]); 3] =
        [("blk.0.attn_v.weight", &[32, 4]), ("blk.0.attn_norm.weight", &[32]), ("output.weight", &[32, 4])];
    let (place, base) = (Place::new(), with(keys("qwen3"), F32, &tensors));
    let a: Vec<f32> = (0..2 * 32).map(|i| if i % 3 == 0 { 127.0 } else { 0.0 }).collect();
    let b = numbers(4 * 32, 3);
    let norm = numbers(32, 8);
    let mut keys = Builder::new();
    keys.set("general.architecture", "qwen3").set("general.type", "adapter").set("adapter.type", "lora");
    keys.set("adapter.lora.alpha", 32.0_f32);
    // Of rank 32, so that both factors divide into blocks.
    let a32: Vec<f32> = (0..32 * 32).map(|i| if i < 64 { a[i] } else { 0.0 }).collect();
    let file = whole(
        keys,
        &[
            ("blk.0.attn_v.weight.lora_a", &[32, 32], GgmlType::Q8_0, bytes(GgmlType::Q8_0, &a32)),
            ("blk.0.attn_v.weight.lora_b", &[32, 4], GgmlType::F16, bytes(GgmlType::F16, &b)),
            ("blk.0.attn_norm.weight", &[32], F32, f32s(norm.iter().copied())),
        ],
    );
    place.write("adapter.gguf", &file);
    let mut want = values(&base, "blk.0.attn_v.weight");
    for (i, w) in want.iter_mut().enumerate() {
        *w += (0..32).map(|r| b[i / 32 * 32 + r] * a32[r * 32 + i % 32]).sum::<f32>();
    }
    let want = [("blk.0.attn_v.weight", want), ("blk.0.attn_norm.weight", norm)];
    check(&place, &base, &["--adapters", "adapter.gguf"], &want);
}

/// In a GGUF adapter `lora_a` of the embedding has a row for each token, as llama.cpp looks it up.
#[test]
fn gguf_adapters_of_embeddings_are_looked_up() {
    let (place, base) = (Place::new(), base("qwen3", F32));
    let (a, b) = (numbers(16 * 2, 1), numbers(8 * 2, 2));
    let mut want = values(&base, "token_embd.weight");
    for (i, w) in want.iter_mut().enumerate() {
        *w += 2.0 * (0..2).map(|r| a[i / 8 * 2 + r] * b[i % 8 * 2 + r]).sum::<f32>();
    }
    place.write(
        "adapter.gguf",
        &gguf_adapter(
            "qwen3",
            Some(4.0),
            &[
                ("token_embd.weight.lora_a".into(), vec![16, 2], a),
                ("token_embd.weight.lora_b".into(), vec![8, 2], b),
            ],
        ),
    );
    check(&place, &base, &["--adapters", "adapter.gguf"], &[("token_embd.weight", want)]);
}

/// axolotl-ai-cloud/axolotl#3998, ggml-org/llama.cpp#1449: several adapters with scales, of any kinds.
#[test]
fn adapters_add_up_in_order_with_their_scales() {
    let (place, base) = (Place::new(), base("qwen3", F32));
    let (one, two, three) = (pair(V, 2, 4, 8), pair(V, 1, 4, 8), pair(V, 4, 4, 8));
    peft(&place, "me@home", &config(json!({})), &one);
    place.write("two.gguf", &gguf(&two, 1.0));
    place.write("three.safetensors", &safetensors(&plain(&three)));
    let mut want = values(&base, "blk.0.attn_v.weight");
    for d in [delta(&one, 0.5 * 2.0), delta(&two, 1.0), delta(&three, -2.0 * 2.0)] {
        want = plus(&want, &d);
    }
    let args = [
        "--adapters",
        "me@home@0.5",
        "--adapters",
        "two.gguf",
        "--adapters",
        "three.safetensors@-2",
        "--alpha",
        "8",
    ];
    check(&place, &base, &args, &[("blk.0.attn_v.weight", want)]);
}

/// A later adapter changes what an earlier one put in place.
#[test]
fn order_counts_where_values_are_replaced() {
    let (place, base, v) = (Place::new(), base("qwen3", F32), pair(V, 2, 4, 8));
    let whole = (format!("base_model.model.{V}.weight"), vec![4, 8], numbers(32, 50));
    peft(&place, "add", &config(json!({})), &v);
    peft(&place, "replace", &config(json!({"modules_to_save": ["v_proj"]})), std::slice::from_ref(&whole));
    let name = "blk.0.attn_v.weight";
    check(&place, &base, &["--adapters", "add", "--adapters", "replace"], &[(name, whole.2.clone())]);
    let both = plus(&whole.2, &delta(&v, 2.0));
    check(&place, &base, &["--adapters", "replace", "--adapters", "add"], &[(name, both)]);
    let said = place.refuse(&base, &["--adapters", "replace@0.5"]);
    assert!(said.contains("cannot be scaled by 0.5"), "{said}");
}

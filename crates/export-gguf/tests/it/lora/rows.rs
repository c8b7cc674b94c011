//! Which rows of which tensor: reordered heads, fused tensors, experts.

use gguf_format::GgmlType;
use serde_json::json;

use super::make::*;
use crate::support::*;

const F32: GgmlType = GgmlType::F32;

/// The converter's order of the rows of one head: the first half's and the second half's take turns.
fn paired(values: &[f32], heads: usize, width: usize) -> Vec<f32> {
    let head = values.len() / width / heads;
    let mut out = Vec::new();
    for h in 0..heads {
        for i in 0..head / 2 {
            for half in 0..2 {
                let row = h * head + half * (head / 2) + i;
                out.extend(&values[row * width..(row + 1) * width]);
            }
        }
    }
    out
}

/// In llama's files the rows of Q and K are not where Hugging Face has them.
#[test]
fn heads_of_llama_are_reordered_for_huggingface_names_alone() {
    let base = base("llama", F32);
    let attn = "model.layers.0.self_attn";
    let (q, k, v) = (
        pair(&format!("{attn}.q_proj"), 2, 8, 8),
        pair(&format!("{attn}.k_proj"), 2, 4, 8),
        pair(&format!("{attn}.v_proj"), 2, 4, 8),
    );
    let want = [
        ("blk.0.attn_q.weight", plus(&values(&base, "blk.0.attn_q.weight"), &paired(&delta(&q, 2.0), 2, 8))),
        ("blk.0.attn_k.weight", plus(&values(&base, "blk.0.attn_k.weight"), &paired(&delta(&k, 2.0), 1, 8))),
        ("blk.0.attn_v.weight", plus(&values(&base, "blk.0.attn_v.weight"), &delta(&v, 2.0))),
    ];
    let place = Place::new();
    peft(&place, "adapter", &config(json!({})), &[q.clone(), k, v].concat());
    check(&place, &base, &["--adapters", "adapter"], &want);

    let gguf = gguf_adapter(
        "llama",
        Some(4.0),
        &[
            ("blk.0.attn_q.weight.lora_a".into(), q[0].1.clone(), q[0].2.clone()),
            ("blk.0.attn_q.weight.lora_b".into(), q[1].1.clone(), q[1].2.clone()),
        ],
    );
    place.write("adapter.gguf", &gguf);
    let want = plus(&values(&base, "blk.0.attn_q.weight"), &delta(&q, 2.0));
    check(&place, &base, &["--adapters", "adapter.gguf"], &[("blk.0.attn_q.weight", want)]);
}

/// Biases and whole matrices follow the same order.
#[test]
fn what_replaces_is_reordered_too() {
    let tensors = [&DECODER[..], &[("blk.0.attn_q.bias", &[8])]].concat();
    let base = with(keys("llama"), F32, &tensors);
    let module = "base_model.model.model.layers.0.self_attn.q_proj";
    let w = (format!("{module}.weight"), vec![8, 8], numbers(64, 21));
    let b = (format!("{module}.bias"), vec![8], numbers(8, 22));
    let want = [("blk.0.attn_q.weight", paired(&w.2, 2, 8)), ("blk.0.attn_q.bias", paired(&b.2, 2, 1))];
    let place = Place::new();
    peft(&place, "adapter", &config(json!({"modules_to_save": ["q_proj"]})), &[w, b]);
    check(&place, &base, &["--adapters", "adapter"], &want);
}

/// Parts of `attn_qkv` go by the heads, for adapters of any kind.
#[test]
fn fused_attention_takes_its_parts() {
    let tensors: [(&str, &[u64]); 3] =
        [("token_embd.weight", &[8, 16]), ("blk.0.attn_qkv.weight", &[8, 16]), ("output.weight", &[8, 16])];
    let old = |base: &[u8]| values(base, "blk.0.attn_qkv.weight");
    let pairs = [("q", 8, 0), ("k", 4, 8), ("v", 4, 12)];
    for architecture in ["phi3", "llama"] {
        let base = with(keys(architecture), F32, &tensors);
        let mut want = old(&base);
        let mut pieces = Vec::new();
        for (part, rows, first) in pairs {
            let p = pair(&format!("model.layers.0.self_attn.{part}_proj"), 2, rows, 8);
            let mut d = delta(&p, 2.0);
            if architecture == "llama" && part != "v" {
                d = paired(&d, if part == "q" { 2 } else { 1 }, 8);
            }
            for (i, d) in d.iter().enumerate() {
                want[first * 8 + i] += d;
            }
            pieces.extend(p);
        }
        let place = Place::new();
        peft(&place, "adapter", &config(json!({})), &pieces);
        check(&place, &base, &["--adapters", "adapter"], &[("blk.0.attn_qkv.weight", want)]);
    }
}

/// Phi-3 keeps gate and up in one tensor, and adapters may know them as one module or as two.
#[test]
fn phi3_gate_and_up_share_a_tensor() {
    let tensors: [(&str, &[u64]); 3] =
        [("token_embd.weight", &[8, 16]), ("blk.0.ffn_up.weight", &[8, 24]), ("output.weight", &[8, 16])];
    let base = with(keys("phi3"), F32, &tensors);
    let old = values(&base, "blk.0.ffn_up.weight");
    let mlp = "model.layers.0.mlp";
    let whole = pair(&format!("{mlp}.gate_up_proj"), 2, 24, 8);
    let (gate, up) = (pair(&format!("{mlp}.gate_proj"), 2, 12, 8), pair(&format!("{mlp}.up_proj"), 2, 12, 8));
    let halves = [delta(&gate, 2.0), delta(&up, 2.0)].concat();
    for (pieces, d) in [(whole.to_vec(), delta(&whole, 2.0)), ([gate, up].concat(), halves)] {
        let place = Place::new();
        peft(&place, "adapter", &config(json!({})), &pieces);
        check(&place, &base, &["--adapters", "adapter"], &[("blk.0.ffn_up.weight", plus(&old, &d))]);
    }
}

/// Experts stand in one tensor, here and fused with each other.
#[test]
fn experts_are_matrices_of_a_stack() {
    let mlp = "model.layers.0.mlp";
    let stack: [(&str, &[u64]); 3] = [
        ("token_embd.weight", &[8, 16]),
        ("blk.0.ffn_up_exps.weight", &[8, 6, 3]),
        ("output.weight", &[8, 16]),
    ];
    let fused: [(&str, &[u64]); 3] = [
        ("token_embd.weight", &[8, 16]),
        ("blk.0.ffn_gate_up_exps.weight", &[8, 12, 3]),
        ("output.weight", &[8, 16]),
    ];
    let two = pair(&format!("{mlp}.experts.2.up_proj"), 2, 6, 8);
    for (tensors, name, first) in
        [(stack, "blk.0.ffn_up_exps.weight", 12), (fused, "blk.0.ffn_gate_up_exps.weight", 30)]
    {
        let base = with(keys("qwen3moe"), F32, &tensors);
        let mut want = values(&base, name);
        for (i, d) in delta(&two, 2.0).iter().enumerate() {
            want[first * 8 + i] += d;
        }
        let place = Place::new();
        peft(&place, "adapter", &config(json!({})), &two);
        check(&place, &base, &["--adapters", "adapter"], &[(name, want)]);
    }
    let place = Place::new();
    peft(&place, "adapter", &config(json!({})), &pair(&format!("{mlp}.experts.3.up_proj"), 2, 6, 8));
    let said = place.refuse(&with(keys("qwen3moe"), F32, &stack), &["--adapters", "adapter"]);
    assert!(said.contains("expert 3 of 3 in blk.0.ffn_up_exps.weight"), "{said}");
}

/// A GGUF adapter has a matrix for each expert in three dimensions.
#[test]
fn gguf_adapters_stack_experts() {
    let tensors: [(&str, &[u64]); 2] =
        [("blk.0.ffn_up_exps.weight", &[8, 6, 3]), ("output.weight", &[8, 16])];
    let base = with(keys("qwen3moe"), F32, &tensors);
    let (a, b) = (numbers(3 * 2 * 8, 1), numbers(3 * 6 * 2, 2));
    let mut want = values(&base, "blk.0.ffn_up_exps.weight");
    for (i, w) in want.iter_mut().enumerate() {
        let (x, row, col) = (i / 48, i / 8 % 6, i % 8);
        *w += 2.0 * (0..2).map(|r| b[x * 12 + row * 2 + r] * a[x * 16 + r * 8 + col]).sum::<f32>();
    }
    let place = Place::new();
    let name = "blk.0.ffn_up_exps.weight";
    place.write(
        "adapter.gguf",
        &gguf_adapter(
            "qwen3moe",
            Some(4.0),
            &[(format!("{name}.lora_a"), vec![3, 2, 8], a), (format!("{name}.lora_b"), vec![3, 6, 2], b)],
        ),
    );
    check(&place, &base, &["--adapters", "adapter.gguf"], &[(name, want)]);
}

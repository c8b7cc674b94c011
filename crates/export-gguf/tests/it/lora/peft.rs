//! PEFT folders: names, scales, and everything that their configuration can ask for.

use gguf_format::GgmlType;
use serde_json::json;

use super::make::*;
use crate::support::*;

const V: &str = "model.layers.0.self_attn.v_proj";
const Q: &str = "model.layers.0.self_attn.q_proj";

/// Merges one folder into the base and compares.
fn merges(config: &str, pieces: &[Piece], changed: &[(&str, Vec<f32>)]) {
    let place = Place::new();
    peft(&place, "adapter", config, pieces);
    check(&place, &base("qwen3", GgmlType::F32), &["--adapters", "adapter"], changed);
}

fn refuses(config: &str, pieces: &[Piece]) -> String {
    let place = Place::new();
    peft(&place, "adapter", config, pieces);
    place.refuse(&base("qwen3", GgmlType::F32), &["--adapters", "adapter"])
}

fn before(name: &str) -> Vec<f32> {
    values(&base("qwen3", GgmlType::F32), name)
}

/// What `pieces` and others together are.
fn all(parts: &[&[Piece]]) -> Vec<Piece> {
    parts.concat()
}

/// NVIDIA/TensorRT-LLM#1668: alpha over the rank.
#[test]
fn scale_is_alpha_over_rank() {
    let v = pair(V, 2, 4, 8);
    let want = plus(&before("blk.0.attn_v.weight"), &delta(&v, 2.0));
    merges(&config(json!({})), &v, &[("blk.0.attn_v.weight", want)]);
}

/// ggml-org/llama.cpp#3640: the adapter's own name between `lora_A` and `weight`.
#[test]
fn names_may_hold_the_adapters_name() {
    let v = pair(V, 2, 4, 8);
    let want = plus(&before("blk.0.attn_v.weight"), &delta(&v, 2.0));
    let named = v.clone().map(|(n, s, d)| (n.replace(".weight", ".default.weight"), s, d));
    merges(&config(json!({})), &named, &[("blk.0.attn_v.weight", want)]);
    let said = refuses(&config(json!({})), &all(&[&v, &named]));
    assert!(said.contains("a second lora_A") && said.contains("a second lora_B"), "{said}");
}

/// paiml/aprender#2189, huggingface/peft#3761: alpha over the root of the rank.
#[test]
fn rslora_divides_by_the_root() {
    let v = pair(V, 4, 4, 8);
    let want = plus(&before("blk.0.attn_v.weight"), &delta(&v, 4.0));
    let config = config(json!({"use_rslora": true, "r": 4, "lora_alpha": 8}));
    merges(&config, &v, &[("blk.0.attn_v.weight", want)]);
}

/// huggingface/diffusers#14409, huggingface/peft#1930: a rank and an alpha for some modules.
#[test]
fn patterns_give_modules_their_own_rank_and_alpha() {
    let (v, q) = (pair(V, 4, 4, 8), pair(Q, 2, 8, 8));
    let config = config(json!({"rank_pattern": {"v_proj": 4}, "alpha_pattern": {"v_proj": 32}}));
    let want = [
        ("blk.0.attn_v.weight", plus(&before("blk.0.attn_v.weight"), &delta(&v, 8.0))),
        ("blk.0.attn_q.weight", plus(&before("blk.0.attn_q.weight"), &delta(&q, 2.0))),
    ];
    merges(&config, &all(&[&v, &q]), &want);
}

/// ggml-org/llama.cpp#11554, #3651: whole matrices and norms in the adapter.
#[test]
fn modules_to_save_replace() {
    let v = pair(V, 2, 4, 8);
    let head = ("base_model.model.lm_head.weight".to_owned(), vec![16, 8], numbers(128, 77));
    let norm =
        ("base_model.model.model.norm.modules_to_save.default.weight".to_owned(), vec![8], numbers(8, 78));
    let config = config(json!({"modules_to_save": ["lm_head", "norm"]}));
    let want = [
        ("blk.0.attn_v.weight", plus(&before("blk.0.attn_v.weight"), &delta(&v, 2.0))),
        ("output.weight", head.2.clone()),
        ("output_norm.weight", norm.2.clone()),
    ];
    merges(&config, &all(&[&v, &[head.clone(), norm]]), &want);
    let said = refuses(&config, &all(&[&v, &[head]]));
    assert!(said.contains("modules_to_save: no tensor of norm"), "{said}");
}

/// Gemma's norms are stored with one added.
#[test]
fn norms_that_replace_get_what_the_converter_adds() {
    let place = Place::new();
    let norm = ("base_model.model.model.layers.0.input_layernorm.weight".to_owned(), vec![8], numbers(8, 5));
    let want: Vec<f32> = norm.2.iter().map(|v| v + 1.0).collect();
    peft(&place, "adapter", &config(json!({"modules_to_save": ["input_layernorm"]})), &[norm]);
    let base = base("gemma2", GgmlType::F32);
    check(&place, &base, &["--adapters", "adapter"], &[("blk.0.attn_norm.weight", want)]);
}

/// huggingface/peft's `lora.Embedding`: A has a column for each token.
#[test]
fn embeddings_are_transposed() {
    let a = ("base_model.model.model.embed_tokens.lora_embedding_A".to_owned(), vec![2, 16], numbers(32, 3));
    let b = ("base_model.model.model.embed_tokens.lora_embedding_B".to_owned(), vec![8, 2], numbers(16, 4));
    let mut want = before("token_embd.weight");
    for (i, w) in want.iter_mut().enumerate() {
        let (token, column) = (i / 8, i % 8);
        *w += 2.0 * (0..2).map(|r| b.2[column * 2 + r] * a.2[r * 16 + token]).sum::<f32>();
    }
    merges(&config(json!({})), &[a, b], &[("token_embd.weight", want)]);
}

/// huggingface/peft#2237: the bias of `lora_B` is added to the module's, scaled.
#[test]
fn bias_of_b_is_added_or_refused() {
    let v = pair(V, 2, 4, 8);
    let bias = (v[1].0.replace(".weight", ".bias"), vec![4], numbers(4, 9));
    let config = config(json!({"lora_bias": true}));
    let said = refuses(&config, &all(&[&v, std::slice::from_ref(&bias)]));
    assert!(said.contains("no such tensor in the base: blk.0.attn_v.bias"), "{said}");
    let said = refuses(&config, &v);
    assert!(said.contains("lora_bias is set, but lora_B.bias is missing"), "{said}");
    let said = refuses(&self::config(json!({})), &all(&[&v, std::slice::from_ref(&bias)]));
    assert!(said.contains("a bias of lora_B, but lora_bias is not set"), "{said}");

    let tensors = [&DECODER[..], &[("blk.0.attn_v.bias", &[4])]].concat();
    let base = with(keys("qwen2"), GgmlType::F32, &tensors);
    let place = Place::new();
    peft(&place, "adapter", &config, &all(&[&v, std::slice::from_ref(&bias)]));
    let scaled: Vec<f32> = bias.2.iter().map(|v| v * 2.0).collect();
    let want = [
        ("blk.0.attn_v.weight", plus(&values(&base, "blk.0.attn_v.weight"), &delta(&v, 2.0))),
        ("blk.0.attn_v.bias", plus(&values(&base, "blk.0.attn_v.bias"), &scaled)),
    ];
    check(&place, &base, &["--adapters", "adapter"], &want);
}

/// `bias: all` saves the modules' own biases.
#[test]
fn trained_biases_replace() {
    let tensors = [&DECODER[..], &[("blk.0.attn_q.bias", &[8])]].concat();
    let base = with(keys("qwen2"), GgmlType::F32, &tensors);
    let place = Place::new();
    let bias = (format!("base_model.model.{Q}.bias"), vec![8], numbers(8, 9));
    peft(&place, "adapter", &config(json!({"bias": "all"})), std::slice::from_ref(&bias));
    check(&place, &base, &["--adapters", "adapter"], &[("blk.0.attn_q.bias", bias.2)]);
}

/// ggml-org/llama.cpp#6536, unslothai/unsloth-zoo#828: rows get the length that was trained.
#[test]
fn dora_sets_the_lengths_of_rows() {
    let v = pair(V, 2, 4, 8);
    let m = (format!("base_model.model.{V}.lora_magnitude_vector"), vec![4], vec![1.0, 2.0, 3.0, 0.5]);
    let sum = plus(&before("blk.0.attn_v.weight"), &delta(&v, 2.0));
    let row = |(m, row): (&f32, &[f32])| {
        let length = row.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
        let factor = (f64::from(*m) / length) as f32;
        row.iter().map(|v| v * factor).collect::<Vec<_>>()
    };
    let want = m.2.iter().zip(sum.chunks(8)).flat_map(row).collect();
    let config_ = config(json!({"use_dora": true}));
    merges(&config_, &all(&[&v, std::slice::from_ref(&m)]), &[("blk.0.attn_v.weight", want)]);

    let said = refuses(&config_, &v);
    assert!(said.contains("lora_magnitude_vector is missing"), "{said}");
    let said = refuses(&config(json!({})), &all(&[&v, &[m]]));
    assert!(said.contains("use_dora is not set"), "{said}");
}

/// predibase/lorax#106, huggingface/peft#3531: `Conv1D` is transposed in the checkpoint only, also where it is
/// square and a slip would not show.
#[test]
fn conv1d_is_not_transposed_again() {
    let tensors: [(&str, &[u64]); 4] = [
        ("token_embd.weight", &[8, 16]),
        ("blk.0.attn_qkv.weight", &[8, 24]),
        ("blk.0.attn_output.weight", &[8, 8]),
        ("output.weight", &[8, 16]),
    ];
    let base = with(keys("gpt2"), GgmlType::F32, &tensors);
    let (qkv, out) =
        (pair("transformer.h.0.attn.c_attn", 2, 24, 8), pair("transformer.h.0.attn.c_proj", 2, 8, 8));
    let place = Place::new();
    peft(&place, "adapter", &config(json!({"fan_in_fan_out": true})), &all(&[&qkv, &out]));
    let want = [
        ("blk.0.attn_qkv.weight", plus(&values(&base, "blk.0.attn_qkv.weight"), &delta(&qkv, 2.0))),
        ("blk.0.attn_output.weight", plus(&values(&base, "blk.0.attn_output.weight"), &delta(&out, 2.0))),
    ];
    check(&place, &base, &["--adapters", "adapter"], &want);
}

/// What changes the meaning of an adapter and cannot be merged is named.
#[test]
fn features_that_cannot_be_merged_are_refused_by_name() {
    let v = pair(V, 2, 4, 8);
    for (changes, name) in [
        (json!({"peft_type": "IA3"}), "IA3: only LORA"),
        (json!({"peft_type": null}), "peft_type: missing"),
        (json!({"lora_alpha": null}), "lora_alpha: missing"),
        (json!({"bias": "some"}), "bias: some"),
        (json!({"use_qalora": true}), "use_qalora"),
        (json!({"alora_invocation_tokens": [1, 2]}), "alora_invocation_tokens"),
        (json!({"layer_replication": [[0, 4], [2, 5]]}), "layer_replication"),
        (json!({"target_parameters": ["mlp.experts.gate_up_proj"]}), "target_parameters"),
        (json!({"trainable_token_indices": [7]}), "trainable_token_indices"),
        (json!({"init_lora_weights": "pissa_niter_4"}), "init_lora_weights"),
        (json!({"init_lora_weights": "loftq"}), "init_lora_weights"),
        (json!({"use_dora": true, "lora_bias": true}), "lora_bias"),
        (json!({"arrow_config": {"top_k": 2}}), "arrow_config"),
    ] {
        let said = refuses(&config(changes.clone()), &v);
        assert!(said.contains(name), "{changes}: {said}");
    }
    for harmless in ["gaussian", "eva", "orthogonal"] {
        let want = plus(&before("blk.0.attn_v.weight"), &delta(&v, 2.0));
        merges(&config(json!({"init_lora_weights": harmless})), &v, &[("blk.0.attn_v.weight", want)]);
    }
    let said = refuses("{\"r\": 2, \"r\": 4}", &v);
    assert!(said.contains("adapter_config.json: duplicate field `r`"), "{said}");
}

//! What is printed of merges, and command lines that make no sense.

use gguf_format::GgmlType;
use serde_json::{Value, json};

use super::make::*;
use crate::support::*;

fn place() -> Place {
    let place = Place::new();
    place.write("in.gguf", &base("llama", GgmlType::F16));
    let attn = "model.layers.0.self_attn";
    let norm = ("base_model.model.model.norm.weight".to_owned(), vec![8], numbers(8, 2));
    let mut pieces = vec![norm];
    pieces.extend(pair(&format!("{attn}.q_proj"), 2, 8, 8));
    pieces.extend(pair(&format!("{attn}.v_proj"), 2, 4, 8));
    peft(&place, "adapter", &config(json!({"modules_to_save": ["norm"]})), &pieces);
    let [a, b] = pair("x", 1, 8, 12);
    let pieces = [
        ("blk.0.ffn_down.weight.lora_a".to_owned(), a.1, a.2),
        ("blk.0.ffn_down.weight.lora_b".to_owned(), b.1, b.2),
    ];
    place.write("other.gguf", &gguf_adapter("llama", Some(3.0), &pieces));
    place
}

#[test]
fn a_dry_run_lists_every_merge() {
    let place = place();
    let args =
        ["--from-gguf", "in.gguf", "--adapters", "adapter", "--adapters", "other.gguf@0.25", "--dry-run"];
    let ran = place.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.err);
    insta::assert_snapshot!(ran.out);

    let ran = place.run(&[&args[..], &["--json"]].concat());
    let all: Value = serde_json::from_str(&ran.out).unwrap();
    let merges = all["adapters"][0]["merges"].as_array().unwrap();
    assert_eq!(merges.len(), 3);
    assert_eq!(merges[0]["tensor"], "blk.0.attn_q.weight");
    assert_eq!((merges[0]["rank"].as_u64(), merges[0]["scale"].as_f64()), (Some(2), Some(2.0)));
    // The change's length against the tensor's.
    let base = base("llama", GgmlType::F16);
    let norm = |values: &[f32]| values.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
    let d = delta(&pair("model.layers.0.self_attn.v_proj", 2, 4, 8), 2.0);
    let want = norm(&d) / norm(&values(&base, "blk.0.attn_v.weight"));
    assert!((merges[1]["relative_change"].as_f64().unwrap() - want).abs() < 1e-12, "{}", merges[1]);
    assert_eq!(all["adapters"][1]["kind"], "GGUF");
    assert_eq!(all["tensors"][2]["why"], "merged");
}

#[test]
fn the_summary_says_what_was_merged() {
    let place = place();
    let ran = place.run(&["--from-gguf", "in.gguf", "--out", "out.gguf", "--adapters", "adapter"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("2 tensors      F16 -> F16") && ran.out.contains("merged"), "{}", ran.out);
}

#[test]
fn senseless_command_lines() {
    let place = place();
    let run = |args: &[&str]| {
        let ran = place.run(&[&["--from-gguf", "in.gguf", "--out", "out.gguf"], args].concat());
        assert_eq!(ran.code, 2, "{args:?}: {} {}", ran.out, ran.err);
        assert!(!place.names().contains(&"out.gguf".to_owned()));
        ran.err
    };
    let said = run(&["--adapters", "adapter", "--alpha", "8"]);
    assert!(
        said.contains("--alpha is for adapters that do not say theirs") && said.contains("adapter@S"),
        "{said}"
    );
    assert!(run(&["--adapters", "other.gguf", "--alpha", "8"]).contains("GGUF adapter"));
    assert!(run(&["--alpha", "8"]).contains("--adapters"));
    assert!(run(&["--adapters", "adapter@0"]).contains("merges nothing"));
    assert!(run(&["--adapters", "adapter", "--alpha", "0"]).contains("other than 0"));
    assert!(run(&["--allow-requantize"]).contains("--dtype or --mix"));
}

/// Also where another option gives the reason for a tensor's type.
#[test]
fn a_run_tells_what_was_merged() {
    let place = Place::new();
    place.write("in.gguf", &base("qwen3", GgmlType::F32));
    let module = "model.layers.0.self_attn.v_proj";
    peft(&place, "adapter", &config(json!({})), &pair(module, 2, 4, 8));
    for more in [&[][..], &["--dtype", "f16"], &["--mix", "f16"]] {
        let args = ["--from-gguf", "in.gguf", "--out", "o.gguf", "--force", "--adapters", "adapter"];
        let ran = place.run(&[&args[..], more].concat());
        assert!(ran.out.contains("adapters merged into 1 tensor\n"), "{more:?}: {}{}", ran.out, ran.err);
        let ran = place.run(&[&args[..], more, &["--json"]].concat());
        let report: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(report["merged"], json!(["blk.0.attn_v.weight"]), "{more:?}");
    }
}

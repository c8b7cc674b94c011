//! `--report`, `--json` and the measured errors.

use std::path::Path;

use serde_json::Value;

use crate::support::*;

/// Runs an export with a report over `mixed`, and reads it, with what differs from run to run blanked.
fn report(more: &[&str]) -> Value {
    let place = Place::new();
    place.export(&mixed(), &[&["--report", "out.json", "--quiet"], more].concat());
    let mut json: Value = serde_json::from_slice(&place.read("out.json")).unwrap();
    assert!(json["seconds"].as_f64().unwrap() > 0.0);
    assert!(json["peak_rss"].as_u64().is_none_or(|n| n > 100_000));
    json["seconds"] = "...".into();
    json["peak_rss"] = "...".into();
    json
}

#[test]
fn the_report_of_one_type() {
    let json = report(&["--dtype", "q4_0"]);
    insta::assert_snapshot!(serde_json::to_string_pretty(&json).unwrap());
}

#[test]
fn the_report_of_a_mix() {
    let json = report(&["--mix", "q4_k_m"]);
    insta::assert_snapshot!(serde_json::to_string_pretty(&json).unwrap());
}

#[test]
fn every_field_is_described() {
    fn fields(value: &Value, prefix: &str, found: &mut Vec<String>) {
        for (key, value) in value.as_object().into_iter().flatten() {
            found.push(format!("{prefix}{key}"));
            if let Some(first) = value.as_array().and_then(|a| a.first()) {
                fields(first, &format!("{prefix}{key}[]."), found);
            }
        }
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut found = Vec::new();
    fields(&report(&["--dtype", "q4_0"]), "", &mut found);
    assert!(found.len() > 20, "{found:?}");
    for field in found {
        assert!(page.contains(&format!("`{field}`")), "docs/report.md lacks {field}");
    }
}

#[test]
fn the_error_is_that_of_what_was_stored_whatever_the_threads() {
    let shape = [768, 900];
    let tensor = || ("blk.0.ffn_up.weight", &shape[..], gguf_format::GgmlType::F32, f32s(weights(768 * 900)));
    let input = model(&[tensor()]);
    for dtype in ["q4_k", "tq2_0", "bf16"] {
        let place = Place::new();
        let mut errors = Vec::new();
        for threads in ["1", "2", "5"] {
            let more = ["--dtype", dtype, "--threads", threads, "--report", "r.json"];
            let out = place.export(&input, &more);
            let json: Value = serde_json::from_slice(&place.read("r.json")).unwrap();
            errors.push(json["tensors"][0]["relative_error"].as_f64().unwrap().to_bits());
            let stored = values(&out, "blk.0.ffn_up.weight");
            let square = |x: f32| f64::from(x) * f64::from(x);
            let power: f64 = weights(768 * 900).map(square).sum();
            let error: f64 = weights(768 * 900).zip(&stored).map(|(a, b)| square(a - b)).sum();
            let (expect, got) = ((error / power).sqrt(), f64::from_bits(errors[0]));
            assert!((got / expect - 1.0).abs() < 1e-6, "{dtype}: {got}, by hand {expect}");
        }
        assert_eq!(errors, [errors[0]; 3], "{dtype}");
    }
}

#[test]
fn without_measuring_the_model_is_the_same() {
    let place = Place::new();
    let measured = place.export(&mixed(), &["--dtype", "q5_k"]);
    let plain = place.export(&mixed(), &["--dtype", "q5_k", "--no-measure", "--report", "r.json"]);
    assert!(measured == plain);
    let json: Value = serde_json::from_slice(&place.read("r.json")).unwrap();
    assert!(json["tensors"].as_array().unwrap().iter().all(|t| t["relative_error"].is_null()));
    assert_eq!(json["worst"].as_array().map(Vec::len), Some(0));
}

#[test]
fn the_summary_names_the_worst() {
    let place = Place::new();
    place.write("in.gguf", &mixed());
    let ran = place.run(&["--from-gguf", "in.gguf", "--out", "o.gguf", "--dtype", "q4_0", "--verbose"]);
    let worst = ran.out.lines().find(|l| l.starts_with("largest relative errors: ")).unwrap();
    assert!(worst.contains("blk.0.ffn_down.weight (Q4_0) 0.0"), "{worst}");
    assert!(ran.out.lines().any(|l| l.starts_with("token_embd.weight") && l.contains("relative error 0.")));
}

#[test]
fn a_report_takes_no_other_files_place() {
    for (report, say) in [
        ("in.gguf", "is another file of this run"),
        ("refused.gguf", "is another file of this run"),
        ("link", "is the input in.gguf itself"),
        ("old.json", "exists already"),
        ("nowhere/r.json", "cannot use folder"),
    ] {
        let place = Place::new();
        place.write("in.gguf", &mixed());
        place.write("old.json", b"old");
        std::fs::hard_link(place.path("in.gguf"), place.path("link")).unwrap();
        let ran = place.run(&["--from-gguf", "in.gguf", "--out", "refused.gguf", "--report", report]);
        assert!(ran.code != 0 && ran.err.contains(say), "{report}: {}", ran.err);
        assert_eq!(place.names(), ["in.gguf", "link", "old.json"], "{report}");
        assert!(place.read("in.gguf") == mixed() && place.read("old.json") == b"old");
    }
    // A model that fails leaves no report.
    let place = Place::new();
    let nan = f32s(weights(255).chain([f32::NAN]));
    let input = model(&[("blk.0.ffn_up.weight", &[256, 1], gguf_format::GgmlType::F32, nan)]);
    place.refuse(&input, &["--dtype", "q8_0", "--report", "r.json"]);
    assert_eq!(place.names(), ["in.gguf"]);
}

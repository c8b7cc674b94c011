//! Trit-planes: llama.cpp's library decodes each to what we say it is, and a model put together from
//! them runs there.

use super::{Tools, capture, cosine};
use crate::util::{Outcome, root, run as run_command};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is decomposed, how, and the least cosine of the model put together again, if it can be run.
const CASES: [(&str, &[&str], Option<f64>); 3] = [
    ("minilm", &["--ptqtp=3"], Some(0.99)),
    ("minilm", &["--ptqtp=2", "--ptqtp-tie", "--ptqtp-include", "blk,token_embd"], Some(0.9)),
    ("recut", &["--ptqtp=2"], None),
];

/// Runs all cases, prints a line for each, and notes what is wrong.
pub(super) fn check(tools: &Tools, models: &Path, faults: &mut Vec<String>) -> Outcome {
    println!("\n{:<8} {:<60} {:>7} {:>10} {:>8}", "model", "planes", "planes", "weights", "cosine");
    for (model, options, limit) in CASES {
        let source = models.join(format!("{model}-f16.gguf"));
        let [planes, sums] = ["planes", "sums"].map(|what| models.join(format!("{model}-{what}.gguf")));
        export(&["--from-gguf"], &source, &planes, options)?;
        export(&["--from-ptqtp"], &planes, &sums, &[])?;
        let text = capture(tools.python("planes.py").arg(tools.libraries()).arg(&planes).arg(&sums))?;
        let found: Value = serde_json::from_str(&text).map_err(|e| format!("planes.py: {e}"))?;
        let list = found["faults"].as_array().into_iter().flatten().filter_map(Value::as_str);
        faults.extend(list.map(|f| format!("{model} {}: {f}", options.join(" "))));
        if found["tensors"].as_u64().unwrap_or_default() < 6 {
            faults.push(format!(
                "{model} {}: only {} tensors became planes",
                options.join(" "),
                found["tensors"]
            ));
        }
        let mut worst = f64::NAN;
        if let Some(limit) = limit {
            worst = embedded(tools, &source, &sums)?;
            if worst.is_nan() || worst < limit {
                faults.push(format!("{model} {}: cosine {worst:.4}, {limit} wanted", options.join(" ")));
            }
        }
        println!(
            "{model:<8} {:<60} {:>7} {:>10} {worst:>8.5}",
            options.join(" "),
            found["planes"].to_string(),
            found["weights"].to_string()
        );
        for made in [planes, sums] {
            std::fs::remove_file(&made).map_err(|e| format!("{}: {e}", made.display()))?;
        }
    }
    Ok(())
}

fn export(from: &[&str], source: &Path, target: &PathBuf, options: &[&str]) -> Outcome {
    let mut export = Command::new(root().join("target/release/export-gguf"));
    export.args(from).arg(source).arg("--out").arg(target).args(options);
    run_command(export.args(["--force", "--quiet", "--threads", "2"]))
}

/// The smallest cosine between the embeddings of two models.
fn embedded(tools: &Tools, first: &Path, second: &Path) -> Outcome<f64> {
    let text = capture(tools.node("embed.mjs").arg(first).arg(second))?;
    let lines = text.lines().filter(|l| l.starts_with('['));
    let vectors: Vec<Vec<Vec<f64>>> = lines
        .map(|l| serde_json::from_str(l).map_err(|e| format!("embed.mjs: {e}")))
        .collect::<Outcome<_>>()?;
    let [first, second] = &vectors[..] else { return Err("llama.cpp did not run both models".to_owned()) };
    Ok(first.iter().zip(second).map(|(a, b)| cosine(a, b)).fold(f64::INFINITY, f64::min))
}

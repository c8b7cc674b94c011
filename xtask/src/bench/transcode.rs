//! Whole runs of export-gguf against `llama_model_quantize` (pure), two threads each, on the model
//! that `export-gguf demo --size 672M` makes: time, peak resident and peak anonymous memory.

use super::median;
use crate::interop::Tools;
use crate::util::{Outcome, capture, cargo, root, run as run_command};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const TYPES: [&str; 5] = ["q8_0", "q4_k", "q5_k", "q6_k", "iq4_xs"];
const ROUNDS: usize = 3;

/// Prints a line per type.
pub(super) fn run(only: &[&str]) -> Outcome {
    let tools = Tools::get()?;
    run_command(cargo().args(["build", "--release", "--package", "export-gguf"]))?;
    let folder = root().join("target/bench");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let model = folder.join("demo-f16.gguf");
    let binary = root().join("target/release/export-gguf");
    if !model.is_file() {
        let mut demo = Command::new(&binary);
        run_command(demo.args(["demo", "--size", "672M", "--only-model"]).arg(&folder))?;
    }
    // Both then read from the page cache.
    run_command(Command::new("cat").arg(&model).stdout(std::process::Stdio::null()))?;
    let size = std::fs::metadata(&model).map_or(0, |m| m.len());
    println!("{} bytes, 2 threads each, median of {ROUNDS}; memory in MiB", size);
    println!(
        "{:<8} {:>8} {:>8} {:>6} {:>9} {:>9} {:>10} {:>10}",
        "type", "llama s", "ours s", "ratio", "llama RSS", "ours RSS", "llama anon", "ours anon"
    );
    for kind in TYPES.iter().filter(|t| only.is_empty() || only.contains(t)) {
        let (theirs_to, ours_to) = (folder.join("llama.gguf"), folder.join("ours.gguf"));
        let mut theirs = Vec::new();
        let mut ours = Vec::new();
        for _ in 0..ROUNDS {
            let mut llama = tools.python("llama.py");
            llama.arg(tools.libraries()).arg(&model).arg(&theirs_to).arg(kind);
            theirs.push(measure(&tools, &llama)?);
            let mut export = Command::new(&binary);
            export.arg("--from-gguf").arg(&model).arg("--out").arg(&ours_to);
            export.args(["--dtype", kind, "--threads", "2", "--force", "--quiet"]);
            ours.push(measure(&tools, &export)?);
        }
        let of = |runs: &[[f64; 3]], i: usize| median(runs.iter().map(|r| r[i]).collect());
        println!(
            "{kind:<8} {:>8.2} {:>8.2} {:>6.2} {:>9.0} {:>9.0} {:>10.0} {:>10.0}",
            of(&theirs, 0),
            of(&ours, 0),
            of(&theirs, 0) / of(&ours, 0),
            of(&theirs, 1),
            of(&ours, 1),
            of(&theirs, 2),
            of(&ours, 2)
        );
        remove(&theirs_to)?;
        remove(&ours_to)?;
    }
    Ok(())
}

/// Seconds, peak resident MiB, peak anonymous MiB of a command.
fn measure(tools: &Tools, command: &Command) -> Outcome<[f64; 3]> {
    let mut measured = tools.python("measure.py");
    measured.arg(command.get_program()).args(command.get_args());
    let text = capture(&mut measured)?;
    let found: Value = serde_json::from_str(&text).map_err(|e| format!("measure.py: {e}"))?;
    let of = |key: &str| found[key].as_f64().ok_or(format!("measure.py gave no {key}"));
    Ok([of("seconds")?, of("resident")? / 1024.0, of("anonymous")? / 1024.0])
}

fn remove(path: &Path) -> Outcome {
    std::fs::remove_file(path).map_err(|e| format!("{}: {e}", path.display()))
}

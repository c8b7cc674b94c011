//! `cargo xtask interop`: what we write, against other people's tools. A real model goes through
//! the release binary to every type that can be encoded; three readers open the results, llama.cpp
//! runs them, and its own quantizer must have written the same bytes. See `docs/interop.md`.

mod adapters;
mod full;
mod mixes;
mod pin;
mod planes;
mod quantizer;
mod setup;
mod tensors;
mod trained;

use crate::util::{Outcome, capture, cargo, root, run as run_command};
use ggml_blocks::{FORMATS, Format};
use gguf_format::{GgmlType, Kind};
use serde_json::Value;
pub(crate) use setup::Tools;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// At least this many tensors of a type must have been equal.
const EQUAL_AT_LEAST: u64 = 20;

/// Types that a reader of the pinned version does not know: the file is refused, as it should be.
const UNKNOWN_TO_PYPI: &[GgmlType] = &[GgmlType::Q2_0];

/// llama.cpp quantizes to these only with importance; ggml itself needs it for three of them.
const WITH_IMPORTANCE: &[GgmlType] = &[
    GgmlType::IQ1_S,
    GgmlType::IQ1_M,
    GgmlType::IQ2_XXS,
    GgmlType::IQ2_XS,
    GgmlType::IQ2_S,
    GgmlType::IQ3_XXS,
];

/// The smallest cosine to the F16 model's embedding that is right from a number of bits on. Rows of
/// 384 keep F16 where a block has 256 weights, which helps the small ones.
const COSINES: &[(f64, f64)] =
    &[(6.5, 0.999), (5.5, 0.985), (4.0, 0.94), (3.0, 0.9), (2.0, 0.85), (0.0, 0.75)];
/// Formats for models trained to them. This model is not: that it runs is all there is to see.
const TRAINED_FOR: &[GgmlType] = &[GgmlType::Q1_0, GgmlType::Q2_0, GgmlType::TQ1_0, GgmlType::TQ2_0];

/// The models that mixes are made of.
const MIX_MODELS: &[&str] = &["minilm", "qwen"];

/// What one type's check found.
struct Row {
    format: &'static Format,
    bits: f64,
    found: Value,
    cosine: Option<f64>,
    faults: Vec<String>,
}

/// Sets up, holds safetensors files and adapters against other tools, transcodes to all types or those named,
/// compares, prints the table. `adapters` alone stops after the first half.
pub(crate) fn run(args: &[String]) -> Outcome {
    let only: Vec<&str> = args.iter().map(String::as_str).collect();
    match &only[..] {
        ["--full", only @ ..] => return full::run(only),
        ["--mixes", only @ ..] => return mixes_alone(only),
        _ => {}
    }
    let start = Instant::now();
    let tools = Tools::get()?;
    let models = tools.models()?;
    run_command(cargo().args(["build", "--release", "--package", "export-gguf"]))?;
    println!("set up in {:.0} s", start.elapsed().as_secs_f64());
    if only.is_empty() || only == ["adapters"] {
        let begun = Instant::now();
        tensors::run(&tools)?;
        adapters::run(&tools)?;
        println!("{:<8} {:>6.1} s", "adapters", begun.elapsed().as_secs_f64());
    }
    if only == ["adapters"] {
        return Ok(());
    }

    let mut rows = Vec::new();
    for format in encodable().filter(|f| only.is_empty() || only.contains(&lower(f).as_str())) {
        let begun = Instant::now();
        let row = check(&tools, &models, format, &["recut", "minilm"], false)?;
        println!("{:<8} {:>6.1} s", format.name(), begun.elapsed().as_secs_f64());
        rows.push(row);
    }
    embed(&tools, &models, &mut rows)?;
    read(&tools, &models, &mut rows)?;
    print(&rows);
    let mut faults: Vec<String> = rows.into_iter().flat_map(|r| r.faults).collect();
    if only.is_empty() || only.contains(&"ptqtp") {
        planes::check(&tools, &models, &mut faults)?;
    }
    if only.is_empty() {
        faults.extend(mixes::run(&tools, &models, &pin::library()?, MIX_MODELS, &[])?);
    }
    println!("{:.0} s in all", start.elapsed().as_secs_f64());
    conclude(&faults)
}

/// Only the mixes, or some of them.
fn mixes_alone(only: &[&str]) -> Outcome {
    let tools = Tools::get()?;
    let models = tools.models()?;
    run_command(cargo().args(["build", "--release", "--package", "export-gguf"]))?;
    let start = Instant::now();
    let library = pin::library()?;
    println!("llama.cpp's quantizer compiled in {:.0} s", start.elapsed().as_secs_f64());
    let faults = mixes::run(&tools, &models, &library, MIX_MODELS, only)?;
    println!("{:.0} s in all", start.elapsed().as_secs_f64());
    conclude(&faults)
}

fn conclude(faults: &[String]) -> Outcome {
    for fault in faults {
        eprintln!("{fault}");
    }
    if faults.is_empty() { Ok(()) } else { Err(format!("{} faults", faults.len())) }
}

/// What export-gguf can write: floats and every block format with an encoder.
fn encodable() -> impl Iterator<Item = &'static Format> {
    FORMATS.iter().filter(|f| f.can_encode() && matches!(f.info().kind, Kind::Float | Kind::Block))
}

fn lower(format: &Format) -> String {
    format.name().to_lowercase()
}

fn model(models: &Path, name: &str, format: &Format) -> PathBuf {
    models.join(format!("{name}-{}.gguf", lower(format)))
}

/// Transcodes models to one type and has the bytes compared. What llama.cpp made can be kept.
fn check(tools: &Tools, folder: &Path, format: &'static Format, models: &[&str], keep: bool) -> Outcome<Row> {
    for name in models {
        export(folder, name, format)?;
    }
    let mut script = tools.python("check.py");
    script.arg(tools.libraries()).arg(folder).arg(lower(format)).args(models);
    if WITH_IMPORTANCE.contains(&format.info().id) {
        script.env("IMPORTANCE", "1");
    }
    if keep {
        script.env("KEEP", "1");
    }
    let text = capture(&mut script)?;
    let found: Value = serde_json::from_str(&text).map_err(|e| format!("check.py: {e}"))?;
    let list = found["faults"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut faults: Vec<String> = list.map(|f| format!("{}: {f}", format.name())).collect();
    let equal = found["equal"].as_u64().unwrap_or_default();
    if equal < EQUAL_AT_LEAST {
        faults.push(format!("{}: only {equal} tensors equal, {EQUAL_AT_LEAST} wanted", format.name()));
    }
    let bits = 8.0 * format.block_bytes() as f64 / format.block_len() as f64;
    Ok(Row { format, bits, found, cosine: None, faults })
}

/// Transcodes one model with the release binary.
fn export(folder: &Path, name: &str, format: &Format) -> Outcome {
    let source = folder.join(format!("{name}-f16.gguf"));
    let target = model(folder, name, format);
    if target == source {
        return Ok(());
    }
    let mut export = Command::new(root().join("target/release/export-gguf"));
    export.arg("--from-gguf").arg(source).arg("--out").arg(target);
    export.args(["--dtype", &lower(format), "--force", "--quiet", "--threads", "2"]);
    if WITH_IMPORTANCE.contains(&format.info().id) {
        export.arg("--imatrix").arg(folder.join(format!("{name}.imatrix.gguf")));
    }
    run_command(&mut export)
}

/// Runs every result in llama.cpp and compares its embeddings with those of the F16 model.
fn embed(tools: &Tools, models: &Path, rows: &mut [Row]) -> Outcome {
    let reference = models.join("minilm-f16.gguf");
    let files = rows.iter().map(|r| model(models, "minilm", r.format));
    let text = capture(tools.node("embed.mjs").arg(&reference).args(files))?;
    let mut vectors: Vec<Vec<Vec<f64>>> = Vec::new();
    for line in text.lines().filter(|l| l.starts_with('[')) {
        vectors.push(serde_json::from_str(line).map_err(|e| format!("embed.mjs: {e}"))?);
    }
    if vectors.len() != rows.len() + 1 {
        return Err(format!("llama.cpp ran {} of {} models", vectors.len(), rows.len() + 1));
    }
    for (row, found) in rows.iter_mut().zip(&vectors[1..]) {
        let worst = vectors[0].iter().zip(found).map(|(a, b)| cosine(a, b)).fold(f64::INFINITY, f64::min);
        let limit = match COSINES.iter().find(|(bits, _)| row.bits >= *bits) {
            Some((_, limit)) if !TRAINED_FOR.contains(&row.format.info().id) => *limit,
            _ => 0.0,
        };
        if worst.is_nan() || worst < limit {
            row.faults.push(format!("{}: cosine {worst:.4}, {limit} wanted", row.format.name()));
        }
        row.cosine = Some(worst);
    }
    Ok(())
}

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

/// Has the two other readers open every result; they must see what our own parser sees.
fn read(tools: &Tools, models: &Path, rows: &mut [Row]) -> Outcome {
    let files: Vec<PathBuf> = rows.iter().map(|r| model(models, "minilm", r.format)).collect();
    let pypi = capture(tools.python("read.py").args(&files))?;
    let npm = capture(tools.node("read.mjs").args(&files))?;
    for (reader, text) in [("gguf (PyPI)", pypi), ("@huggingface/gguf", npm)] {
        let seen: Value = serde_json::from_str(&text).map_err(|e| format!("{reader}: {e}"))?;
        for (row, file) in rows.iter_mut().zip(&files) {
            let theirs = &seen[file.to_string_lossy().as_ref()];
            let unknown = reader.contains("PyPI") && UNKNOWN_TO_PYPI.contains(&row.format.info().id);
            let fault = match (theirs["error"].as_str(), unknown) {
                (Some(_), true) => None,
                (Some(error), false) => Some(error.to_owned()),
                (None, true) => Some("knows the type by now: correct the list".to_owned()),
                (None, false) => {
                    let same = theirs["tensors"] == ours(file)? && theirs["architecture"] == "bert";
                    (!same).then(|| "sees other tensors than we do".to_owned())
                }
            };
            row.faults.extend(fault.map(|f| format!("{}: {reader}: {f}", row.format.name())));
        }
    }
    Ok(())
}

/// Our own view of a file, in the shape of the other readers' reports.
fn ours(path: &Path) -> Outcome<Value> {
    let file = gguf_mmap::GgufFile::open(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let gguf = file.gguf();
    let tensors = gguf.tensors().map(|t| (t.name().to_owned(), serde_json::json!([t.ty().0, t.dims()])));
    Ok(Value::Object(tensors.collect()))
}

fn print(rows: &[Row]) {
    println!(
        "\n{:<8} {:>6} {:>7} {:>12} {:>8}  differences on the list",
        "type", "bits", "equal", "weights", "cosine"
    );
    for row in rows {
        println!(
            "{:<8} {:>6.3} {:>7} {:>12} {:>8.5}  {}",
            row.format.name(),
            row.bits,
            row.found["equal"].to_string(),
            row.found["weights"].to_string(),
            row.cosine.unwrap_or(f64::NAN),
            differences(row)
        );
    }
}

/// The differences of types that `check.py` explains, with how many tensors have each.
fn differences(row: &Row) -> String {
    let list = row.found["differences"].as_object().into_iter().flatten();
    list.map(|(why, count)| format!("{count}: {why}")).collect::<Vec<_>>().join("; ")
}

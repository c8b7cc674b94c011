//! Rules about manifests: which crate may depend on which, and what every crate must have.

use crate::util::{Outcome, capture, cargo, read};
use serde_json::Value;
use std::path::Path;

/// Which of our crates each may depend on, in any kind of dependency. A crate stands above
/// everything in its list.
const EDGES: &[(&str, &[&str])] = &[
    ("gguf-format", &[]),
    ("safetensors-lite", &[]),
    ("gguf-mmap", &["gguf-format"]),
    ("ggml-blocks", &["gguf-format"]),
    // gguf-mmap for the example in its README alone.
    ("ggml-kernels", &["gguf-format", "ggml-blocks", "gguf-mmap"]),
    ("export-gguf", &["gguf-format", "safetensors-lite", "gguf-mmap", "ggml-blocks", "ggml-kernels"]),
    ("xtask", &["gguf-format", "safetensors-lite", "gguf-mmap", "ggml-blocks", "ggml-kernels"]),
];

/// Checks every member of the workspace.
pub(super) fn check(root: &Path, faults: &mut Vec<String>) -> Outcome {
    let text = capture(cargo().args(["metadata", "--no-deps", "--offline", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_str(&text).map_err(|e| format!("cargo metadata: {e}"))?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata names no packages")?;
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let Some((_, allowed)) = EDGES.iter().find(|(crate_, _)| *crate_ == name) else {
            faults.push(format!("{name}: not in tidy's list of crates"));
            continue;
        };
        check_edges(name, package, allowed, faults);
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default()).to_owned();
        let text = String::from_utf8_lossy(&read(&manifest)?).into_owned();
        if !text.contains("[lints]\nworkspace = true") {
            faults.push(format!("{name}: no `[lints] workspace = true`"));
        }
        if name != "xtask" {
            check_published(root, name, package, faults)?;
        }
    }
    Ok(())
}

fn check_edges(name: &str, package: &Value, allowed: &[&str], faults: &mut Vec<String>) {
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let to = dependency["name"].as_str().unwrap_or_default();
        if EDGES.iter().any(|(ours, _)| *ours == to) && !allowed.contains(&to) {
            faults.push(format!("{name}: may not depend on {to}"));
        }
    }
}

/// What a crate needs to stand alone in a registry.
fn check_published(root: &Path, name: &str, package: &Value, faults: &mut Vec<String>) -> Outcome {
    for field in ["description", "license", "readme", "rust_version"] {
        if package[field].as_str().is_none_or(str::is_empty) {
            faults.push(format!("{name}: no {field}"));
        }
    }
    let folder = root.join("crates").join(name);
    if !folder.join("README.md").is_file() {
        faults.push(format!("{name}: no README.md"));
    }
    let lib = String::from_utf8_lossy(&read(&folder.join("src/lib.rs"))?).into_owned();
    if !lib.contains("include_str!(\"../README.md\")") {
        faults.push(format!("{name}: the README is not the crate doc"));
    }
    Ok(())
}

//! Metadata that contradicts itself or the tensors. The container is sound all the same; what is checked
//! here is whether a loader can make sense of it.

use std::collections::BTreeSet;
use std::path::Path;

use gguf_format::{Gguf, Kind, Str, Value, ValueType};

use super::{File, Log, tokenizer};
use crate::mix::FileType;

/// The only version of ggml's quantized layouts in use.
const QUANTIZATION_VERSION: u64 = 2;

/// Keys whose wire type loaders rely on.
const TYPES: [(&str, ValueType); 8] = [
    ("general.architecture", ValueType::String),
    ("general.name", ValueType::String),
    ("general.type", ValueType::String),
    ("general.file_type", ValueType::U32),
    ("general.quantization_version", ValueType::U32),
    ("tokenizer.ggml.model", ValueType::String),
    ("tokenizer.ggml.pre", ValueType::String),
    ("tokenizer.chat_template", ValueType::String),
];

/// Checks the metadata of the first file against itself and against the tensors of all.
pub(super) fn check(files: &[File], log: &mut Log) {
    let (path, Some(gguf)) = (files[0].path(), files[0].gguf()) else { return };
    for (key, ty) in TYPES {
        if let Some(kv) = gguf.key_value(key).filter(|kv| kv.value_type() != ty) {
            log.fault(path, format_args!("key '{key}' has type {}, must be {ty}", kv.value_type()));
        }
    }
    for kv in gguf.metadata() {
        if not_utf8(&kv.value()) {
            log.warning(path, format_args!("key '{}' is not UTF-8", kv.key().escape_debug()));
        }
    }
    quantization(&gguf, files, path, log);
    tokenizer::check(&gguf, files, path, log);
    // A list of statistics belongs to no architecture, and an adapter has the blocks it changes.
    let text = |key| gguf.get(key).and_then(|v| v.as_str());
    let kind = text("general.type").unwrap_or("model");
    if kind == "imatrix" {
        return;
    }
    match text("general.architecture") {
        None if gguf.get("general.architecture").is_none() => {
            log.fault(path, "key 'general.architecture' is missing");
        }
        Some("") => log.fault(path, "key 'general.architecture' is empty"),
        Some(architecture) if kind == "model" => blocks(&gguf, architecture, files, path, log),
        _ => {}
    }
}

/// Whether a value is a string that is not text. Arrays are left alone: tokens may be raw bytes.
fn not_utf8(value: &Value<'_>) -> bool {
    matches!(value, Value::String(s) if Str::as_str(*s).is_none())
}

fn quantization(gguf: &Gguf<'_>, files: &[File], path: &Path, log: &mut Log) {
    let quantized = files
        .iter()
        .filter_map(File::gguf)
        .any(|g| g.tensors().any(|t| t.ty().info().is_some_and(|i| i.kind == Kind::Block)));
    match gguf.get("general.quantization_version").map(|v| v.as_u64()) {
        None if quantized => {
            log.warning(path, "key 'general.quantization_version' is missing, tensors are quantized");
        }
        Some(Some(v)) if v != QUANTIZATION_VERSION => {
            log.warning(
                path,
                format_args!("general.quantization_version is {v}, known is {QUANTIZATION_VERSION}"),
            );
        }
        _ => {}
    }
    // The upper bits are flags: 1024 stands for a guess.
    if let Some(id) = gguf.get("general.file_type").and_then(|v| v.as_u64())
        && !FileType::ALL.iter().any(|t| u64::from(t.id()) == id & !1024)
    {
        log.warning(path, format_args!("general.file_type {id} is unknown"));
    }
}

/// Compares the declared number of blocks with the tensors named after them.
fn blocks(gguf: &Gguf<'_>, architecture: &str, files: &[File], path: &Path, log: &mut Log) {
    let key = format!("{architecture}.block_count");
    let shown = key.escape_debug();
    let present: BTreeSet<u64> = files
        .iter()
        .filter_map(File::gguf)
        .flat_map(|g| g.tensors().filter_map(|t| block(t.name())).collect::<Vec<_>>())
        .collect();
    let Some(&last) = present.last() else { return };
    let count = match gguf.get(&key) {
        None => return log.warning(path, format_args!("key '{shown}' is missing")),
        Some(value) => match value.as_u64() {
            Some(count) => count,
            None => return log.fault(path, format_args!("key '{shown}' is no count: {}", value.ty())),
        },
    };
    let missing = count - present.range(..count).count() as u64;
    if let Some(first) = (0..count).find(|n| !present.contains(n)) {
        let text = format_args!("{shown} is {count}, but {missing} blocks have no tensor, first blk.{first}");
        log.fault(path, text);
    }
    if last >= count {
        log.warning(path, format_args!("{shown} is {count}, but there are tensors of blk.{last}"));
    }
}

/// The number in `blk.7.attn_q.weight`.
fn block(name: &str) -> Option<u64> {
    name.strip_prefix("blk.")?.split_once('.')?.0.parse().ok()
}

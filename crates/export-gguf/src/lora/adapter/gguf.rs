//! GGUF adapters, as llama.cpp's converter writes them: tensors `NAME.lora_a` and `NAME.lora_b` for the
//! base's tensor `NAME`, rows in the base's order, and whole norms under their own names.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ggml_blocks::Format;
use gguf_format::Gguf;
use gguf_mmap::GgufFile;

use super::{Adapter, Change, Kind, LowRank, Matrix, Piece, Target};
use crate::Error;
use crate::lora::problems::Problems;

const ALPHA: &str = "adapter.lora.alpha";

pub(super) fn open(path: &Path, problems: &mut Problems) -> Result<Adapter, Error> {
    let mut file = GgufFile::open(path)?;
    let Some(mapping) = file.take_mapping().map(Arc::new) else {
        return Err(Error::Refused(format!("{}: cannot be mapped", path.display())));
    };
    let gguf = file.gguf();
    let alpha = alpha(path, &gguf, problems);
    let mut pairs: BTreeMap<&str, (Option<Matrix>, Option<Matrix>)> = BTreeMap::new();
    let mut pieces = Vec::new();
    let infos: Vec<_> = gguf.tensors().collect();
    for t in &infos {
        let name = t.name();
        let Some(format) = Format::of(t.ty()).filter(|_| t.decodable()) else {
            problems.add(path, name, format_args!("values of {} cannot be had", t.ty()));
            continue;
        };
        let range = t.file_offset()..t.file_offset() + t.byte_len();
        let matrix = Matrix::new(name, t.logical_shape().collect(), format, &mapping, range);
        if let Some(target) = name.strip_suffix(".lora_a") {
            pairs.entry(target).or_default().0 = Some(matrix);
        } else if let Some(target) = name.strip_suffix(".lora_b") {
            pairs.entry(target).or_default().1 = Some(matrix);
        } else if name.ends_with("_norm.weight") {
            pieces.push(Piece { target: Target::Tensor(name.to_owned()), change: Change::Replace(matrix) });
        } else {
            problems.add(path, name, "neither .lora_a nor .lora_b, and no norm");
        }
    }
    for (target, pair) in pairs {
        match pair {
            (Some(a), Some(b)) => pairs_of(path, target, &a, &b, alpha, problems, &mut pieces),
            (Some(a), None) => problems.add(path, a.name(), "its lora_b is missing"),
            (None, Some(b)) => problems.add(path, b.name(), "its lora_a is missing"),
            (None, None) => {}
        }
    }
    Ok(Adapter {
        path: path.to_path_buf(),
        files: vec![path.to_path_buf()],
        kind: Kind::Gguf,
        scale: 1.0,
        architecture: gguf.get("general.architecture").and_then(|v| v.as_str()).map(str::to_owned),
        pieces,
    })
}

/// A pair of matrices, or of stacks with one for each expert.
fn pairs_of(
    path: &Path,
    target: &str,
    a: &Matrix,
    b: &Matrix,
    alpha: f64,
    problems: &mut Problems,
    pieces: &mut Vec<Piece>,
) {
    if a.is_empty() || b.is_empty() {
        problems.add(
            path,
            a.name(),
            format_args!("shape {} beside {} of lora_b: no values", a.shown(), b.shown()),
        );
        return;
    }
    let (stack_a, stack_b) = (a.layers(), b.layers());
    if a.shape().len() != b.shape().len() || stack_a.len() != stack_b.len() {
        problems.add(path, a.name(), format_args!("shape {} beside {} of lora_b", a.shown(), b.shown()));
        return;
    }
    let stacked = a.shape().len() == 3;
    // An embedding is looked up: its lora_a has a row for each token.
    let embedding = target == "token_embd.weight";
    for (expert, (a, b)) in stack_a.into_iter().zip(stack_b).enumerate() {
        let target = if stacked { format!("{target}[{expert}]") } else { target.to_owned() };
        let low = if embedding { LowRank::new(a, b.transposed(), alpha) } else { LowRank::new(b, a, alpha) };
        pieces.push(Piece { target: Target::Tensor(target), change: Change::LowRank(low) });
    }
}

/// Reads what the file says of itself.
fn alpha(path: &Path, gguf: &Gguf<'_>, problems: &mut Problems) -> f64 {
    let text = |key: &str| gguf.get(key).and_then(|v| v.as_str());
    for (key, want) in [("general.type", "adapter"), ("adapter.type", "lora")] {
        match text(key) {
            Some(found) if found == want => {}
            Some(found) => {
                problems.add(
                    path,
                    key,
                    format_args!("{} instead of {want}: no LoRA adapter", found.escape_debug()),
                );
            }
            None => problems.add(path, key, "missing: no LoRA adapter"),
        }
    }
    if gguf.key_value("adapter.alora.invocation_tokens").is_some() {
        problems.add(
            path,
            "adapter.alora.invocation_tokens",
            "an activated LoRA works only after certain tokens, which a merged model cannot do",
        );
    }
    let alpha = gguf.get(ALPHA).and_then(|v| v.as_f64());
    match alpha {
        Some(alpha) if alpha.is_finite() && alpha != 0.0 => alpha,
        Some(alpha) => {
            problems.add(path, ALPHA, format_args!("{alpha} gives no scale"));
            1.0
        }
        None => {
            problems.add(path, ALPHA, "missing, and no scale is assumed");
            1.0
        }
    }
}

//! `info`: a model at a glance.

mod checkpoint;

use std::io::Write;

use gguf_format::{GgmlType, Gguf, Value};
use gguf_mmap::Model;
use serde::Serialize;

use super::Input;
use super::json::{self, Bytes};
use super::planes;
use super::table::{self, Align};
use super::text::{Count, Quoted, Size, Text, bits_per_weight, plural};
use crate::mix::FileType;
use crate::st::is_checkpoint;
use crate::{Error, Outcome};

/// The arguments of `info`.
#[derive(Debug, clap::Args)]
pub struct InfoArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields document themselves")]
    pub input: Input,
}

#[derive(Serialize)]
struct Report<'a> {
    file: String,
    version: u32,
    alignment: u64,
    architecture: Option<Bytes<'a>>,
    name: Option<Bytes<'a>>,
    file_type: Option<FileTypeRow>,
    keys: usize,
    tensors: usize,
    parameters: u64,
    bytes: u64,
    tensor_bytes: u64,
    bits_per_weight: f64,
    #[serde(serialize_with = "json::map")]
    hyperparameters: Vec<(&'static str, String)>,
    types: Vec<TypeRow>,
    tokenizer: Option<Tokenizer<'a>>,
    parts: Vec<Part>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trit_planes: Option<planes::Summary>,
    findings: Vec<String>,
}

#[derive(Serialize)]
struct FileTypeRow {
    id: u64,
    name: Option<&'static str>,
}

#[derive(Serialize)]
struct TypeRow {
    #[serde(rename = "type")]
    ty: String,
    tensors: u64,
    weights: u64,
    bytes: u64,
    bits_per_weight: f64,
}

#[derive(Serialize)]
struct Tokenizer<'a> {
    model: Bytes<'a>,
    pre: Option<Bytes<'a>>,
    tokens: Option<usize>,
    merges: Option<usize>,
    special: Vec<Special<'a>>,
    chat_template: bool,
}

#[derive(Serialize)]
struct Special<'a> {
    role: &'static str,
    id: u64,
    token: Option<Bytes<'a>>,
}

#[derive(Serialize)]
struct Part {
    file: String,
    bytes: u64,
    tensors: usize,
}

/// Keys of the architecture's own that say how large a model is, without its prefix.
const HYPERPARAMETERS: [&str; 9] = [
    "context_length",
    "embedding_length",
    "block_count",
    "feed_forward_length",
    "attention.head_count",
    "attention.head_count_kv",
    "expert_count",
    "expert_used_count",
    "vocab_size",
];

/// Tokens with a role.
const SPECIAL: [(&str, &str); 5] = [
    ("bos", "tokenizer.ggml.bos_token_id"),
    ("eos", "tokenizer.ggml.eos_token_id"),
    ("eot", "tokenizer.ggml.eot_token_id"),
    ("unknown", "tokenizer.ggml.unknown_token_id"),
    ("padding", "tokenizer.ggml.padding_token_id"),
];

/// Runs the command, writing to `out`.
///
/// # Errors
/// When the file cannot be read or `out` not written.
pub fn run(args: &InfoArgs, out: &mut dyn Write) -> Result<Outcome, Error> {
    if is_checkpoint(&args.input.file) {
        return checkpoint::run(args, out);
    }
    let model = args.input.open()?;
    let gguf = model.gguf();
    let report = Report::new(&args.input, &model, &gguf);
    if args.input.json {
        json::write(out, &report)?;
    } else {
        report.write(out)?;
    }
    Ok(Outcome::Ok)
}

/// The bytes of a string value.
fn string<'a>(gguf: &Gguf<'a>, key: &str) -> Option<Bytes<'a>> {
    match gguf.get(key)? {
        Value::String(s) => Some(Bytes(s.as_bytes())),
        _ => None,
    }
}

impl<'a> Report<'a> {
    fn new(input: &Input, model: &Model, gguf: &Gguf<'a>) -> Self {
        let types = types(model);
        let sum = |field: fn(&TypeRow) -> u64| types.iter().map(field).fold(0, u64::saturating_add);
        let sets = planes::of(model);
        let tensor_bytes = sum(|t| t.bytes);
        let parameters = sum(|t| t.weights).saturating_sub(planes::surplus(&sets));
        let parts: Vec<Part> = model
            .parts()
            .iter()
            .map(|p| Part {
                file: p.path().map_or_else(String::new, |path| path.display().to_string()),
                bytes: p.file_len(),
                tensors: p.gguf().tensors().len(),
            })
            .collect();
        Self {
            file: input.file.display().to_string(),
            version: gguf.version(),
            alignment: gguf.alignment(),
            architecture: string(gguf, "general.architecture"),
            name: string(gguf, "general.name"),
            file_type: file_type(gguf),
            keys: gguf.metadata().len(),
            tensors: parts.iter().map(|p| p.tensors).sum(),
            parameters,
            bytes: parts.iter().map(|p| p.bytes).sum(),
            tensor_bytes,
            bits_per_weight: bits_per_weight(tensor_bytes, parameters),
            hyperparameters: hyperparameters(gguf),
            types,
            tokenizer: Tokenizer::new(gguf),
            parts,
            trit_planes: planes::Summary::new(&sets),
            findings: findings(model),
        }
    }

    fn write(&self, out: &mut dyn Write) -> Result<(), Error> {
        let unknown = || "not given".to_owned();
        let text = |b: &Option<Bytes<'_>>| b.as_ref().map_or_else(unknown, |b| Text(b.0).to_string());
        let mut rows = vec![
            ["architecture".to_owned(), text(&self.architecture)],
            ["name".into(), text(&self.name)],
            ["parameters".into(), format!("{} ({})", Count(self.parameters), self.parameters)],
            ["file size".into(), format!("{} ({} bytes)", Size(self.bytes), self.bytes)],
            ["bits per weight".into(), format!("{:.2}", self.bits_per_weight)],
            ["tensors".into(), self.tensors.to_string()],
            ["keys".into(), self.keys.to_string()],
            ["GGUF version".into(), self.version.to_string()],
            ["alignment".into(), self.alignment.to_string()],
        ];
        if let Some(t) = &self.file_type {
            rows.insert(5, ["file type".into(), format!("{} ({})", t.name.unwrap_or("unknown"), t.id)]);
        }
        if let Some(planes) = &self.trit_planes {
            rows.insert(rows.len() - 2, ["trit-planes".into(), planes.line()]);
        }
        rows.extend(self.hyperparameters.iter().map(|(k, v)| [(*k).to_owned(), v.clone()]));
        writeln!(out, "{}", self.file)?;
        table::write(out, "  ", [Align::Left; 2], &rows)?;
        write_types(&self.types, out)?;
        if let Some(tokenizer) = &self.tokenizer {
            tokenizer.write(out)?;
        }
        write_parts(&self.parts, out)?;
        if let Some(planes) = &self.trit_planes {
            planes.write_faults(out)?;
        }
        for finding in &self.findings {
            writeln!(out, "warning: {finding}")?;
        }
        Ok(())
    }
}

fn write_types(types: &[TypeRow], out: &mut dyn Write) -> Result<(), Error> {
    writeln!(out, "types")?;
    let row = |t: &TypeRow| {
        let bpw = format!("{:.2}", t.bits_per_weight);
        [t.ty.clone(), t.tensors.to_string(), t.weights.to_string(), t.bytes.to_string(), bpw]
    };
    let mut rows = vec![["type", "tensors", "weights", "bytes", "bits/weight"].map(String::from)];
    rows.extend(types.iter().map(row));
    let right = Align::Right;
    Ok(table::write(out, "  ", [Align::Left, right, right, right, right], &rows)?)
}

/// The files, where there are several.
fn write_parts(parts: &[Part], out: &mut dyn Write) -> Result<(), Error> {
    if parts.len() < 2 {
        return Ok(());
    }
    writeln!(out, "parts")?;
    let row = |p: &Part| [p.file.clone(), Size(p.bytes).to_string(), plural(p.tensors, "tensor")];
    let rows: Vec<_> = parts.iter().map(row).collect();
    Ok(table::write(out, "  ", [Align::Left, Align::Right, Align::Right], &rows)?)
}

/// Tensors by type, the one with most bytes first.
fn types(model: &Model) -> Vec<TypeRow> {
    let mut found: Vec<(GgmlType, [u64; 3])> = Vec::new();
    for tensor in model.tensors() {
        let info = &tensor.info;
        let at = found.iter().position(|(ty, _)| *ty == info.ty()).unwrap_or_else(|| {
            found.push((info.ty(), [0; 3]));
            found.len() - 1
        });
        for (sum, n) in found[at].1.iter_mut().zip([1, info.elements(), info.byte_len()]) {
            *sum = sum.saturating_add(n);
        }
    }
    found.sort_by_key(|(ty, [_, _, bytes])| (std::cmp::Reverse(*bytes), *ty));
    let row = |(ty, [tensors, weights, bytes]): (GgmlType, [u64; 3])| TypeRow {
        ty: ty.to_string(),
        tensors,
        weights,
        bytes,
        bits_per_weight: bits_per_weight(bytes, weights),
    };
    found.into_iter().map(row).collect()
}

fn file_type(gguf: &Gguf<'_>) -> Option<FileTypeRow> {
    let id = gguf.get("general.file_type")?.as_u64()?;
    let known = FileType::ALL.iter().find(|t| u64::from(t.id()) == id);
    Some(FileTypeRow { id, name: known.map(|t| t.name()) })
}

fn hyperparameters(gguf: &Gguf<'_>) -> Vec<(&'static str, String)> {
    let Some(architecture) = gguf.get("general.architecture").and_then(|v| v.as_str()) else {
        return Vec::new();
    };
    let value = |key: &str| {
        let value = gguf.get(&format!("{architecture}.{key}"))?;
        // Some architectures have one number per block.
        match (value.as_u64(), value.as_array()) {
            (Some(n), _) => Some(n.to_string()),
            (None, Some(array)) => Some(format!("{array:?}")),
            _ => None,
        }
    };
    HYPERPARAMETERS.iter().filter_map(|key| Some((*key, value(key)?))).collect()
}

/// What is odd about each file, its name before it where there are several.
fn findings(model: &Model) -> Vec<String> {
    let mut all = Vec::new();
    for part in model.parts() {
        for finding in part.gguf().findings() {
            let file = part.path().and_then(|p| p.file_name()).filter(|_| model.is_split());
            let place = file.map_or_else(String::new, |f| format!("{}: ", f.display()));
            all.push(format!("{place}{finding}"));
        }
    }
    all
}

impl<'a> Tokenizer<'a> {
    fn new(gguf: &Gguf<'a>) -> Option<Self> {
        let array = |key: &str| gguf.get(key)?.as_array();
        let tokens = array("tokenizer.ggml.tokens");
        let token = |id: u64| match tokens?.get(usize::try_from(id).ok()?)? {
            Value::String(s) => Some(Bytes(s.as_bytes())),
            _ => None,
        };
        let special = |&(role, key): &(&'static str, &str)| {
            let id = gguf.get(key)?.as_u64()?;
            Some(Special { role, id, token: token(id) })
        };
        Some(Self {
            model: string(gguf, "tokenizer.ggml.model")?,
            pre: string(gguf, "tokenizer.ggml.pre"),
            tokens: tokens.map(|t| t.len()),
            merges: array("tokenizer.ggml.merges").map(|m| m.len()),
            special: SPECIAL.iter().filter_map(special).collect(),
            chat_template: gguf.get("tokenizer.chat_template").is_some(),
        })
    }

    fn write(&self, out: &mut dyn Write) -> Result<(), Error> {
        writeln!(out, "tokenizer")?;
        let mut rows = vec![["model".to_owned(), Text(self.model.0).to_string()]];
        if let Some(pre) = &self.pre {
            rows.push(["pre-tokenizer".into(), Text(pre.0).to_string()]);
        }
        for (name, count) in [("tokens", self.tokens), ("merges", self.merges)] {
            rows.extend(count.map(|n| [name.into(), n.to_string()]));
        }
        for Special { role, id, token } in &self.special {
            let token = token.as_ref().map_or("not in the vocabulary".into(), |t| Quoted(t.0).to_string());
            rows.push([(*role).to_owned(), format!("{id} {token}")]);
        }
        let template = if self.chat_template { "yes" } else { "no" };
        rows.push(["chat template".into(), template.into()]);
        Ok(table::write(out, "  ", [Align::Left; 2], &rows)?)
    }
}

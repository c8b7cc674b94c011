//! The tokenizer's keys against each other: lists of one length, ids within the vocabulary.

use std::path::Path;

use gguf_format::{Array, Gguf, ValueType};

use super::{File, Log};

const TOKENS: &str = "tokenizer.ggml.tokens";

/// Lists with one entry per token, and the element type that loaders read without looking.
const PER_TOKEN: [(&str, ValueType); 2] =
    [("tokenizer.ggml.scores", ValueType::F32), ("tokenizer.ggml.token_type", ValueType::I32)];

/// Checks the tokenizer's metadata, and its size against the embedding of the tokens.
pub(super) fn check(gguf: &Gguf<'_>, files: &[File], path: &Path, log: &mut Log) {
    let tokens = array(gguf, TOKENS, ValueType::String, path, log);
    array(gguf, "tokenizer.ggml.merges", ValueType::String, path, log);
    for (key, ty) in PER_TOKEN {
        let (Some(list), Some(tokens)) = (array(gguf, key, ty, path, log), tokens) else { continue };
        if list.len() != tokens.len() {
            let (n, tokens) = (list.len(), tokens.len());
            log.fault(path, format_args!("key '{key}' has {n} elements for {tokens} tokens"));
        }
    }
    let Some(tokens) = tokens else { return };
    let count = tokens.len() as u64;
    for kv in gguf.metadata() {
        let key = kv.key();
        if !(key.starts_with("tokenizer.ggml.") && key.ends_with("_token_id")) {
            continue;
        }
        let shown = key.escape_debug();
        match kv.value().as_u64() {
            None => log.fault(path, format_args!("key '{shown}' is no token id: {}", kv.value_type())),
            Some(id) if id >= count => {
                log.fault(path, format_args!("{shown} is {id}, not within the vocabulary of {count}"));
            }
            Some(_) => {}
        }
    }
    let embedding = files.iter().find_map(|f| f.gguf()?.tensor("token_embd.weight"));
    if let Some(embedding) = embedding
        && let [_, rows] = *embedding.dims()
        && rows != count
    {
        log.warning(path, format_args!("token_embd.weight has {rows} rows for {count} tokens"));
    }
}

/// The array of this key; a value of another kind is a fault.
fn array<'a>(gguf: &Gguf<'a>, key: &str, ty: ValueType, path: &Path, log: &mut Log) -> Option<Array<'a>> {
    let value = gguf.get(key)?;
    let Some(array) = value.as_array() else {
        log.fault(path, format_args!("key '{key}' has type {}, must be an array of {ty}", value.ty()));
        return None;
    };
    if array.element_type() != ty {
        let found = array.element_type();
        log.fault(path, format_args!("key '{key}' is an array of {found}, must be one of {ty}"));
    }
    Some(array)
}

//! From the header's text to flat tables, in one pass and without a tree. The common path checks types and known
//! fields as it goes; only a text with a fault or with unknown fields is walked once more, by `strict`, which
//! knows JSON and duplicate keys. So faults come in the order of the rules, wherever they stand in the text.

mod strict;
mod visit;

pub(crate) use strict::check as check_strict;

use crate::{Dtype, Error, ErrorKind, header::LEN_BYTES};
use serde::de::DeserializeSeed;

/// A stretch of one of the pools of [`Tables`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    start: usize,
    end: usize,
}

/// One tensor, its variable parts in the pools.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) name: Span,
    pub(crate) shape: Span,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// Where it stands in the header's text, for errors.
    pub(crate) at: usize,
    pub(crate) dtype: Dtype,
}

/// All that a header says: four allocations, whatever the number of tensors.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tables {
    pool: String,
    dims: Vec<u64>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) metadata: Option<Vec<(Span, Span)>>,
}

impl Tables {
    /// Text of the pool.
    pub(crate) fn text(&self, span: Span) -> &str {
        self.pool.get(span.start..span.end).unwrap_or_default()
    }

    /// A shape.
    pub(crate) fn dims(&self, span: Span) -> &[u64] {
        self.dims.get(span.start..span.end).unwrap_or_default()
    }

    fn push_text(&mut self, text: &str) -> Span {
        let start = self.pool.len();
        self.pool.push_str(text);
        Span { start, end: self.pool.len() }
    }
}

/// Reads the text of a header, whose first byte is a brace.
pub(crate) fn read(text: &str) -> Result<Tables, Error> {
    // A short entry takes about a hundred bytes of text: one growth at most for most files.
    let entries = Vec::with_capacity(text.len() >> 7);
    let tables = Tables { entries, ..Tables::default() };
    let mut reader = visit::Reader { text, tables, fault: None, unknown_fields: false };
    let mut json = serde_json::Deserializer::from_str(text);
    let result = visit::Top(&mut reader).deserialize(&mut json).and_then(|()| json.end());
    let fault = result.err().map(|error| fault_of(text, LEN_BYTES as u64, reader.fault.take(), &error));
    if fault.is_some() || reader.unknown_fields {
        check_strict(text, LEN_BYTES as u64)?;
    }
    fault.map_or(Ok(reader.tables), Err)
}

/// A rule that a visitor saw broken. It travels beside serde's error, which has room for text only.
pub(crate) struct Fault {
    kind: ErrorKind,
    /// Where in the text, if it is known better than the JSON reader's position.
    at: Option<usize>,
}

/// The error of a reading that stopped: the visitor's fault if it has one, else a syntax error.
fn fault_of(text: &str, base: u64, fault: Option<Fault>, json: &serde_json::Error) -> Error {
    let read_to = position(text, json);
    let file_at = |text_at: usize| base.saturating_add(text_at as u64);
    match fault {
        Some(Fault { kind, at }) => Error::new(file_at(at.unwrap_or(read_to)), kind),
        None => Error::new(file_at(read_to), ErrorKind::Json { message: message(json).into() }),
    }
}

/// What the JSON reader says, without the place, which is ours to say.
fn message(json: &serde_json::Error) -> String {
    let mut text = json.to_string();
    if let Some(cut) = text.rfind(" at line ") {
        text.truncate(cut);
    }
    text
}

/// The last byte that the JSON reader took, from its line and column, which count bytes.
fn position(text: &str, json: &serde_json::Error) -> usize {
    let lines_before = json.line().saturating_sub(1);
    let line_start = match lines_before.checked_sub(1) {
        None => 0,
        Some(nth) => text
            .bytes()
            .enumerate()
            .filter(|&(_, byte)| byte == b'\n')
            .nth(nth)
            .map_or(0, |(at, _)| at.saturating_add(1)),
    };
    line_start.saturating_add(json.column()).saturating_sub(1)
}

/// Where `part`, if it is borrowed from `text`, stands in it.
fn locate(text: &str, part: &str) -> Option<usize> {
    let at = part.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    (at <= text.len()).then_some(at)
}

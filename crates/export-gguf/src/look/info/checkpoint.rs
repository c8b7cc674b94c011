//! `info` of a safetensors checkpoint.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Write;

use serde::Serialize;

use super::super::json;
use super::super::table::{self, Align};
use super::super::text::{Count, Quoted, Size, Text, bits_per_weight};
use super::{InfoArgs, Part, TypeRow};
use crate::st::Checkpoint;
use crate::{Error, Outcome};

#[derive(Serialize)]
struct Report<'a> {
    file: String,
    format: &'static str,
    tensors: usize,
    parameters: u64,
    bytes: u64,
    tensor_bytes: u64,
    bits_per_weight: f64,
    /// Of the first file: all of a set carry the same.
    #[serde(serialize_with = "json::map")]
    metadata: Vec<(&'a str, &'a str)>,
    types: Vec<TypeRow>,
    parts: Vec<Part>,
    findings: Vec<String>,
}

pub(super) fn run(args: &InfoArgs, out: &mut dyn Write) -> Result<Outcome, Error> {
    let checkpoint = args.input.open_checkpoint()?;
    let report = Report::new(args, &checkpoint);
    if args.input.json {
        json::write(out, &report)?;
    } else {
        report.write(out)?;
    }
    Ok(Outcome::Ok)
}

impl<'a> Report<'a> {
    fn new(args: &InfoArgs, checkpoint: &'a Checkpoint) -> Self {
        let types = types(checkpoint);
        let sum = |field: fn(&TypeRow) -> u64| types.iter().map(field).fold(0, u64::saturating_add);
        let (parameters, tensor_bytes) = (sum(|t| t.weights), sum(|t| t.bytes));
        let part = |p: &crate::st::Part| Part {
            file: p.path().display().to_string(),
            bytes: p.file_len(),
            tensors: p.header().len(),
        };
        let parts: Vec<Part> = checkpoint.parts().iter().map(part).collect();
        let first = checkpoint.parts().first();
        Self {
            file: args.input.file.display().to_string(),
            format: "safetensors",
            tensors: checkpoint.tensors().count(),
            parameters,
            bytes: parts.iter().map(|p| p.bytes).sum(),
            tensor_bytes,
            bits_per_weight: bits_per_weight(tensor_bytes, parameters),
            metadata: first.map(|p| p.header().metadata().collect()).unwrap_or_default(),
            types,
            parts,
            findings: checkpoint.findings().collect(),
        }
    }

    fn write(&self, out: &mut dyn Write) -> Result<(), Error> {
        writeln!(out, "{}", self.file)?;
        let rows = [
            ["format".to_owned(), self.format.to_owned()],
            ["parameters".into(), format!("{} ({})", Count(self.parameters), self.parameters)],
            ["file size".into(), format!("{} ({} bytes)", Size(self.bytes), self.bytes)],
            ["bits per weight".into(), format!("{:.2}", self.bits_per_weight)],
            ["tensors".into(), self.tensors.to_string()],
        ];
        table::write(out, "  ", [Align::Left; 2], &rows)?;
        if !self.metadata.is_empty() {
            writeln!(out, "metadata")?;
            let row =
                |(k, v): &(&str, &str)| [Text(k.as_bytes()).to_string(), Quoted(v.as_bytes()).to_string()];
            let rows: Vec<_> = self.metadata.iter().map(row).collect();
            table::write(out, "  ", [Align::Left; 2], &rows)?;
        }
        super::write_types(&self.types, out)?;
        super::write_parts(&self.parts, out)?;
        for finding in &self.findings {
            writeln!(out, "warning: {finding}")?;
        }
        Ok(())
    }
}

/// Tensors by dtype, the one with most bytes first.
fn types(checkpoint: &Checkpoint) -> Vec<TypeRow> {
    let mut found = BTreeMap::new();
    for tensor in checkpoint.tensors() {
        let sums = found.entry(tensor.info.dtype()).or_insert([0u64; 3]);
        for (sum, n) in sums.iter_mut().zip([1, tensor.info.elements(), tensor.info.byte_len()]) {
            *sum = sum.saturating_add(n);
        }
    }
    let mut rows: Vec<TypeRow> = found
        .into_iter()
        .map(|(dtype, [tensors, weights, bytes])| TypeRow {
            ty: dtype.to_string(),
            tensors,
            weights,
            bytes,
            bits_per_weight: bits_per_weight(bytes, weights),
        })
        .collect();
    rows.sort_by_key(|row| Reverse(row.bytes));
    rows
}

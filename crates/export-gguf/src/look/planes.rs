//! Trit-planes in a model, for the commands that show it.

use std::io::{self, Write};

use gguf_format::TensorInfo;
use gguf_mmap::Model;
use serde::Serialize;

use super::table::{self, Align};
use super::text::{Text, bits_per_weight, plural, shape};
use crate::ptqtp::{Entry, Sets};

/// A tensor as the search for sets wants it.
pub(super) fn entry<'a>(info: &'a TensorInfo<'_>) -> Entry<'a> {
    Entry { name: info.name(), dims: info.dims(), ty: info.ty(), bytes: info.byte_len() }
}

/// The sets of a model, indices counting its tensors across all parts.
pub(super) fn of(model: &Model) -> Sets {
    let infos: Vec<TensorInfo<'_>> = model.tensors().map(|t| t.info).collect();
    Sets::find(&model.gguf(), infos.iter().map(entry))
}

/// All sets at a glance.
#[derive(Serialize)]
pub(super) struct Summary {
    tensors: usize,
    weights: u64,
    bytes: u64,
    bits_per_weight: f64,
    tied: bool,
    faults: Vec<String>,
}

impl Summary {
    /// `None` where there are no planes and nothing is wrong with any.
    pub(super) fn new(sets: &Sets) -> Option<Self> {
        let sum = |of: fn(&crate::ptqtp::Set) -> u64| sets.sets.iter().map(of).fold(0, u64::saturating_add);
        let (weights, bytes) = (sum(|s| s.weights()), sum(|s| s.bytes));
        (!sets.sets.is_empty() || !sets.faults.is_empty()).then(|| Self {
            tensors: sets.sets.len(),
            weights,
            bytes,
            bits_per_weight: bits_per_weight(bytes, weights),
            tied: sets.tied,
            faults: sets.faults.clone(),
        })
    }

    /// In words, without the faults.
    pub(super) fn line(&self) -> String {
        let scales = if self.tied { "tied" } else { "free" };
        format!("{}, {:.2} bits per weight, {scales}", plural(self.tensors, "tensor"), self.bits_per_weight)
    }

    /// What is wrong, a line each.
    pub(super) fn write_faults(&self, out: &mut dyn Write) -> io::Result<()> {
        self.faults.iter().try_for_each(|fault| writeln!(out, "fault: {fault}"))
    }
}

/// How many elements planes have beyond those of the tensors that they stand for.
pub(super) fn surplus(sets: &Sets) -> u64 {
    let more = |s: &crate::ptqtp::Set| s.weights().saturating_mul(s.planes.len().saturating_sub(1) as u64);
    sets.sets.iter().map(more).fold(0, u64::saturating_add)
}

/// Writes the table of sets, and what is wrong with them.
pub(super) fn write(sets: &Sets, out: &mut dyn Write, indent: &str) -> io::Result<()> {
    let Some(summary) = Summary::new(sets) else { return Ok(()) };
    writeln!(out, "{indent}trit-planes: {}", summary.line())?;
    let mut rows = vec![["tensor", "planes", "shape", "bytes", "bits/weight"].map(String::from)];
    for set in &sets.sets {
        rows.push([
            Text(set.base.as_bytes()).to_string(),
            set.planes.len().to_string(),
            shape(&set.dims),
            set.bytes.to_string(),
            format!("{:.2}", bits_per_weight(set.bytes, set.weights())),
        ]);
    }
    let right = Align::Right;
    if rows.len() > 1 {
        table::write(out, &format!("{indent}  "), [Align::Left, right, right, right, right], &rows)?;
    }
    summary.write_faults(out)
}

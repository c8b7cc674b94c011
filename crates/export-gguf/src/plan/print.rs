//! The plan as a table for people and as JSON for machines.

use std::io::{self, Write};

use super::{Edit, MetaValue, Plan, Weighting};
use crate::look::plural;
use serde_json::{Value, json};

/// `1.5 MiB` and the like, bytes below 10 KiB as they are.
#[must_use]
pub fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 10_240 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Writes the table that `--dry-run` prints.
///
/// # Errors
/// When `out` fails.
pub fn write_text(plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    let shape = |dims: &[u64]| dims.iter().map(u64::to_string).collect::<Vec<_>>().join(" x ");
    let shapes: Vec<String> = plan.steps.iter().map(|s| shape(&s.dims)).collect();
    // A longer name sticks out.
    let names = plan.steps.iter().map(|s| s.name.escape_debug().count()).filter(|n| *n <= 100).max();
    let names = names.unwrap_or(0).max(4);
    let wide = shapes.iter().map(String::len).max().unwrap_or(0).max(5);
    let header = ["name", "shape", "from", "to", "before", "after"];
    let [name, shape, from, to, before, after] = header;
    writeln!(out, "{name:names$}  {shape:>wide$}  {from:>7}    {to:7}  {before:>10}  {after:>10}  why")?;
    for (s, shape) in plan.steps.iter().zip(&shapes) {
        let (before, after) = (human_bytes(s.bytes_before), human_bytes(s.bytes_after));
        writeln!(
            out,
            "{:names$}  {shape:>wide$}  {:>7} -> {:7}  {before:>10}  {after:>10}  {}",
            s.name.escape_debug().to_string(),
            s.from,
            s.to,
            s.why
        )?;
    }
    let (before, after) = plan.bytes();
    writeln!(
        out,
        "{}, {} -> {} ({:.3} bits per weight)",
        plural(plan.steps.len(), "tensor"),
        human_bytes(before),
        human_bytes(after),
        bits_per_weight(after, plan.elements())
    )?;
    for edit in &plan.keys {
        match edit.key_value() {
            (key, Some(value)) => writeln!(out, "{} = {value}", key.escape_debug())?,
            (key, None) => writeln!(out, "{} removed", key.escape_debug())?,
        }
    }
    write_notes(plan, out)
}

/// Writes a line per note.
pub(crate) fn write_notes(plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    plan.notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))
}

/// Bits per weight, 0 for a model without weights.
#[must_use]
pub(crate) fn bits_per_weight(bytes: u64, weights: u64) -> f64 {
    if weights == 0 { 0.0 } else { bytes as f64 * 8.0 / weights as f64 }
}

/// The plan as one JSON object.
pub(crate) fn json(plan: &Plan) -> Value {
    let (before, after) = plan.bytes();
    let tensors: Vec<Value> = plan
        .steps
        .iter()
        .map(|s| {
            json!({
                "name": s.name,
                "dims": s.dims,
                "from": s.from.to_string(),
                "to": s.to.to_string(),
                "bytes_before": s.bytes_before,
                "bytes_after": s.bytes_after,
                "why": s.why.to_string(),
                "importance": match &s.weighting {
                    Weighting::None => Value::Null,
                    Weighting::Uniform => "uniform".into(),
                    Weighting::Entry(_) => "matrix".into(),
                },
            })
        })
        .collect();
    let keys: serde_json::Map<String, Value> = plan
        .keys
        .iter()
        .map(Edit::key_value)
        .map(|(k, v)| (k.to_owned(), v.map_or(Value::Null, MetaValue::json)))
        .collect();
    json!({
        "tensors": tensors,
        "keys": keys,
        "notes": plan.notes,
        "bytes_before": before,
        "bytes_after": after,
        "weights": plan.elements(),
        "bits_per_weight": bits_per_weight(after, plan.elements()),
    })
}

/// Writes the plan as JSON, for `--dry-run --json`.
///
/// # Errors
/// When `out` fails.
pub fn write_json(plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &json(plan))?;
    writeln!(out)
}

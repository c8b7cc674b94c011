//! Merges as a table for people and as JSON for machines.

use std::io::{self, Write};

use serde_json::{Value, json as object};

use super::{Adapter, Measured, MergedSource};
use crate::source::Source;

/// Writes what each adapter changes.
pub(crate) fn write_text(
    source: &MergedSource<'_>,
    measured: &[Measured<'_, '_>],
    out: &mut dyn Write,
) -> io::Result<()> {
    let name = |m: &Measured<'_, '_>| source.tensors()[m.merge.tensor].name.clone();
    let wide = measured.iter().map(|m| name(m).chars().count()).max().unwrap_or(0).max(6);
    for (number, adapter) in source.adapters().iter().enumerate() {
        let own: Vec<_> = measured.iter().filter(|m| m.merge.adapter == number).collect();
        writeln!(
            out,
            "\n{}: {} adapter, {} merges, scaled by {}",
            adapter.path().display(),
            adapter.kind(),
            own.len(),
            adapter.scale()
        )?;
        writeln!(
            out,
            "{:wide$}  {:7}  {:>5}  {:>10}  {:>9}  from",
            "tensor", "how", "rank", "scale", "|dW|/|W|"
        )?;
        for m in own {
            let rank = m.merge.rank().map_or_else(|| "-".into(), |r| r.to_string());
            let scale = m.merge.scale().map_or_else(|| "-".into(), |s| s.to_string());
            let from: Vec<String> = m.merge.from.iter().map(|f| f.escape_debug().to_string()).collect();
            writeln!(
                out,
                "{:wide$}  {:7}  {rank:>5}  {scale:>10}  {:>9.6}  {}",
                name(m),
                m.merge.verb(),
                m.change,
                from.join(", ")
            )?;
        }
    }
    Ok(())
}

/// The adapters and their merges.
pub(crate) fn json(source: &MergedSource<'_>, measured: &[Measured<'_, '_>]) -> Value {
    let adapter = |(number, a): (usize, &Adapter)| {
        let own = measured.iter().filter(|m| m.merge.adapter == number);
        let merges: Vec<Value> = own
            .map(|m| {
                object!({
                    "tensor": source.tensors()[m.merge.tensor].name,
                    "rows": [m.merge.rows.start, m.merge.rows.end],
                    "how": m.merge.verb(),
                    "rank": m.merge.rank(),
                    "scale": m.merge.scale(),
                    "relative_change": m.change,
                    "from": m.merge.from,
                })
            })
            .collect();
        object!({ "path": a.path().to_string_lossy(), "kind": a.kind().to_string(), "scale": a.scale(), "merges": merges })
    };
    source.adapters().iter().enumerate().map(adapter).collect()
}

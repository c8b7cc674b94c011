//! `cargo xtask golden --against VERSION`: what another version of ggml encodes differently.

use super::encode::{Case, differing};
use super::{folder, formats, inputs, minilm::MiniLm};
use crate::oracle::{CONFIGS, PACKAGE, Source, VERSION};
use crate::util::{Outcome, read, root};
use std::collections::BTreeSet;

/// Prints, for each format, the blocks that the other version encodes differently.
pub(super) fn run(version: &str) -> Outcome {
    let source = Source::fetch(version)?;
    println!("{PACKAGE} {version} (ggml {}) against {VERSION}", source.ggml_version()?);
    let mut oracle = source.start(CONFIGS[0])?;
    let golden = root().join("golden");
    let manifest = String::from_utf8_lossy(&read(&golden.join("MANIFEST"))?).into_owned();
    let left_out: BTreeSet<Vec<&str>> = manifest
        .lines()
        .filter_map(|l| l.strip_prefix("left-out "))
        .map(|l| l.splitn(5, ' ').take(4).collect())
        .collect();
    let shared = inputs::all(&MiniLm::load()?);
    let mut changed = 0;
    for info in formats() {
        for (kind, _, weights) in &inputs::importances() {
            let Ok(expected) = std::fs::read(golden.join(format!("{}/{kind}.bin", folder(info)))) else {
                continue;
            };
            let case = Case { info, kind, weights: weights.as_deref() };
            let (mut at, mut different, mut aborted) = (0, 0, 0);
            for input in &shared {
                let rows = case.rows(&mut oracle, &input.values(), input.row_len)?;
                for (n, row) in rows.iter().enumerate() {
                    if left_out.contains(&vec![info.name, kind, input.name, &n.to_string()]) {
                        continue;
                    }
                    let size = case.row_bytes(input.row_len);
                    let truth =
                        expected.get(at..at + size).ok_or("golden/MANIFEST and the goldens disagree")?;
                    at += size;
                    match row {
                        Ok(row) => different += differing(truth, row, info.block_bytes as usize),
                        Err(_) => aborted += 1,
                    }
                }
            }
            let blocks = expected.len() / info.block_bytes as usize;
            if different + aborted > 0 {
                changed += 1;
                println!(
                    "{:<8} {kind:<10} {different} of {blocks} blocks differ, {aborted} rows abort",
                    info.name
                );
            }
        }
    }
    println!("{changed} cases changed");
    Ok(())
}

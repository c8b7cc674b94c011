//! `cargo xtask tidy`: the rules that neither rustc nor clippy knows. Also a test, so that plain
//! `cargo test` finds a breach.

mod code;
mod goldens;
mod manifests;
mod words;

use crate::util::{Outcome, files, read, root};

/// Longest `.rs` file, in lines.
const FILE_CAP: usize = 500;

/// Generated tables, exempt from the cap.
const GENERATED: &[&str] = &["crates/ggml-blocks/src/grid/"];

/// Longest `ARCHITECTURE.md`, in lines.
const ARCHITECTURE_CAP: usize = 150;

/// Runs every rule and prints what it found.
pub(crate) fn run(_: &[String]) -> Outcome {
    let faults = check()?;
    for fault in &faults {
        eprintln!("{fault}");
    }
    if faults.is_empty() { Ok(()) } else { Err(format!("{} faults", faults.len())) }
}

/// Every breach of every rule, one line each.
fn check() -> Outcome<Vec<String>> {
    let root = root();
    let mut faults = Vec::new();
    let mut sources = Vec::new();
    if !root.join("ARCHITECTURE.md").is_file() {
        faults.push("ARCHITECTURE.md: missing".to_owned());
    }
    for path in files(&root)? {
        let bytes = read(&root.join(&path))?;
        let Ok(text) = String::from_utf8(bytes) else { continue };
        let lines = text.lines().count();
        if path.ends_with(".rs") {
            if lines > FILE_CAP && !GENERATED.iter().any(|g| path.starts_with(g)) {
                faults.push(format!("{path}: {lines} lines, {FILE_CAP} allowed"));
            }
            sources.push((path.clone(), code::strip(&text)));
        }
        if path == "ARCHITECTURE.md" && lines > ARCHITECTURE_CAP {
            faults.push(format!("{path}: {lines} lines, {ARCHITECTURE_CAP} allowed"));
        }
        words::check(&path, &text, &mut faults);
    }
    code::check_unsafe(&sources, &mut faults);
    manifests::check(&root, &mut faults)?;
    goldens::check(&root, &mut faults)?;
    Ok(faults)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_tree_is_tidy() {
        let faults = super::check().expect("the tree is readable");
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}

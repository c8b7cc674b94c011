//! What several tasks need: the root folder, running a command, walking the tree.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a task ends with: nothing, or one message for the person who ran it.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// The workspace's root folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("xtask stands in the workspace")
}

/// Runs a command to its end with our standard streams.
pub(crate) fn run(command: &mut Command) -> Outcome {
    let status = command.status().map_err(|e| format!("{command:?}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}

/// Runs a command and gives back its standard output.
pub(crate) fn capture(command: &mut Command) -> Outcome<String> {
    let out =
        command.stderr(std::process::Stdio::inherit()).output().map_err(|e| format!("{command:?}: {e}"))?;
    if !out.status.success() {
        return Err(format!("{command:?}: {}", out.status));
    }
    String::from_utf8(out.stdout).map_err(|e| format!("{command:?}: {e}"))
}

/// The cargo that runs us.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Builds all that `cargo test --workspace` runs: nothing, after it.
pub(crate) fn test_builds() -> Command {
    let mut command = cargo();
    command.args(["test", "--workspace", "--no-run"]);
    command
}

/// A target that cargo has built, or found built.
#[derive(Debug)]
pub(crate) struct Artifact {
    package: String,
    target: String,
    pub(crate) files: Vec<PathBuf>,
    pub(crate) program: Option<PathBuf>,
}

impl Artifact {
    pub(crate) fn is(&self, package: &str, target: &str) -> bool {
        self.package == package && self.target == target
    }
}

/// What a build of cargo's makes.
pub(crate) fn artifacts(build: &mut Command) -> Outcome<Vec<Artifact>> {
    let messages = capture(build.args(["--message-format", "json-render-diagnostics"]))?;
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let built = messages.filter(|m| m["reason"] == "compiler-artifact").map(|m| {
        let manifest = PathBuf::from(text(&m["manifest_path"]));
        let folder = manifest.parent().and_then(Path::file_name).unwrap_or_default();
        Artifact {
            package: folder.to_string_lossy().into_owned(),
            target: text(&m["target"]["name"]),
            files: m["filenames"].as_array().into_iter().flatten().map(|f| text(f).into()).collect(),
            program: m["executable"].as_str().map(PathBuf::from),
        }
    });
    Ok(built.collect())
}

/// Reads a file, with its path in the error.
pub(crate) fn read(path: &Path) -> Outcome<Vec<u8>> {
    std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// Every file of the tree that belongs to the project, as paths relative to the root, sorted.
/// Build output, fuzz corpora and hidden folders but `.ci` and `.cargo` are left out.
pub(crate) fn files(root: &Path) -> Outcome<Vec<String>> {
    const SKIPPED: &[&str] = &["target", "corpus", "artifacts", "coverage", "node_modules"];
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let here = root.join(&folder);
        let entries = std::fs::read_dir(&here).map_err(|e| format!("{}: {e}", here.display()))?;
        for entry in entries {
            let entry = entry.map_err(|e| format!("{}: {e}", here.display()))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let hidden = name.starts_with('.') && name != ".ci" && name != ".cargo";
            let path = folder.join(&name);
            match entry.file_type().map_err(|e| format!("{}: {e}", path.display()))? {
                kind if kind.is_dir() && !hidden && !SKIPPED.contains(&name.as_str()) => folders.push(path),
                kind if kind.is_file() => found.push(path.to_string_lossy().into_owned()),
                _ => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

/// sha256 in lower-case hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

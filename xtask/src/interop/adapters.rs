//! Adapters, made and merged by numpy and merged here; our tables of names against the package's.

use super::Tools;
use crate::util::{Outcome, capture, read, root, run as run_command};
use serde_json::Value;
use std::process::Command;

/// Merges every case with the release binary and has the results compared.
pub(super) fn run(tools: &Tools) -> Outcome {
    let folder = tools.folder().join("adapters");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    run_command(tools.python("adapters.py").arg("make").arg(&folder))?;
    let cases: Value =
        serde_json::from_slice(&read(&folder.join("cases.json"))?).map_err(|e| e.to_string())?;
    for case in cases.as_array().into_iter().flatten() {
        let text = |key: &str| case[key].as_str().unwrap_or_default().to_owned();
        let mut merge = Command::new(root().join("target/release/export-gguf"));
        merge.current_dir(&folder).args(["--quiet", "--from-gguf", &text("base"), "--out", &text("out")]);
        merge.args(["--adapters", &text("adapter")]);
        merge.args(case["more"].as_array().into_iter().flatten().filter_map(Value::as_str));
        run_command(&mut merge)?;
    }
    let found = report(&capture(tools.python("adapters.py").arg("check").arg(&folder))?)?;
    if found["equal"].as_u64().unwrap_or(0) == 0 || found["within"].as_u64().unwrap_or(0) == 0 {
        return Err("no merged weight was compared".to_owned());
    }
    println!(
        "adapters: {} merged weights are numpy's bits, {} within the bound of f64 (at most {:.3} of it)",
        found["equal"],
        found["within"],
        found["worst"].as_f64().unwrap_or(f64::NAN)
    );
    let found = report(&capture(tools.python("adapters.py").arg("names").arg(root().join("docs/lora.md")))?)?;
    println!("adapters: {} names are the package's", found["checked"]);
    Ok(())
}

/// What a script printed, or the faults in it.
pub(super) fn report(text: &str) -> Outcome<Value> {
    let found: Value = serde_json::from_str(text).map_err(|e| format!("{text}: {e}"))?;
    let faults: Vec<&str> =
        found["faults"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if faults.is_empty() { Ok(found) } else { Err(faults.join("\n")) }
}

//! Whole runs of export-gguf against `llama_model_quantize`, two threads each, on the model that
//! `export-gguf demo --size 672M` makes: time, peak resident and peak anonymous memory. One type for all
//! tensors (pure), and mixes, with and without importance.

use super::median;
use crate::interop::Tools;
use crate::util::{Outcome, capture, cargo, root, run as run_command};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is measured; `+` is with importance.
const CASES: [&str; 9] =
    ["q8_0", "q4_k", "q5_k", "q6_k", "iq4_xs", "mix:q4_k_m", "mix:q5_k_m", "mix:iq4_xs", "mix:q4_k_m+"];
const ROUNDS: usize = 3;

/// The programs and files of a benchmark.
struct Bench {
    tools: Tools,
    binary: PathBuf,
    model: PathBuf,
    imatrix: PathBuf,
    theirs: PathBuf,
    ours: PathBuf,
}

/// Prints a line per case.
pub(super) fn run(only: &[&str]) -> Outcome {
    let bench = Bench::set_up(only)?;
    let size = std::fs::metadata(&bench.model).map_or(0, |m| m.len());
    println!("{size} bytes, 2 threads each, median of {ROUNDS}; memory in MiB");
    println!(
        "{:<11} {:>8} {:>8} {:>6} {:>9} {:>9} {:>10} {:>10}",
        "case", "llama s", "ours s", "ratio", "llama RSS", "ours RSS", "llama anon", "ours anon"
    );
    for case in CASES.iter().filter(|t| only.is_empty() || only.contains(t)) {
        let mut theirs = Vec::new();
        let mut ours = Vec::new();
        for _ in 0..ROUNDS {
            theirs.push(bench.measure(&bench.theirs_for(case))?);
            ours.push(bench.measure(&bench.ours_for(case))?);
        }
        let of = |runs: &[[f64; 3]], i: usize| median(runs.iter().map(|r| r[i]).collect());
        println!(
            "{case:<11} {:>8.2} {:>8.2} {:>6.2} {:>9.0} {:>9.0} {:>10.0} {:>10.0}",
            of(&theirs, 0),
            of(&ours, 0),
            of(&theirs, 0) / of(&ours, 0),
            of(&theirs, 1),
            of(&ours, 1),
            of(&theirs, 2),
            of(&ours, 2)
        );
        remove(&bench.theirs)?;
        remove(&bench.ours)?;
    }
    Ok(())
}

/// The name of a mix, and whether it is made with importance.
fn mix(case: &str) -> Option<(&str, bool)> {
    let name = case.strip_prefix("mix:")?;
    Some(name.strip_suffix('+').map_or((name, false), |n| (n, true)))
}

impl Bench {
    fn set_up(only: &[&str]) -> Outcome<Self> {
        if let Some(unknown) = only.iter().find(|o| !CASES.contains(o)) {
            return Err(format!("no case {unknown}; there are: {}", CASES.join(", ")));
        }
        let tools = Tools::get()?;
        run_command(cargo().args(["build", "--release", "--package", "export-gguf"]))?;
        let folder = root().join("target/bench");
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let file = |name: &str| folder.join(name);
        let (model, imatrix) = (file("demo-f16.gguf"), file("demo.imatrix.gguf"));
        let (theirs, ours) = (file("llama.gguf"), file("ours.gguf"));
        let binary = root().join("target/release/export-gguf");
        let bench = Self { tools, binary, model, imatrix, theirs, ours };
        if !bench.model.is_file() {
            let mut demo = Command::new(&bench.binary);
            run_command(demo.args(["demo", "--size", "672M", "--only-model"]).arg(&folder))?;
        }
        if !bench.imatrix.is_file() {
            let mut script = bench.tools.python("importance.py");
            run_command(script.arg(&bench.model).arg(&bench.imatrix).env("BLOCKS_ONLY", "1"))?;
        }
        // Both then read from the page cache.
        run_command(Command::new("cat").arg(&bench.model).stdout(std::process::Stdio::null()))?;
        Ok(bench)
    }

    fn theirs_for(&self, case: &str) -> Command {
        let Some((name, importance)) = mix(case) else {
            let mut llama = self.tools.python("llama.py");
            llama.arg(self.tools.libraries()).arg(&self.model).arg(&self.theirs).arg(case);
            return llama;
        };
        let mut llama = self.tools.python("quantize.py");
        llama.arg(self.tools.libraries());
        if importance {
            llama.arg("--imatrix").arg(&self.imatrix);
        }
        llama.arg(&self.model).arg(&self.theirs).arg(name);
        llama
    }

    fn ours_for(&self, case: &str) -> Command {
        let mut export = Command::new(&self.binary);
        export.arg("--from-gguf").arg(&self.model).arg("--out").arg(&self.ours);
        export.args(["--threads", "2", "--force", "--quiet"]);
        match mix(case) {
            None => drop(export.args(["--dtype", case])),
            Some((name, importance)) => {
                export.args(["--mix", name]);
                if importance {
                    export.arg("--imatrix").arg(&self.imatrix);
                }
            }
        }
        export
    }

    /// Seconds, peak resident MiB, peak anonymous MiB of a command.
    fn measure(&self, command: &Command) -> Outcome<[f64; 3]> {
        let mut measured = self.tools.python("measure.py");
        measured.arg(command.get_program()).args(command.get_args());
        let text = capture(&mut measured)?;
        let found: Value = serde_json::from_str(&text).map_err(|e| format!("measure.py: {e}"))?;
        let of = |key: &str| found[key].as_f64().ok_or(format!("measure.py gave no {key}"));
        Ok([of("seconds")?, of("resident")? / 1024.0, of("anonymous")? / 1024.0])
    }
}

fn remove(path: &Path) -> Outcome {
    std::fs::remove_file(path).map_err(|e| format!("{}: {e}", path.display()))
}

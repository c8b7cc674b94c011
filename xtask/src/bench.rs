//! `cargo xtask bench codecs | kernels | planes | transcode | ptqtp | memory`: speed against ggml, or of one way
//! of ours against another, the two in strict alternation, so that whatever else the machine does falls on both; and what a
//! model larger than memory takes. Results are kept in `docs/benchmarks.md`.

mod codecs;
mod kernels;
mod planes;
mod transcode;

use crate::interop::Tools;
use crate::util::{Outcome, cargo, root, run as run_command};

/// Runs one of the benchmarks, in a release build of this program.
pub(crate) fn run(args: &[String]) -> Outcome {
    if cfg!(debug_assertions) {
        let mut again = cargo();
        again.args(["run", "--quiet", "--release", "--package", "xtask", "--", "bench"]).args(args);
        return run_command(&mut again);
    }
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["codecs", ref only @ ..] => codecs::run(only),
        ["kernels", ref only @ ..] => kernels::run(only),
        ["planes"] => planes::run(),
        ["transcode", ref only @ ..] => transcode::run(only),
        ["memory"] => memory("12"),
        ["memory", gigabytes] => memory(gigabytes),
        ["ptqtp"] => run_command(cargo().args(["bench", "--package", "export-gguf", "--bench", "ptqtp"])),
        _ => Err("usage: bench codecs [FORMAT...] | bench kernels [TYPE...] [m=N...] | bench planes | bench transcode [CASE...] | bench ptqtp | bench memory [GB]"
            .to_owned()),
    }
}

/// A model larger than what the process may have, through the release binary.
fn memory(gigabytes: &str) -> Outcome {
    run_command(cargo().args(["build", "--release", "--package", "export-gguf"]))?;
    let folder = root().join("target/bench");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let binary = root().join("target/release/export-gguf");
    run_command(Tools::get()?.python("memory.py").arg(binary).arg(folder).arg(gigabytes))
}

/// The middle of some measurements.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

//! `cargo xtask ci`: exactly what `.ci/run` runs, step by step, each timed.

use crate::TASKS;
use crate::util::{Outcome, cargo, run as run_command};
use std::time::Instant;

/// One step: its name and what it runs, a cargo command or a task of ours.
enum Step {
    Cargo(&'static str, &'static [&'static str]),
    Task(&'static str, &'static [&'static str]),
}

/// In this order: what fails fastest and most often stands first. Three sets of builds: clippy's, the
/// development profile's, and the release binary's.
const STEPS: &[Step] = &[
    Step::Cargo("fmt", &["fmt", "--all", "--check"]),
    Step::Task("tidy", &[]),
    Step::Cargo("clippy", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    Step::Cargo("test", &["test", "--workspace"]),
    Step::Task("asm", &[]),
    Step::Cargo("doc", &["doc", "--workspace", "--no-deps"]),
    Step::Task("codegen", &["--check"]),
    Step::Cargo("demo", &["run", "--release", "--package", "export-gguf", "--", "demo"]),
    Step::Task("examples", &[]),
    Step::Task("package", &[]),
    Step::Task("golden", &["--check"]),
    Step::Task("cross", &[]),
    Step::Task("interop", &[]),
];

/// Runs every step, also after one has failed, and prints the table.
pub(crate) fn run(_: &[String]) -> Outcome {
    let mut table = Vec::new();
    for step in STEPS {
        let (name, outcome, seconds) = timed(step);
        if let Err(message) = &outcome {
            eprintln!("{name}: {message}");
        }
        table.push((name, outcome.is_ok(), seconds));
    }
    println!("\n{:<14} {:>8}", "step", "seconds");
    for (name, ok, seconds) in &table {
        println!("{name:<14} {seconds:>8.1}{}", if *ok { "" } else { "  FAILED" });
    }
    let failed = table.iter().filter(|(_, ok, _)| !ok).count();
    println!("{} passed, {failed} failed", table.len() - failed);
    if failed == 0 { Ok(()) } else { Err(format!("{failed} of {} steps failed", table.len())) }
}

fn timed(step: &Step) -> (String, Outcome, f64) {
    let start = Instant::now();
    let (name, outcome) = match step {
        Step::Cargo(name, args) => {
            println!("\n== {name}: cargo {}", args.join(" "));
            let mut command = cargo();
            command.args(*args);
            if *name == "doc" {
                command.env("RUSTDOCFLAGS", "-D warnings");
            }
            ((*name).to_owned(), run_command(&mut command))
        }
        Step::Task(name, args) => {
            let shown = [&[*name], *args].concat().join(" ");
            println!("\n== cargo xtask {shown}");
            let args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
            let task = TASKS.iter().find(|t| t.0 == *name).ok_or(format!("no task {name}"));
            (shown, task.and_then(|t| t.1(&args)))
        }
    };
    (name, outcome, start.elapsed().as_secs_f64())
}

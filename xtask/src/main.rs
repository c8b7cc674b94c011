//! Maintenance tasks: `cargo xtask <task> [arguments]`. Everything that is not `cargo build` or
//! `cargo test` lives here, so that no script in another language has to be kept.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool speaks on its standard streams"
)]

use std::process::ExitCode;

mod ci;
mod tidy;
mod util;

use util::Outcome;

/// One row of the task table.
struct Task {
    name: &'static str,
    run: fn(&[String]) -> Outcome,
    help: &'static str,
}

/// Every task. A new one is a module with a `run` and a row here.
const TASKS: &[Task] = &[
    Task { name: "ci", run: ci::run, help: "everything that continuous integration runs, each step timed" },
    Task {
        name: "tidy",
        run: tidy::run,
        help: "file lengths, unsafe counts, dependency edges, lints, wording",
    },
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(task) = args.first().and_then(|name| TASKS.iter().find(|t| t.name == name)) else {
        eprintln!("usage: cargo xtask <task> [arguments]\n");
        for task in TASKS {
            eprintln!("  {:<9} {}", task.name, task.help);
        }
        return ExitCode::from(2);
    };
    match (task.run)(&args[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{}: {message}", task.name);
            ExitCode::FAILURE
        }
    }
}

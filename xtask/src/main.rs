//! Maintenance tasks: `cargo xtask <task> [arguments]`. Everything that is not `cargo build` or
//! `cargo test` lives here, so that no script in another language has to be kept.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool speaks on its standard streams"
)]

use std::process::ExitCode;

mod asm;
mod bench;
mod ci;
mod codegen;
mod cross;
mod examples;
mod fetch;
mod golden;
mod interop;
mod oracle;
mod package;
mod tidy;
mod util;

use util::Outcome;

/// One row of the task table: its name, what runs it, help.
type Task = (&'static str, fn(&[String]) -> Outcome, &'static str);

/// Every task. A new one is a module with a `run` and a row here.
const TASKS: &[Task] = &[
    ("asm", asm::run, "the machine code of the kernels: dot products, and no calls"),
    ("bench", bench::run, "codecs, kernels, planes or transcode: speed against ggml, in alternation"),
    ("ci", ci::run, "all that continuous integration runs, each step timed"),
    ("codegen", codegen::run, "codebooks and docs/blocks.md; --check compares"),
    ("cross", cross::run, "the kernels' tests on other processors, under qemu"),
    ("examples", examples::run, "runs every example of every crate"),
    ("golden", golden::run, "makes golden/ from ggml; --check, --against VERSION"),
    ("interop", interop::run, "our files in other tools, and their bytes against ours"),
    ("package", package::run, "cargo package, and the dependency tree of each layer; --bless"),
    ("tidy", tidy::run, "file lengths, unsafe counts, dependency edges, lints, wording"),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, run, _)) = args.first().and_then(|name| TASKS.iter().find(|t| t.0 == name)) else {
        eprintln!("usage: cargo xtask <task> [arguments]\n");
        for (name, _, help) in TASKS {
            eprintln!("  {name:<9} {help}");
        }
        return ExitCode::from(2);
    };
    match run(&args[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{name}: {message}");
            ExitCode::FAILURE
        }
    }
}

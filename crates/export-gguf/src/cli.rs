//! The command line: what can be typed, and what it calls.
//!
//! Help, completions and the man page all come from the definitions here; nothing else describes
//! a flag.

mod dtype;
mod export;
mod lora;
mod mix;
mod ptqtp;
mod size;

pub(crate) use size::parse_threads;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};

pub use export::{Dtype, ExportArgs, OverflowArg};
pub use lora::{AdapterArg, LoraArgs};
pub use mix::{Mix, MixArgs, OrderArg};
pub use ptqtp::PtqtpArgs;

use crate::look::{dump, extract, info, kv, sample, selftest, tensors, verify};
use crate::{Error, Outcome, demo};

/// Transcode GGUF models larger than memory, and look into them
#[derive(Debug, Parser)]
#[command(
    name = "export-gguf",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
#[command(after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    #[expect(missing_docs, reason = "the variants document themselves")]
    pub command: Option<Command>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields document themselves")]
    pub export: ExportArgs,
}

const EXIT_CODES: &str = "\
Exit codes:
  0          done (a closed pipe counts as done)
  1          failed or refused, or `verify` found faults; the target is as it was
  2          the command line makes no sense
  129, 130, 143  stopped by SIGHUP, SIGINT, SIGTERM; the target is as it was";

/// Everything but transcoding.
#[derive(Debug, Subcommand)]
#[non_exhaustive]
pub enum Command {
    /// Show a model at a glance: architecture, sizes, types
    Info(info::InfoArgs),
    /// Show everything the header says
    Dump(dump::DumpArgs),
    /// Print one metadata value
    Kv(kv::KvArgs),
    /// List the tensors
    Tensors(tensors::TensorsArgs),
    /// Check structure and values, naming every fault
    Verify(verify::VerifyArgs),
    /// Write one tensor as raw 32-bit floats
    #[command(alias = "export")]
    Extract(extract::ExtractArgs),
    /// Write a reference sample file
    Gen(sample::GenArgs),
    /// Write, parse and compare on this machine
    Selftest(selftest::SelftestArgs),
    /// Make a small model, transcode it to `Q4_K` and verify it
    Demo(demo::DemoArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page (roff)
    Man,
}

/// The arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    ///
    /// Example: `export-gguf completions bash > ~/.local/share/bash-completion/completions/export-gguf`
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// Parses the process's arguments, runs the command, prints errors, and answers the exit code.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
            // Help and version arrive here too; a closed pipe is no reason to fail.
            let code = u8::try_from(e.exit_code()).unwrap_or(2);
            return match e.print() {
                Err(p) if p.kind() != io::ErrorKind::BrokenPipe => ExitCode::from(1),
                _ => ExitCode::from(code),
            };
        }
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    let result = dispatch(&cli, &mut out).and_then(|done| Ok(out.flush().map(|()| done)?));
    let code = match &result {
        Ok(Outcome::Ok) => 0,
        Ok(Outcome::Faults) => 1,
        Err(e) => e.exit_code(),
    };
    if let Err(e) = result
        && code != 0
    {
        // Nothing is left to do if standard error is gone as well.
        let _ = writeln!(io::stderr(), "error: {e}");
    }
    ExitCode::from(code)
}

fn dispatch(cli: &Cli, out: &mut dyn Write) -> Result<Outcome, Error> {
    match &cli.command {
        None => export::run(&cli.export, out),
        Some(Command::Info(a)) => info::run(a, out),
        Some(Command::Dump(a)) => dump::run(a, out),
        Some(Command::Kv(a)) => kv::run(a, out),
        Some(Command::Tensors(a)) => tensors::run(a, out),
        Some(Command::Verify(a)) => verify::run(a, out),
        Some(Command::Extract(a)) => extract::run(a, out),
        Some(Command::Gen(a)) => sample::run(a, out),
        Some(Command::Selftest(a)) => selftest::run(a, out),
        Some(Command::Demo(a)) => demo::run(a, out),
        Some(Command::Completions(a)) => {
            // The generators panic on a closed pipe, so they write to memory.
            let mut text = Vec::new();
            clap_complete::generate(a.shell, &mut Cli::command(), "export-gguf", &mut text);
            out.write_all(&text)?;
            Ok(Outcome::Ok)
        }
        Some(Command::Man) => {
            out.write_all(&manual()?)?;
            Ok(Outcome::Ok)
        }
    }
}

/// The manual: one page, the commands' own flags after the general ones.
fn manual() -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let mut root = Cli::command();
    root.build();
    clap_mangen::Man::new(root.clone()).render(&mut text)?;
    for command in root.get_subcommands().filter(|c| c.get_name() != "help") {
        writeln!(text, ".SH {}", command.get_name().to_uppercase())?;
        let page = clap_mangen::Man::new(command.clone());
        page.render_description_section(&mut text)?;
        page.render_synopsis_section(&mut text)?;
        page.render_options_section(&mut text)?;
    }
    Ok(text)
}

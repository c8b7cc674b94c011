//! `selftest`: write, parse, compare, on this very machine.

use std::io::Write;

use crate::{Error, Outcome};

/// The arguments of `selftest`.
#[derive(Debug, clap::Args)]
pub struct SelftestArgs {
    /// Print JSON instead of text
    ///
    /// Example: `export-gguf selftest --json`
    #[arg(long)]
    pub json: bool,
}

/// Runs the command, writing to `out`.
///
/// # Errors
/// When `out` cannot be written.
pub fn run(args: &SelftestArgs, out: &mut dyn Write) -> Result<Outcome, Error> {
    writeln!(out, "json: {}", args.json)?;
    Err(Error::Refused("`selftest` is not built yet".into()))
}

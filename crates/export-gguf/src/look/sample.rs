//! `gen`: writes a reference sample file.

use std::io::Write;
use std::path::PathBuf;

use crate::{Error, Outcome};

/// The arguments of `gen`.
#[derive(Debug, clap::Args)]
pub struct GenArgs {
    /// Where to write the sample
    ///
    /// Example: `export-gguf gen sample.gguf`
    #[arg(value_name = "OUT")]
    pub out: PathBuf,

    /// Replace an existing file
    ///
    /// Example: `export-gguf gen sample.gguf --force`
    #[arg(long)]
    pub force: bool,

    /// Print JSON instead of text
    ///
    /// Example: `export-gguf gen sample.gguf --json`
    #[arg(long)]
    pub json: bool,
}

/// Runs the command, writing to `out`.
///
/// # Errors
/// When the sample or `out` cannot be written.
pub fn run(args: &GenArgs, out: &mut dyn Write) -> Result<Outcome, Error> {
    writeln!(out, "{}", args.out.display())?;
    Err(Error::Refused("`gen` is not built yet".into()))
}

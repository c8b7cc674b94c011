//! `dump`: everything the header says.

use std::io::Write;

use super::Input;
use crate::{Error, Outcome};

/// The arguments of `dump`.
#[derive(Debug, clap::Args)]
pub struct DumpArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields document themselves")]
    pub input: Input,
}

/// Runs the command, writing to `out`.
///
/// # Errors
/// When the file cannot be read or `out` not written.
pub fn run(args: &DumpArgs, out: &mut dyn Write) -> Result<Outcome, Error> {
    writeln!(out, "{}", args.input.file.display())?;
    Err(Error::Refused("`dump` is not built yet".into()))
}

//! `tensors`: the list of tensors.

use std::io::Write;

use super::Input;
use crate::{Error, Outcome};

/// The arguments of `tensors`.
#[derive(Debug, clap::Args)]
pub struct TensorsArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields document themselves")]
    pub input: Input,
}

/// Runs the command, writing to `out`.
///
/// # Errors
/// When the file cannot be read or `out` not written.
pub fn run(args: &TensorsArgs, out: &mut dyn Write) -> Result<Outcome, Error> {
    writeln!(out, "{}", args.input.file.display())?;
    Err(Error::Refused("`tensors` is not built yet".into()))
}

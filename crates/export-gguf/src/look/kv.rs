//! `kv`: one metadata value.

use std::io::Write;

use super::Input;
use crate::{Error, Outcome};

/// The arguments of `kv`.
#[derive(Debug, clap::Args)]
pub struct KvArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields document themselves")]
    pub input: Input,

    /// The metadata key
    ///
    /// Example: `export-gguf kv model.gguf general.architecture`
    #[arg(value_name = "KEY")]
    pub key: String,
}

/// Runs the command, writing to `out`.
///
/// # Errors
/// When the file cannot be read or `out` not written.
pub fn run(args: &KvArgs, out: &mut dyn Write) -> Result<Outcome, Error> {
    writeln!(out, "{}", args.input.file.display())?;
    Err(Error::Refused("`kv` is not built yet".into()))
}

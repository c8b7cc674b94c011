//! `extract`: one tensor as raw 32-bit floats.

use std::io::Write;

use super::Input;
use crate::{Error, Outcome};

/// The arguments of `extract`.
#[derive(Debug, clap::Args)]
pub struct ExtractArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields document themselves")]
    pub input: Input,

    /// The tensor to extract
    ///
    /// Example: `export-gguf extract model.gguf token_embd.weight -o embd.f32`
    #[arg(value_name = "TENSOR")]
    pub tensor: String,

    /// Where to write the values: little-endian 32-bit floats, row after row
    ///
    /// Example: `export-gguf extract model.gguf output.weight -o out.f32`
    #[arg(short, long, value_name = "FILE")]
    pub out: std::path::PathBuf,

    /// Only these rows, the end excluded
    ///
    /// Example: `export-gguf extract model.gguf output.weight -o out.f32 --rows 0..16`
    #[arg(long, value_name = "A..B")]
    pub rows: Option<String>,
}

/// Runs the command, writing to `out`.
///
/// # Errors
/// When the file cannot be read or `out` not written.
pub fn run(args: &ExtractArgs, out: &mut dyn Write) -> Result<Outcome, Error> {
    writeln!(out, "{}", args.input.file.display())?;
    Err(Error::Refused("`extract` is not built yet".into()))
}

//! `kv`: one metadata value.

use std::io::Write;

use gguf_format::{KeyValue, Value};

use super::Input;
use super::json::{self, Entry};
use super::text::{Lines, Number, Text};
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

    /// Print a string's bytes as they are, without escapes or a line feed after them
    ///
    /// Example: `export-gguf kv model.gguf tokenizer.chat_template --raw > template.jinja`
    #[arg(long, conflicts_with = "json")]
    pub raw: bool,
}

/// Runs the command, writing to `out`.
///
/// # Errors
/// When the file cannot be read, has no such key, or `out` cannot be written.
pub fn run(args: &KvArgs, out: &mut dyn Write) -> Result<Outcome, Error> {
    let model = args.input.open()?;
    let Some(kv) = model.gguf().key_value(&args.key) else {
        let (key, file) = (Text(args.key.as_bytes()), args.input.file.display());
        return Err(Error::Refused(format!("{file}: no key {key}; `dump` lists all")));
    };
    if args.input.json {
        json::write(out, &Entry { kv, limit: usize::MAX })?;
    } else {
        write(kv, args.raw, out)?;
    }
    Ok(Outcome::Ok)
}

/// The value alone; of an array one element per line.
fn write(kv: KeyValue<'_>, raw: bool, out: &mut dyn Write) -> Result<(), Error> {
    match kv.value() {
        Value::Array(array) => {
            for value in array {
                write_scalar(value, out)?;
            }
        }
        Value::String(s) if raw => out.write_all(s.as_bytes())?,
        // A single string may be a text of many lines, such as a chat template.
        Value::String(s) => writeln!(out, "{}", Lines(s.as_bytes()))?,
        value => write_scalar(value, out)?,
    }
    Ok(())
}

fn write_scalar(value: Value<'_>, out: &mut dyn Write) -> Result<(), Error> {
    match value {
        Value::String(s) => writeln!(out, "{}", Text(s.as_bytes()))?,
        value => writeln!(out, "{}", Number(value))?,
    }
    Ok(())
}

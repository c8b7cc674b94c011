//! `dump`: everything the header says.

mod checkpoint;

use std::io::Write;

use gguf_format::{Array, KeyValue, Value};
use gguf_mmap::{GgufFile, Model};
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

use super::Input;
use super::json::{self, Entry};
use super::tensors;
use super::text::{Number, Quoted, Text, plural};
use crate::st::is_checkpoint;
use crate::{Error, Outcome};

/// Elements of an array, and bytes of a string, that are shown without `--full`.
const ELEMENTS: usize = 8;
const STRING: usize = 200;

/// The arguments of `dump`.
#[derive(Debug, clap::Args)]
pub struct DumpArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields document themselves")]
    pub input: Input,

    /// Show arrays and strings whole, however long
    ///
    /// Example: `export-gguf dump model.gguf --full | less`
    #[arg(long)]
    pub full: bool,
}

/// Runs the command, writing to `out`.
///
/// # Errors
/// When the file cannot be read or `out` not written.
pub fn run(args: &DumpArgs, out: &mut dyn Write) -> Result<Outcome, Error> {
    if is_checkpoint(&args.input.file) {
        return checkpoint::run(args, out);
    }
    let model = args.input.open()?;
    if args.input.json {
        let limit = if args.full { usize::MAX } else { ELEMENTS };
        json::write(out, &Report { parts: Parts { model: &model, limit }, tensors: tensors::Rows(&model) })?;
    } else {
        write(&model, args.full, out)?;
    }
    Ok(Outcome::Ok)
}

fn write(model: &Model, full: bool, out: &mut dyn Write) -> Result<(), Error> {
    for part in model.parts() {
        let gguf = part.gguf();
        writeln!(out, "{}", name(part))?;
        writeln!(
            out,
            "  GGUF version {}, {}, {}, alignment {}, data from byte {:#x}, {} bytes in all",
            gguf.version(),
            plural(gguf.metadata().len(), "key"),
            plural(gguf.tensors().len(), "tensor"),
            gguf.alignment(),
            gguf.data_offset(),
            part.file_len(),
        )?;
        for finding in gguf.findings() {
            writeln!(out, "  warning: {finding}")?;
        }
        writeln!(out, "keys")?;
        for kv in gguf.metadata() {
            write_entry(kv, full, out)?;
        }
    }
    writeln!(out, "tensors")?;
    tensors::write(model, out, "  ")
}

fn name(part: &GgufFile) -> String {
    part.path().map_or_else(|| "-".to_owned(), |p| p.display().to_string())
}

fn write_entry(kv: KeyValue<'_>, full: bool, out: &mut dyn Write) -> Result<(), Error> {
    write!(out, "  {} = ", Text(kv.key().as_bytes()))?;
    match kv.value() {
        Value::Array(array) => write_array(array, full, out)?,
        value => {
            write_scalar(value, full, out)?;
            write!(out, " ({})", kv.value_type())?;
        }
    }
    Ok(writeln!(out)?)
}

fn write_array(array: Array<'_>, full: bool, out: &mut dyn Write) -> Result<(), Error> {
    let shown = if full { array.len() } else { array.len().min(ELEMENTS) };
    write!(out, "[")?;
    for (i, value) in array.iter().take(shown).enumerate() {
        if i > 0 {
            write!(out, ", ")?;
        }
        write_scalar(value, full, out)?;
    }
    let rest = if shown < array.len() { ", ..." } else { "" };
    Ok(write!(out, "{rest}] ({} {})", array.len(), array.element_type())?)
}

fn write_scalar(value: Value<'_>, full: bool, out: &mut dyn Write) -> Result<(), Error> {
    let Value::String(s) = value else {
        return Ok(write!(out, "{}", Number(value))?);
    };
    let bytes = s.as_bytes();
    if full || bytes.len() <= STRING {
        return Ok(write!(out, "{}", Quoted(bytes))?);
    }
    // The cut moves back to the start of a character, by at most three bytes.
    let cut = (STRING - 3..=STRING).rev().find(|&i| bytes[i] & 0xc0 != 0x80).unwrap_or(STRING);
    Ok(write!(out, "{}... {} bytes", Quoted(&bytes[..cut]), bytes.len())?)
}

#[derive(Serialize)]
struct Report<'a> {
    parts: Parts<'a>,
    tensors: tensors::Rows<'a>,
}

struct Parts<'a> {
    model: &'a Model,
    limit: usize,
}

#[derive(Serialize)]
struct Part<'a> {
    file: String,
    version: u32,
    alignment: u64,
    data_offset: u64,
    bytes: u64,
    findings: Vec<String>,
    keys: Keys<'a>,
}

struct Keys<'a> {
    part: &'a GgufFile,
    limit: usize,
}

impl Serialize for Parts<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut seq = s.serialize_seq(Some(self.model.parts().len()))?;
        for part in self.model.parts() {
            let gguf = part.gguf();
            seq.serialize_element(&Part {
                file: name(part),
                version: gguf.version(),
                alignment: gguf.alignment(),
                data_offset: gguf.data_offset(),
                bytes: part.file_len(),
                findings: gguf.findings().iter().map(ToString::to_string).collect(),
                keys: Keys { part, limit: self.limit },
            })?;
        }
        seq.end()
    }
}

impl Serialize for Keys<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut seq = s.serialize_seq(None)?;
        for kv in self.part.gguf().metadata() {
            seq.serialize_element(&Entry { kv, limit: self.limit })?;
        }
        seq.end()
    }
}

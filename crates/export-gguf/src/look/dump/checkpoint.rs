//! `dump` of a safetensors checkpoint.

use std::io::Write;

use serde::Serialize;

use super::super::json;
use super::super::tensors::checkpoint as tensors;
use super::super::text::{Quoted, Text, plural};
use super::{DumpArgs, STRING};
use crate::st::{Checkpoint, Part};
use crate::{Error, Outcome};

#[derive(Serialize)]
struct Report<'a> {
    parts: Vec<PartRow<'a>>,
    tensors: tensors::Rows<'a>,
    findings: Vec<String>,
}

#[derive(Serialize)]
struct PartRow<'a> {
    file: String,
    header_bytes: u64,
    data_offset: u64,
    bytes: u64,
    #[serde(serialize_with = "json::map")]
    metadata: Vec<(&'a str, &'a str)>,
}

pub(super) fn run(args: &DumpArgs, out: &mut dyn Write) -> Result<Outcome, Error> {
    let checkpoint = args.input.open_checkpoint()?;
    if args.input.json {
        let parts = checkpoint.parts().iter().map(PartRow::from).collect();
        let findings = checkpoint.findings().collect();
        json::write(out, &Report { parts, tensors: tensors::Rows(&checkpoint), findings })?;
    } else {
        write(&checkpoint, args.full, out)?;
    }
    Ok(Outcome::Ok)
}

impl<'a> From<&'a Part> for PartRow<'a> {
    fn from(part: &'a Part) -> Self {
        Self {
            file: part.path().display().to_string(),
            header_bytes: part.header().json_len(),
            data_offset: part.header().data_offset(),
            bytes: part.file_len(),
            metadata: part.header().metadata().collect(),
        }
    }
}

fn write(checkpoint: &Checkpoint, full: bool, out: &mut dyn Write) -> Result<(), Error> {
    for part in checkpoint.parts() {
        let header = part.header();
        writeln!(out, "{}", part.path().display())?;
        writeln!(
            out,
            "  safetensors, {}, {}, header of {} bytes, data from byte {:#x}, {} bytes in all",
            plural(header.metadata().len(), "key"),
            plural(header.len(), "tensor"),
            header.json_len(),
            header.data_offset(),
            part.file_len(),
        )?;
        writeln!(out, "keys")?;
        for (key, value) in header.metadata() {
            write!(out, "  {} = ", Text(key.as_bytes()))?;
            match value.get(..value.floor_char_boundary(STRING)).filter(|shown| !full && *shown != value) {
                Some(shown) => writeln!(out, "{}... {} bytes", Quoted(shown.as_bytes()), value.len())?,
                None => writeln!(out, "{}", Quoted(value.as_bytes()))?,
            }
        }
    }
    for finding in checkpoint.findings() {
        writeln!(out, "warning: {finding}")?;
    }
    writeln!(out, "tensors")?;
    tensors::write(checkpoint, out, "  ")
}

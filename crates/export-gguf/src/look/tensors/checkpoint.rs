//! `tensors` of a safetensors checkpoint.

use std::io::Write;

use serde::ser::{Serialize, SerializeSeq, Serializer};

use super::super::json;
use super::super::table::{self, Align};
use super::super::text::{Text, bits_per_weight, shape};
use super::TensorsArgs;
use crate::st::{Checkpoint, StTensor, format_of};
use crate::{Error, Outcome};

/// One tensor, as JSON has it.
#[derive(serde::Serialize)]
struct Row<'a> {
    name: &'a str,
    dtype: &'static str,
    /// In the file's order: the row length last.
    shape: &'a [u64],
    elements: u64,
    bytes: u64,
    bits_per_weight: f64,
    /// In the file, from its start.
    offset: u64,
    part: usize,
    decodable: bool,
}

impl<'a> From<StTensor<'a>> for Row<'a> {
    fn from(StTensor { part, info }: StTensor<'a>) -> Self {
        Self {
            name: info.name(),
            dtype: info.dtype().tag(),
            shape: info.shape(),
            elements: info.elements(),
            bytes: info.byte_len(),
            bits_per_weight: bits_per_weight(info.byte_len(), info.elements()),
            offset: info.file_range().start,
            part,
            decodable: format_of(info.dtype()).is_ok(),
        }
    }
}

/// All tensors of a checkpoint, one after the other.
pub(in crate::look) struct Rows<'a>(pub(in crate::look) &'a Checkpoint);

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut seq = s.serialize_seq(None)?;
        for tensor in self.0.tensors() {
            seq.serialize_element(&Row::from(tensor))?;
        }
        seq.end()
    }
}

pub(super) fn run(args: &TensorsArgs, out: &mut dyn Write) -> Result<Outcome, Error> {
    let checkpoint = args.input.open_checkpoint()?;
    if args.input.json {
        json::write(out, &Rows(&checkpoint))?;
    } else {
        write(&checkpoint, out, "")?;
    }
    Ok(Outcome::Ok)
}

/// Writes the table of all tensors.
pub(in crate::look) fn write(
    checkpoint: &Checkpoint,
    out: &mut dyn Write,
    indent: &str,
) -> Result<(), Error> {
    let sharded = checkpoint.parts().len() > 1;
    let part = if sharded { "part" } else { "" };
    let mut rows = vec![["name", "dtype", "shape", "bytes", "offset", part].map(String::from)];
    for StTensor { part, info } in checkpoint.tensors() {
        rows.push([
            Text(info.name().as_bytes()).to_string(),
            info.dtype().to_string(),
            shape(info.shape()),
            info.byte_len().to_string(),
            format!("{:#x}", info.file_range().start),
            if sharded { (part + 1).to_string() } else { String::new() },
        ]);
    }
    let (left, right) = (Align::Left, Align::Right);
    Ok(table::write(out, indent, [left, left, right, right, right, right], &rows)?)
}

//! `tensors`: the directory of a model.

pub(super) mod checkpoint;

use std::io::Write;

use gguf_mmap::{Model, ModelTensor};
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

use super::Input;
use super::json;
use super::planes;
use super::table::{self, Align};
use super::text::{Text, bits_per_weight, shape};
use crate::ptqtp::{VERSION_KEY, parse_plane_name};
use crate::st::is_checkpoint;
use crate::{Error, Outcome};

/// The arguments of `tensors`.
#[derive(Debug, clap::Args)]
pub struct TensorsArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields document themselves")]
    pub input: Input,
}

/// One tensor, as JSON has it.
#[derive(Serialize)]
pub(crate) struct Row<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    ty: String,
    type_id: u32,
    /// In ggml's order: the row length first.
    dims: Vec<u64>,
    elements: u64,
    bytes: u64,
    bits_per_weight: f64,
    /// In the file, from its start.
    offset: u64,
    part: usize,
    decodable: bool,
    /// The tensor that this is a plane of.
    #[serde(skip_serializing_if = "Option::is_none")]
    plane_of: Option<&'a str>,
    /// Which of its planes.
    #[serde(skip_serializing_if = "Option::is_none")]
    plane: Option<usize>,
}

impl<'a> From<&ModelTensor<'a>> for Row<'a> {
    fn from(tensor: &ModelTensor<'a>) -> Self {
        let info = &tensor.info;
        Self {
            name: info.name(),
            ty: info.ty().to_string(),
            type_id: info.ty().0,
            dims: info.dims().to_vec(),
            elements: info.elements(),
            bytes: info.byte_len(),
            bits_per_weight: bits_per_weight(info.byte_len(), info.elements()),
            offset: info.file_offset(),
            part: tensor.part,
            decodable: info.decodable(),
            plane_of: None,
            plane: None,
        }
    }
}

/// All tensors of a model, one after the other.
pub(crate) struct Rows<'a>(pub(crate) &'a Model);

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut seq = s.serialize_seq(None)?;
        let has_planes = self.0.gguf().get(VERSION_KEY).is_some();
        for tensor in self.0.tensors() {
            let mut row = Row::from(&tensor);
            if let Some((base, plane)) = parse_plane_name(row.name).filter(|_| has_planes) {
                (row.plane_of, row.plane) = (Some(base), Some(plane));
            }
            seq.serialize_element(&row)?;
        }
        seq.end()
    }
}

/// Runs the command, writing to `out`.
///
/// # Errors
/// When the file cannot be read or `out` not written.
pub fn run(args: &TensorsArgs, out: &mut dyn Write) -> Result<Outcome, Error> {
    if is_checkpoint(&args.input.file) {
        return checkpoint::run(args, out);
    }
    let model = args.input.open()?;
    if args.input.json {
        json::write(out, &Rows(&model))?;
    } else {
        write(&model, out, "")?;
        planes::write(&planes::of(&model), out, "")?;
    }
    Ok(Outcome::Ok)
}

/// Writes the table of all tensors.
pub(crate) fn write(model: &Model, out: &mut dyn Write, indent: &str) -> Result<(), Error> {
    let mut rows = vec![["name", "type", "shape", "bytes", "offset", "part"].map(String::from)];
    for tensor in model.tensors() {
        let info = &tensor.info;
        rows.push([
            Text(info.name().as_bytes()).to_string(),
            info.ty().to_string(),
            shape(info.dims()),
            info.byte_len().to_string(),
            format!("{:#x}", info.file_offset()),
            if model.is_split() { (tensor.part + 1).to_string() } else { String::new() },
        ]);
    }
    if !model.is_split() {
        rows[0][5].clear();
    }
    let (left, right) = (Align::Left, Align::Right);
    Ok(table::write(out, indent, [left, left, right, right, right, right], &rows)?)
}

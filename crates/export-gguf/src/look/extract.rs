//! `extract`: one tensor as raw 32-bit floats.

mod checkpoint;

use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use ggml_blocks::Format;
use gguf_mmap::{Model, ModelTensor};
use serde::Serialize;

use super::Input;
use super::json;
use super::text::{Size, Text, shape};
use crate::atomic::{Staged, Target};
use crate::st::is_checkpoint;
use crate::{Cancel, Error, Outcome};

/// Weights decoded at a time, rounded down to whole blocks.
const CHUNK: usize = 1 << 20;

/// Bytes before a chunk that are released with it: the page that the chunk before could not release whole.
const RELEASE_BACK: usize = 64 << 10;

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

    /// Where to write the values: little-endian 32-bit floats, row after row; `-` is standard output
    ///
    /// Example: `export-gguf extract model.gguf output.weight -o out.f32`
    #[arg(short, long, value_name = "FILE")]
    pub out: PathBuf,

    /// Only these rows, counted from 0, the end excluded; either may be left out
    ///
    /// Example: `export-gguf extract model.gguf output.weight -o out.f32 --rows 0..16`
    #[arg(long, value_name = "A..B", value_parser = parse_rows)]
    pub rows: Option<Rows>,

    /// Replace an existing file
    ///
    /// Example: `export-gguf extract model.gguf output.weight -o out.f32 --force`
    #[arg(long)]
    pub force: bool,
}

/// The rows asked for: a start, and an end if one was given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rows {
    start: u64,
    end: Option<u64>,
}

impl Rows {
    /// These rows of a tensor that has `all`, or why it has them not.
    fn within(self, all: u64) -> Result<Range<u64>, String> {
        let rows = self.start..self.end.unwrap_or(all);
        if rows.end > all || rows.start > rows.end {
            let end = self.end.map_or_else(String::new, |end| end.to_string());
            return Err(format!("rows {}..{end} are not within its {all}", rows.start));
        }
        Ok(rows)
    }
}

fn parse_rows(text: &str) -> Result<Rows, String> {
    let (start, end) = text.split_once("..").ok_or("rows are A..B, such as 0..16")?;
    let number = |t: &str| t.parse::<u64>().map_err(|e| format!("{t:?} is no row number: {e}"));
    let start = if start.is_empty() { 0 } else { number(start)? };
    let end = if end.is_empty() { None } else { Some(number(end)?) };
    match end {
        Some(end) if end < start => Err(format!("rows end at {end}, before they start at {start}")),
        _ => Ok(Rows { start, end }),
    }
}

#[derive(Serialize)]
struct Report<'a> {
    tensor: &'a str,
    #[serde(rename = "type")]
    ty: String,
    dims: &'a [u64],
    rows: Range<u64>,
    out: String,
    bytes: u64,
}

/// Runs the command, writing to `out`.
///
/// # Errors
/// When the file cannot be read, has no such tensor or rows, or the output cannot be written.
pub fn run(args: &ExtractArgs, out: &mut dyn Write) -> Result<Outcome, Error> {
    let to_stdout = args.out == Path::new("-");
    if to_stdout && args.input.json {
        return Err(Error::Usage("--json and -o - both want standard output".into()));
    }
    if is_checkpoint(&args.input.file) {
        return checkpoint::run(args, out);
    }
    let model = args.input.open()?;
    let part = Values::find(args, &model)?;
    if to_stdout {
        part.decode(|values, _| Ok(out.write_all(values)?))?;
        return Ok(Outcome::Ok);
    }
    let cancel = Cancel::on_signals()?;
    let inputs: Vec<PathBuf> = model.parts().iter().filter_map(|p| Some(p.path()?.to_path_buf())).collect();
    let target = Target { path: args.out.clone(), len: part.len };
    let staged = Staged::create(&[target], args.force, &inputs)?;
    part.decode(|values, at| {
        cancel.check()?;
        staged.write_at(0, values, at)
    })?;
    staged.commit(&cancel)?;
    let info = &part.tensor.info;
    let report = Report {
        tensor: info.name(),
        ty: info.ty().to_string(),
        dims: info.dims(),
        rows: part.rows.clone(),
        out: args.out.display().to_string(),
        bytes: part.len,
    };
    if args.input.json {
        json::write(out, &report)?;
    } else {
        report.write(out)?;
    }
    Ok(Outcome::Ok)
}

impl Report<'_> {
    fn write(&self, out: &mut dyn Write) -> Result<(), Error> {
        let Range { start, end } = self.rows;
        let (name, dims, size) = (Text(self.tensor.as_bytes()), shape(self.dims), Size(self.bytes));
        Ok(writeln!(out, "{name} ({}, {dims}) rows {start}..{end} -> {}, {size}", self.ty, self.out)?)
    }
}

/// The rows of a tensor that are to be decoded.
struct Values<'a> {
    model: &'a Model,
    tensor: ModelTensor<'a>,
    format: &'static Format,
    rows: Range<u64>,
    blocks: Range<usize>,
    /// In bytes, once decoded.
    len: u64,
}

impl<'a> Values<'a> {
    fn find(args: &ExtractArgs, model: &'a Model) -> Result<Self, Error> {
        let shown = Text(args.tensor.as_bytes()).to_string();
        let Some(tensor) = model.tensor(&args.tensor) else {
            let file = args.input.file.display();
            return Err(Error::Refused(format!("{file}: no tensor {shown}; `tensors` lists all")));
        };
        let refused = |problem: String| Error::tensor(shown.clone(), problem).in_file(&args.input.file);
        let info = tensor.info;
        let format = Format::of(info.ty()).filter(|_| info.decodable()).ok_or_else(|| {
            let name = info.ty().name().map_or_else(String::new, |n| format!(" ({n})"));
            refused(format!("type id {}{name} cannot be decoded", info.ty().0))
        })?;
        let rows = args.rows.unwrap_or_default().within(info.rows()).map_err(refused)?;
        let too_large = || refused("too large for this machine".into());
        let per_row = info.row_len() / u64::from(info.block_len());
        let block = |row: u64| usize::try_from(row.checked_mul(per_row)?).ok();
        let blocks = block(rows.start).zip(block(rows.end)).ok_or_else(too_large)?;
        let len = (rows.end - rows.start).checked_mul(info.row_len()).and_then(|n| n.checked_mul(4));
        let len = len.ok_or_else(too_large)?;
        Ok(Self { model, tensor, format, rows, blocks: blocks.0..blocks.1, len })
    }

    /// Decodes chunk by chunk; `put` gets the bytes and where they belong. The source is released behind.
    fn decode(&self, mut put: impl FnMut(&[u8], u64) -> Result<(), Error>) -> Result<(), Error> {
        let name = || Text(self.tensor.info.name().as_bytes()).to_string();
        let source = self.model.bytes(&self.tensor);
        let source = source.ok_or_else(|| Error::tensor(name(), "its bytes are not in the file"))?;
        let (len, size) = (self.format.block_len(), self.format.block_bytes());
        let step = (CHUNK / len).max(1);
        let mut values = vec![0.0_f32; step.min(self.blocks.len()) * len];
        let mut at = 0;
        for start in self.blocks.clone().step_by(step) {
            let blocks = start..self.blocks.end.min(start + step);
            let values = &mut values[..blocks.len() * len];
            let read = (blocks.start * size).saturating_sub(RELEASE_BACK)..blocks.end * size;
            self.format
                .decode_range(&source, blocks, values)
                .map_err(|e| Error::tensor(name(), e.to_string()))?;
            to_le(values);
            let bytes: &[u8] = bytemuck::cast_slice(values);
            put(bytes, at)?;
            at += bytes.len() as u64;
            if let Some(read) = source.slice(read.start as u64..read.end as u64) {
                read.release();
            }
        }
        Ok(())
    }
}

/// Swaps the bytes of each value where the machine's order is not the file's.
fn to_le(values: &mut [f32]) {
    if cfg!(target_endian = "big") {
        for v in values {
            *v = f32::from_bits(v.to_bits().swap_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_a_start_and_perhaps_an_end() {
        assert_eq!(parse_rows("2..16"), Ok(Rows { start: 2, end: Some(16) }));
        assert_eq!(parse_rows("..3"), Ok(Rows { start: 0, end: Some(3) }));
        assert_eq!(parse_rows("7.."), Ok(Rows { start: 7, end: None }));
        assert_eq!(parse_rows(".."), Ok(Rows { start: 0, end: None }));
        for wrong in ["", "5", "a..b", "3..2", "-1..2", "1...2", "0..99999999999999999999"] {
            assert!(parse_rows(wrong).is_err(), "{wrong}");
        }
    }
}

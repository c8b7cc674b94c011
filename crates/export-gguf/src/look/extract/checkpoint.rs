//! `extract` from a safetensors checkpoint.

use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::super::json;
use super::super::text::Text;
use super::{CHUNK, ExtractArgs, Report, to_le};
use crate::atomic::{Staged, Target};
use crate::st::{Checkpoint, StTensor, format_of};
use crate::{Cancel, Error, Outcome};

/// Runs the command; the arguments are known to make sense.
pub(super) fn run(args: &ExtractArgs, out: &mut dyn Write) -> Result<Outcome, Error> {
    let checkpoint = args.input.open_checkpoint()?;
    let part = Values::find(args, &checkpoint)?;
    if args.out == Path::new("-") {
        part.decode(|values, _| Ok(out.write_all(values)?))?;
        return Ok(Outcome::Ok);
    }
    let cancel = Cancel::on_signals()?;
    let files = checkpoint.parts().iter().map(|p| p.path().to_path_buf());
    let inputs: Vec<PathBuf> = files.chain([args.input.file.clone()]).collect();
    let target = Target { path: args.out.clone(), len: part.len };
    let staged = Staged::create(&[target], args.force, &inputs)?;
    part.decode(|values, at| {
        cancel.check()?;
        staged.write_at(0, values, at)
    })?;
    staged.commit(&cancel)?;
    let info = part.tensor.info;
    let dims: Vec<u64> = info.shape().iter().rev().copied().collect();
    let report = Report {
        tensor: info.name(),
        ty: info.dtype().to_string(),
        dims: &dims,
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

/// The rows of a tensor that are to be decoded: the last axis is a row, a scalar is a row of one.
struct Values<'a> {
    checkpoint: &'a Checkpoint,
    tensor: StTensor<'a>,
    rows: Range<u64>,
    elements: Range<u64>,
    /// In bytes, once decoded.
    len: u64,
}

impl<'a> Values<'a> {
    fn find(args: &ExtractArgs, checkpoint: &'a Checkpoint) -> Result<Self, Error> {
        let shown = Text(args.tensor.as_bytes()).to_string();
        let Some(tensor) = checkpoint.tensor(&args.tensor) else {
            let file = args.input.file.display();
            return Err(Error::Refused(format!("{file}: no tensor {shown}; `tensors` lists all")));
        };
        let refused = |problem: String| Error::tensor(shown.clone(), problem).in_file(&args.input.file);
        format_of(tensor.info.dtype()).map_err(|e| refused(e.to_string()))?;
        let row_len = tensor.info.shape().last().copied().unwrap_or(1);
        let all = tensor.info.elements().checked_div(row_len).unwrap_or(0);
        let rows = args.rows.unwrap_or_default().within(all).map_err(refused)?;
        // The rows are within a tensor in memory, so nothing below leaves 64 bits but the last product.
        let elements = rows.start * row_len..rows.end * row_len;
        let len = (elements.end - elements.start).checked_mul(4);
        let len = len.ok_or_else(|| refused("too large for this machine".into()))?;
        Ok(Self { checkpoint, tensor, rows, elements, len })
    }

    /// Decodes chunk by chunk; `put` gets the bytes and where they belong. The source is released behind.
    fn decode(&self, mut put: impl FnMut(&[u8], u64) -> Result<(), Error>) -> Result<(), Error> {
        let element = self.tensor.info.dtype().bits() / 8;
        let mut values = vec![0.0_f32; CHUNK];
        let (mut start, mut at) = (self.elements.start, 0);
        while start < self.elements.end {
            let count = (self.elements.end - start).min(CHUNK as u64);
            let values = &mut values[..count as usize];
            self.checkpoint.values(&self.tensor, start, values)?;
            to_le(values);
            let bytes: &[u8] = bytemuck::cast_slice(values);
            put(bytes, at)?;
            at += bytes.len() as u64;
            self.checkpoint.release(&self.tensor, start * element..(start + count) * element);
            start += count;
        }
        Ok(())
    }
}

//! What one thread does.

use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use ggml_blocks::{EncodeError, Format};

use super::chunk::{Job, Work, bytes_of};
use super::flush::{EVERY, Flusher};
use super::overflow::{Limit, Overflow};
use super::{Shared, Tally, solve, weights};
use crate::Error;
use crate::plan::Step;

/// Values are decoded and encoded in strips of this many, so that they stay in the nearest cache.
/// A multiple of every block length.
const STRIP: usize = 4096;

/// How many chunks ahead the source is told to read.
const AHEAD: usize = 8;

/// One thread's buffers.
struct Buffers {
    values: Vec<f32>,
    decoded: Vec<f32>,
    bytes: Vec<u8>,
    planes: solve::Buffers,
}

/// Takes chunks in order until there are none.
pub(super) fn work(shared: &Shared<'_>, flusher: &Flusher) {
    let mut buffers = Buffers {
        values: vec![0.0; STRIP],
        decoded: vec![0.0; STRIP],
        bytes: Vec::new(),
        planes: solve::Buffers::default(),
    };
    loop {
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        if number >= shared.end.load(Ordering::Relaxed) {
            return;
        }
        let Some((job, range)) = shared.jobs.get(number) else { return };
        if let Some((ahead, range)) = shared.jobs.get(number + AHEAD) {
            shared.source.prefetch(ahead.step.source, source_bytes(ahead, range));
        }
        let done =
            shared.cancel.check().and_then(|()| chunk(shared, flusher, &mut buffers, job, range.clone()));
        match done {
            Err(error) => return shared.fail(number, error),
            Ok(tally) => {
                if tally.overflows > 0 && shared.options.overflow == Overflow::Refuse {
                    // The tensor is read to its end for the full count; nothing after it is.
                    shared.end.fetch_min(shared.jobs.job_end(number), Ordering::Relaxed);
                }
                let mut tallies = shared.tallies.lock().unwrap_or_else(PoisonError::into_inner);
                tallies.add(number, job.number, tally);
            }
        }
        let read = source_bytes(job, range);
        shared.observer.advance(read.end - read.start);
        shared.source.release(job.step.source, read);
    }
}

/// The source bytes of a chunk.
fn source_bytes(job: &Job<'_>, range: Range<u64>) -> Range<u64> {
    match job.work {
        Work::Copy(_) => range,
        Work::Encode(_) | Work::Solve(_) => bytes_of(job.step.from, range),
    }
}

fn chunk(
    shared: &Shared<'_>,
    flusher: &Flusher,
    buffers: &mut Buffers,
    job: &Job<'_>,
    range: Range<u64>,
) -> Result<Tally, Error> {
    let mut tally = Tally::default();
    let (bytes, at) = match job.work {
        Work::Solve(_) => {
            let (tally, len) = solve::solve(shared, &mut buffers.planes, job, range)?;
            written(shared, flusher, job.planes.last().map_or(job.file, |(file, _)| *file), len);
            return Ok(tally);
        }
        Work::Copy(_) => {
            let gone = || Error::tensor(&job.step.name, "its bytes are not in the file any more");
            (shared.source.bytes(job.step.source, range.clone()).ok_or_else(gone)?, range.start)
        }
        Work::Encode(_) => {
            tally = encode(shared, buffers, job, range.clone())?;
            (buffers.bytes.as_slice(), bytes_of(job.step.to, range).start)
        }
    };
    shared.staged.write_at(job.file, bytes, job.offset + at)?;
    written(shared, flusher, job.file, bytes.len() as u64);
    Ok(tally)
}

/// Counts bytes handed to the system, and asks for write-back every so often.
fn written(shared: &Shared<'_>, flusher: &Flusher, file: usize, len: u64) {
    let before = shared.written.fetch_add(len, Ordering::Relaxed);
    if before / EVERY != (before + len) / EVERY {
        flusher.flush(file);
    }
}

/// Encodes a range of elements into the byte buffer, strip by strip.
fn encode(
    shared: &Shared<'_>,
    buffers: &mut Buffers,
    job: &Job<'_>,
    range: Range<u64>,
) -> Result<Tally, Error> {
    let step = job.step;
    let Some(format) = Format::of(step.to) else {
        return Err(Error::tensor(&step.name, format!("no encoder for {}", step.to)));
    };
    let limit = Limit::of(step.to);
    let measured = shared.options.measure;
    let (block_len, block_bytes) = (format.block_len(), format.block_bytes());
    let weights = shared.weights.of(job)?;
    let strip = if weights.is_some() { row_strip(step) } else { STRIP };
    buffers.values.resize(strip, 0.0);
    let mut tally = Tally::default();
    buffers.bytes.clear();
    let mut start = range.start;
    while start < range.end {
        // A strip is at most `strip` long.
        let len = (range.end - start).min(strip as u64) as usize;
        let values = &mut buffers.values[..len];
        shared.source.values(step.source, start, values)?;
        if let Some(limit) = limit {
            limit.apply(values, shared.options.overflow, &mut tally);
        }
        let at = buffers.bytes.len();
        buffers.bytes.resize(at + len / block_len * block_bytes, 0);
        let out = &mut buffers.bytes[at..];
        match &weights {
            Some(weights) => weights::encode(format, &step.dims, start, values, weights, out),
            // Without importance every block stands for itself, so any whole blocks may pass as a row.
            None => format.encode_rows(values, len, None, out),
        }
        .map_err(|e| refusal(job, start, e))?;
        if measured {
            // A longer strip is read back in pieces that stay in the nearest cache.
            for (values, out) in values.chunks(STRIP).zip(out.chunks(STRIP / block_len * block_bytes)) {
                let stored = &mut buffers.decoded[..values.len()];
                format
                    .decode_rows(out, values.len(), stored)
                    .map_err(|e| Error::tensor(&step.name, format!("cannot read back {}: {e}", step.to)))?;
                tally.compare(values, stored);
            }
        }
        start += len as u64;
    }
    if !measured {
        // What clamping cost alone would be no error of the tensor.
        (tally.error, tally.power) = (0.0, 0.0);
    }
    Ok(tally)
}

/// The strip for encoding by rows: as many whole rows as fill the encoders' lanes, at least one.
fn row_strip(step: &Step) -> usize {
    const MOST: usize = 16 * STRIP;
    let row_len = step.dims.first().map_or(1, |&n| usize::try_from(n).unwrap_or(usize::MAX)).max(1);
    (MOST / row_len).max(1) * row_len
}

/// The encoder's objection with its place in the tensor.
fn refusal(job: &Job<'_>, start: u64, error: EncodeError) -> Error {
    let step = job.step;
    let row_len = step.dims.first().copied().unwrap_or(1).max(1);
    let place = |index: usize| {
        let at = start + index as u64;
        format!("element {at} (row {}, column {})", at / row_len, at % row_len)
    };
    let problem = match error {
        EncodeError::NonFinite { index, value } => format!(
            "{value} at {} is not finite and {} has no form for it; repair the model, or copy it verbatim",
            place(index),
            step.to
        ),
        EncodeError::Unrepresentable { index, .. } => format!(
            "the values of the block at {} are too large for a {} scale; use --dtype bf16 or f32",
            place(index),
            step.to
        ),
        other => format!("cannot encode {}: {other}", step.to),
    };
    Error::tensor(&step.name, problem)
}

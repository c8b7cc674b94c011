//! Cutting the work.

use std::ops::Range;

use gguf_format::GgmlType;

use crate::emit::OutputFile;
use crate::plan::{Plan, Step, Weighting};
use crate::source::Source;

/// Elements per chunk by default: a megabyte as 32-bit floats.
pub const CHUNK_ELEMENTS: u64 = 256 * 1024;

/// One step of the plan with its place in the output.
#[derive(Debug)]
pub(super) struct Job<'a> {
    pub(super) step: &'a Step,
    /// The step's number in the plan.
    pub(super) number: usize,
    /// Which output file, and where in it.
    pub(super) file: usize,
    pub(super) offset: u64,
    pub(super) work: Work,
    /// The number of the job's first chunk.
    first: usize,
}

/// How a job's bytes come about, with the size of its chunks.
#[derive(Debug, Clone, Copy)]
pub(super) enum Work {
    /// Copied, so many bytes at a time.
    Copy(u64),
    /// Encoded, so many elements at a time.
    Encode(u64),
}

/// All jobs, and the chunks they are made of; chunks are computed when they are asked for.
#[derive(Debug)]
pub(super) struct Jobs<'a> {
    jobs: Vec<Job<'a>>,
    chunks: usize,
}

impl<'a> Jobs<'a> {
    pub(super) fn new(plan: &'a Plan, files: &[OutputFile], source: &dyn Source, chunk: u64) -> Self {
        // Every block length divides 256, so that whole chunks are whole blocks.
        let chunk = chunk.next_multiple_of(256).max(256);
        let mut jobs = Vec::with_capacity(plan.steps.len());
        let mut first = 0;
        for (file, output) in files.iter().enumerate() {
            for (number, place) in output.steps.clone().zip(output.layout.tensors()) {
                let step = &plan.steps[number];
                let stored = source.bytes(step.source, 0..0).is_some();
                let (work, len) = if step.from == step.to && stored {
                    (Work::Copy(chunk * 4), step.bytes_after)
                } else {
                    (Work::Encode(encode_chunk(step, chunk)), step.dims.iter().product())
                };
                let (Work::Copy(size) | Work::Encode(size)) = work;
                jobs.push(Job { step, number, file, offset: place.file_offset, work, first });
                // More chunks than `usize` counts would not fit any disk.
                first += usize::try_from(len.div_ceil(size)).unwrap_or(usize::MAX / 2);
            }
        }
        Self { jobs, chunks: first }
    }

    /// How many chunks there are.
    pub(super) fn chunks(&self) -> usize {
        self.chunks
    }

    /// The job of a chunk, and the chunk's range in it: in bytes to copy, in elements to encode.
    pub(super) fn get(&self, chunk: usize) -> Option<(&Job<'a>, Range<u64>)> {
        if chunk >= self.chunks {
            return None;
        }
        // Jobs without chunks share their first with the next job; the last of them has it.
        let at = self.jobs.partition_point(|j| j.first <= chunk).checked_sub(1)?;
        let job = &self.jobs[at];
        let (size, len) = match job.work {
            Work::Copy(size) => (size, job.step.bytes_after),
            Work::Encode(size) => (size, job.step.dims.iter().product()),
        };
        let start = (chunk - job.first) as u64 * size;
        Some((job, start..(start + size).min(len)))
    }

    /// One past the last chunk of the job that `chunk` belongs to.
    pub(super) fn job_end(&self, chunk: usize) -> usize {
        let next = self.jobs.partition_point(|j| j.first <= chunk);
        self.jobs.get(next).map_or(self.chunks, |j| j.first)
    }
}

/// The elements of a step's chunks. With importance a chunk is whole rows, however long: some encoders
/// take the mean square of the row into account. The matrix has as many values as a row, so that memory
/// stays in proportion to what was read.
fn encode_chunk(step: &Step, chunk: u64) -> u64 {
    let row_len = step.dims.first().copied().unwrap_or(1).max(1);
    if step.weighting == Weighting::None { chunk } else { (chunk / row_len).max(1) * row_len }
}

/// The bytes of `elements` elements of type `ty`, which are whole blocks.
pub(super) fn bytes_of(ty: GgmlType, elements: Range<u64>) -> Range<u64> {
    let bytes = |n| ty.row_bytes(n).unwrap_or(0);
    bytes(elements.start)..bytes(elements.end)
}

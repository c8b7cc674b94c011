//! Cutting the work.

use std::ops::Range;

use gguf_format::GgmlType;

use crate::emit::OutputFile;
use crate::plan::{Plan, Step, Weighting, Why};
use crate::ptqtp::Choice;
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
    /// Of a tensor that becomes planes, each plane's file and place: the step's own, and those of the
    /// steps behind it.
    pub(super) planes: Vec<(usize, u64)>,
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
    /// Decomposed into planes, so many elements at a time and never of two matrices.
    Solve(u64),
}

impl Job<'_> {
    /// Elements of one matrix of the tensor; at least 1.
    pub(super) fn matrix_len(&self) -> u64 {
        self.step.dims.iter().take(2).product::<u64>().max(1)
    }

    /// The job's length, in bytes to copy or in elements.
    fn len(&self) -> u64 {
        match self.work {
            Work::Copy(_) => self.step.bytes_after,
            Work::Encode(_) | Work::Solve(_) => self.step.dims.iter().product(),
        }
    }

    fn chunks(&self) -> u64 {
        match self.work {
            Work::Copy(size) | Work::Encode(size) => self.len().div_ceil(size),
            Work::Solve(size) => self.len() / self.matrix_len() * self.matrix_len().div_ceil(size),
        }
    }

    /// The range of the job's `nth` chunk.
    fn range(&self, nth: u64) -> Range<u64> {
        match self.work {
            Work::Copy(size) | Work::Encode(size) => nth * size..((nth + 1) * size).min(self.len()),
            Work::Solve(size) => {
                let (matrix, each) = (self.matrix_len(), self.matrix_len().div_ceil(size));
                let (first, at) = (nth / each * matrix, nth % each * size);
                first + at..first + (at + size).min(matrix)
            }
        }
    }
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
        let mut jobs: Vec<Job<'_>> = Vec::with_capacity(plan.steps.len());
        let mut first = 0;
        for (file, output) in files.iter().enumerate() {
            for (number, place) in output.steps.clone().zip(output.layout.tensors()) {
                let step = &plan.steps[number];
                let stored = source.bytes(step.source, 0..0).is_some();
                let offset = place.file_offset;
                let mut planes = Vec::new();
                let work = match step.why {
                    Why::Trits(Choice::Plane { index: 1.., .. }) => {
                        if let Some(Job { planes, .. }) = jobs.last_mut() {
                            planes.push((file, offset));
                        }
                        continue;
                    }
                    Why::Trits(Choice::Plane { .. }) => {
                        planes.push((file, offset));
                        Work::Solve(chunk)
                    }
                    _ if step.from == step.to && stored => Work::Copy(chunk * 4),
                    _ => Work::Encode(encode_chunk(step, chunk)),
                };
                let job = Job { step, number, file, offset, work, planes, first };
                // More chunks than `usize` counts would not fit any disk.
                first += usize::try_from(job.chunks()).unwrap_or(usize::MAX / 2);
                jobs.push(job);
            }
        }
        Self { jobs, chunks: first }
    }

    /// How many chunks there are.
    pub(super) fn chunks(&self) -> usize {
        self.chunks
    }

    /// The job of a chunk, and the chunk's range in it: in bytes to copy, in elements otherwise.
    pub(super) fn get(&self, chunk: usize) -> Option<(&Job<'a>, Range<u64>)> {
        if chunk >= self.chunks {
            return None;
        }
        // Jobs without chunks share their first with the next job; the last of them has it.
        let at = self.jobs.partition_point(|j| j.first <= chunk).checked_sub(1)?;
        let job = &self.jobs[at];
        Some((job, job.range((chunk - job.first) as u64)))
    }

    /// One past the last chunk of the job that `chunk` belongs to.
    pub(super) fn job_end(&self, chunk: usize) -> usize {
        let next = self.jobs.partition_point(|j| j.first <= chunk);
        self.jobs.get(next).map_or(self.chunks, |j| j.first)
    }
}

/// The elements of a step's chunks. With importance a chunk is whole rows, however long: some encoders
/// take the mean square of the row into account. The plan has bounded its length.
fn encode_chunk(step: &Step, chunk: u64) -> u64 {
    let row_len = step.dims.first().copied().unwrap_or(1).max(1);
    if step.weighting == Weighting::None { chunk } else { (chunk / row_len).max(1) * row_len }
}

/// The bytes of `elements` elements of type `ty`, which are whole blocks.
pub(super) fn bytes_of(ty: GgmlType, elements: Range<u64>) -> Range<u64> {
    let bytes = |n| ty.row_bytes(n).unwrap_or(0);
    bytes(elements.start)..bytes(elements.end)
}

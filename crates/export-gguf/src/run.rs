//! Carries out a plan: streams every tensor from the source into the output files.
//!
//! Work is cut into chunks of a bounded number of elements across all tensors, and threads take
//! them in order, so that neither a huge tensor nor a thousand small ones leave a core idle. Each
//! thread owns one buffer of values and one of bytes; nothing else grows with the model. Where a
//! chunk goes is known beforehand, so the bytes do not depend on who writes it when.

mod chunk;
mod flush;
mod overflow;
mod solve;
mod tally;
mod weights;
mod worker;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::atomic::{Staged, Target};
use crate::emit::OutputFile;
use crate::imatrix::Imatrix;
use crate::plan::Plan;
use crate::ptqtp::Statistics;
use crate::source::Source;
use crate::{Cancel, Error};

pub use chunk::CHUNK_ELEMENTS;
pub use overflow::Overflow;
pub use tally::Tally;

/// The most threads that are started: each holds a chunk in memory.
pub const MAX_THREADS: usize = 256;

/// How to run.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// Worker threads: no more are started than there are chunks, nor than [`MAX_THREADS`].
    pub threads: NonZeroUsize,
    /// What to do with values that the target's range does not hold.
    pub overflow: Overflow,
    /// Replace existing files.
    pub force: bool,
    /// Decode what was encoded, for the error of each tensor.
    pub measure: bool,
    /// Elements per chunk; the bytes do not depend on it. A multiple of every block length.
    pub chunk: u64,
    /// Files that were read besides the source: no output may replace them.
    pub inputs: &'a [PathBuf],
}

impl Default for Options<'_> {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self {
            threads,
            overflow: Overflow::Refuse,
            force: false,
            measure: true,
            chunk: CHUNK_ELEMENTS,
            inputs: &[],
        }
    }
}

/// Hears how far the work is, from any thread.
pub trait Observer: Sync {
    /// So many more bytes of source data are done.
    fn advance(&self, bytes: u64);

    /// Trit-planes were found for a piece of a step's matrix, which begins at element `start` of the
    /// tensor.
    fn solved(&self, _step: usize, _matrix: u64, _start: u64, _found: &Statistics) {}
}

impl Observer for () {
    fn advance(&self, _bytes: u64) {}
}

/// Writes `files`, the layout of `plan`, from `source`, weighing with `imatrix` what the plan says. On
/// success the files are in place; what happened to each step comes back in the plan's order.
///
/// # Errors
/// When a value or the system objects, or `cancel` is set; every target is then as it was.
pub fn run(
    plan: &Plan,
    files: &[OutputFile],
    source: &dyn Source,
    imatrix: Option<&Imatrix>,
    options: Options<'_>,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Result<Vec<Tally>, Error> {
    let targets: Vec<Target> =
        files.iter().map(|f| Target { path: f.path.clone(), len: f.layout.total_len() }).collect();
    let mut inputs = source.inputs();
    inputs.extend(imatrix.and_then(Imatrix::path).map(std::path::Path::to_path_buf));
    inputs.extend_from_slice(options.inputs);
    let staged = Staged::create(&targets, options.force, &inputs)?;
    for (i, file) in files.iter().enumerate() {
        staged.write_at(i, file.layout.header(), 0)?;
    }
    let jobs = chunk::Jobs::new(plan, files, source, options.chunk);
    let shared = Shared {
        source,
        staged: &staged,
        jobs: &jobs,
        weights: weights::Weights::new(imatrix),
        options,
        observer,
        cancel,
        next: AtomicUsize::new(0),
        end: AtomicUsize::new(jobs.chunks()),
        written: AtomicU64::new(0),
        failure: Mutex::new(None),
        tallies: Mutex::new(tally::InOrder::new(plan.steps.len())),
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads.get().min(jobs.chunks()).clamp(1, MAX_THREADS))
        .build()
        .map_err(|e| Error::Refused(format!("cannot start {} threads: {e}", options.threads)))?;
    flush::with_flusher(&staged, |flusher| {
        pool.broadcast(|_| worker::work(&shared, flusher));
    });
    if let Some((_, error)) = shared.failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        return Err(error);
    }
    cancel.check()?;
    let tallies = shared.tallies.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).into_steps();
    overflow::refuse(plan, &tallies, options.overflow)?;
    staged.commit(cancel)?;
    Ok(tallies)
}

/// What the workers of one run share.
struct Shared<'a> {
    source: &'a dyn Source,
    staged: &'a Staged,
    jobs: &'a chunk::Jobs<'a>,
    weights: weights::Weights<'a>,
    options: Options<'a>,
    observer: &'a dyn Observer,
    cancel: &'a Cancel,
    /// The next chunk to take.
    next: AtomicUsize,
    /// Chunks from here on are not taken any more: lowered by whoever fails.
    end: AtomicUsize,
    /// Bytes handed to the system so far.
    written: AtomicU64,
    /// The failure of the lowest chunk, which does not depend on timing: chunks are taken in
    /// order, so all below it were taken and report.
    failure: Mutex<Option<(usize, Error)>>,
    tallies: Mutex<tally::InOrder>,
}

impl Shared<'_> {
    fn fail(&self, chunk: usize, error: Error) {
        self.end.fetch_min(chunk, Ordering::Relaxed);
        let mut failure = self.failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if failure.as_ref().is_none_or(|(at, _)| chunk < *at) {
            *failure = Some((chunk, error));
        }
    }
}

//! The output files of a plan: their headers, and where each tensor's data goes.

use std::ops::Range;
use std::path::{Path, PathBuf};

use gguf_format::{Builder, Layout, WriteError};

use crate::Error;
use crate::plan::{Plan, Step, human_bytes};
use crate::source::Source;

/// How to cut the output into several files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// No file holds more than this many bytes of padded tensor data.
    pub max_bytes: u64,
    /// No file holds more than this many tensors.
    pub max_tensors: usize,
}

/// One file of the output.
#[derive(Debug, Clone)]
pub struct OutputFile {
    /// Its path.
    pub path: PathBuf,
    /// Its header and offsets.
    pub layout: Layout,
    /// Which steps of the plan are in it.
    pub steps: Range<usize>,
}

impl OutputFile {
    /// Path, size and number of tensors in JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "path": self.path.to_string_lossy(),
            "bytes": self.layout.total_len(),
            "tensors": self.steps.len(),
        })
    }
}

/// Lays out the output of `plan`: one file at `out`, or parts named after it.
///
/// The rules of splitting are llama-gguf-split's: all metadata in the first part, tensors in order,
/// a part ends before the tensor that would exceed a limit.
///
/// # Errors
/// When a tensor cannot be written, or a single one exceeds the split size.
pub fn lay_out(
    plan: &Plan,
    source: &dyn Source,
    out: &Path,
    split: Option<Split>,
) -> Result<Vec<OutputFile>, Error> {
    let mut metadata = source.metadata();
    for edit in &plan.keys {
        edit.apply(&mut metadata);
    }
    let alignment = source.alignment();
    let ranges = match (&plan.parts, split) {
        (Some(counts), _) if counts.len() > 1 => consecutive(counts),
        (None, Some(split)) => cut(&plan.steps, split, alignment)?,
        _ => {
            let layout = file(&plan.steps, source, metadata).map_err(unwritable(out))?;
            check_lengths(&plan.steps, &layout)?;
            return Ok(vec![OutputFile { path: out.to_path_buf(), layout, steps: 0..plan.steps.len() }]);
        }
    };
    let (Ok(count), Ok(total)) = (u16::try_from(ranges.len()), i32::try_from(plan.steps.len())) else {
        return Err(Error::Refused(format!(
            "{} parts with {} tensors are more than a split set can number; allow larger parts",
            ranges.len(),
            plan.steps.len()
        )));
    };
    let mut files = Vec::with_capacity(ranges.len());
    for (no, steps) in (0..count).zip(ranges) {
        let mut builder = if no == 0 { std::mem::take(&mut metadata) } else { Builder::new() };
        if no > 0 && alignment != gguf_format::DEFAULT_ALIGNMENT {
            // Each part is laid out, and read, by its own key.
            builder.align(alignment);
        }
        builder.set("split.no", no).set("split.count", count).set("split.tensors.count", total);
        let path = part_path(out, no + 1, count);
        let layout = file(&plan.steps[steps.clone()], source, builder).map_err(unwritable(&path))?;
        check_lengths(&plan.steps[steps.clone()], &layout)?;
        files.push(OutputFile { path, layout, steps });
    }
    Ok(files)
}

fn unwritable(path: &Path) -> impl FnOnce(WriteError) -> Error {
    Error::file(path)
}

fn file(steps: &[Step], source: &dyn Source, mut builder: Builder) -> Result<Layout, WriteError> {
    // Names that only other readers take were fit to be read, so they are fit to be written.
    builder.allow_long_names();
    for step in steps {
        let stored = &source.tensors()[step.source];
        if step.from == step.to && (step.name == stored.name && step.dims == stored.dims) {
            source.declare(step.source, &mut builder)?;
        } else {
            builder.tensor(&step.name, &step.dims, step.to)?;
        }
    }
    builder.layout()
}

/// The plan and the container must agree on every length, or data would run into its neighbour.
fn check_lengths(steps: &[Step], layout: &Layout) -> Result<(), Error> {
    for (step, place) in steps.iter().zip(layout.tensors()) {
        if place.byte_len != step.bytes_after {
            return Err(Error::tensor(
                &step.name,
                format!("{} bytes planned, {} in the layout", step.bytes_after, place.byte_len),
            ));
        }
    }
    Ok(())
}

/// Ranges of these lengths, one behind the other.
fn consecutive(counts: &[usize]) -> Vec<Range<usize>> {
    let mut end = 0;
    let mut next = |count| {
        let start = end;
        end += count;
        start..end
    };
    counts.iter().map(|&count| next(count)).collect()
}

/// Which steps go into which part.
fn cut(steps: &[Step], split: Split, alignment: u32) -> Result<Vec<Range<usize>>, Error> {
    let mut ranges = Vec::new();
    let (mut start, mut size) = (0, 0_u64);
    for (i, step) in steps.iter().enumerate() {
        let bytes = step.bytes_after.next_multiple_of(u64::from(alignment));
        if bytes > split.max_bytes {
            return Err(Error::tensor(
                &step.name,
                format!(
                    "{} do not fit into parts of at most {}; raise --split-max-size",
                    human_bytes(bytes),
                    human_bytes(split.max_bytes)
                ),
            ));
        }
        if i > start && (size.saturating_add(bytes) > split.max_bytes || i - start >= split.max_tensors) {
            ranges.push(start..i);
            (start, size) = (i, 0);
        }
        size += bytes;
    }
    ranges.push(start..steps.len());
    Ok(ranges)
}

/// `DIR/NAME-00001-of-00003.gguf` for `DIR/NAME.gguf` or `DIR/NAME`.
fn part_path(out: &Path, no: u16, count: u16) -> PathBuf {
    let is_gguf = out.extension().is_some_and(|e| e == "gguf");
    let stem = if is_gguf { out.file_stem() } else { out.file_name() };
    let mut name = stem.unwrap_or_default().to_os_string();
    name.push(format!("-{no:05}-of-{count:05}.gguf"));
    out.with_file_name(name)
}

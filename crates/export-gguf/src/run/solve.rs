//! Decomposing one chunk into trit-planes.
//!
//! Groups do not know of each other and every plane's place is known beforehand, so a chunk's blocks go
//! to their places in all planes at once; of a stack of experts no more is held than of any tensor.

use std::ops::Range;

use ggml_blocks::cast_blocks_mut;
use ggml_blocks::formats::tq2_0::Tq2_0;

use super::chunk::{Job, bytes_of};
use super::{Shared, Tally};
use crate::Error;
use crate::plan::Why;
use crate::ptqtp::{Choice, Options, quantize_groups};

/// One thread's buffers.
#[derive(Default)]
pub(super) struct Buffers {
    values: Vec<f32>,
    planes: Vec<Vec<u8>>,
}

/// Solves a range of elements of one matrix and writes its planes. Tells how many bytes were written.
pub(super) fn solve(
    shared: &Shared<'_>,
    buffers: &mut Buffers,
    job: &Job<'_>,
    range: Range<u64>,
) -> Result<(Tally, u64), Error> {
    let step = job.step;
    let Why::Trits(Choice::Plane { of, tied, .. }) = step.why else {
        return Err(Error::tensor(&step.name, "is no plane"));
    };
    let options = Options { tie_scales: tied, ..Options::with_planes(of) };
    let refused = |e: &dyn std::fmt::Display| Error::tensor(&step.name, e.to_string());
    // A chunk is at most `Options::chunk` elements.
    buffers.values.resize((range.end - range.start) as usize, 0.0);
    shared.source.values(step.source, range.start, &mut buffers.values)?;
    let place = bytes_of(step.to, range.clone());
    let len = place.end - place.start;
    buffers.planes.resize_with(of, Vec::new);
    for plane in &mut buffers.planes {
        plane.resize(len as usize, 0);
    }
    let blocks = buffers.planes.iter_mut().map(|bytes| cast_blocks_mut::<Tq2_0>(bytes));
    let mut blocks = blocks.collect::<Result<Vec<_>, _>>().map_err(|e| refused(&e))?;
    let found = quantize_groups(&buffers.values, &options, &mut blocks).map_err(|e| refused(&e))?;
    for ((file, offset), bytes) in job.planes.iter().zip(&buffers.planes) {
        shared.staged.write_at(*file, bytes, offset + place.start)?;
    }
    shared.observer.solved(job.number, range.start / job.matrix_len(), range.start, &found);
    let tally = Tally { error: found.error, power: found.power, ..Tally::default() };
    Ok((tally, len * of as u64))
}

//! The importance of the tensors at hand.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use ggml_blocks::{EncodeError, Format};

use super::chunk::Job;
use crate::Error;
use crate::imatrix::Imatrix;
use crate::plan::Weighting;

/// How many tensors' importance is kept: neighbours are in work at the same time.
const KEPT: usize = 4;

/// Hands out importance, computed once per tensor and forgotten when the work has moved on.
#[derive(Debug)]
pub(super) struct Weights<'a> {
    imatrix: Option<&'a Imatrix>,
    kept: Mutex<VecDeque<(usize, Arc<[f32]>)>>,
}

impl<'a> Weights<'a> {
    pub(super) fn new(imatrix: Option<&'a Imatrix>) -> Self {
        Self { imatrix, kept: Mutex::default() }
    }

    /// The importance of a job's tensor: a row for each of its matrices, `None` if it goes without.
    pub(super) fn of(&self, job: &Job<'_>) -> Result<Option<Arc<[f32]>>, Error> {
        let step = job.step;
        if step.weighting == Weighting::None {
            return Ok(None);
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = kept.iter().find(|(number, _)| *number == job.number) {
            return Ok(Some(found.clone()));
        }
        let row_len = step.dims.first().copied().unwrap_or(1);
        let experts = step.dims.iter().skip(2).product();
        let values = match (&step.weighting, self.imatrix) {
            (Weighting::Entry(name), Some(imatrix)) => {
                imatrix.importance(name, row_len, experts).map_err(|e| Error::Refused(e.to_string()))?
            }
            // One row of ones serves all matrices.
            _ => Some(vec![1.0; usize::try_from(row_len).unwrap_or(0)]),
        };
        let Some(values) = values else {
            return Err(Error::tensor(&step.name, "its importance is not in the matrix any more"));
        };
        let values: Arc<[f32]> = values.into();
        kept.truncate(KEPT - 1);
        kept.push_front((job.number, values.clone()));
        Ok(Some(values))
    }
}

/// Encodes whole rows of a tensor of `dims`, the first of which begins at element `start`, each with the
/// importance of its matrix. Indices in errors count from `start`.
pub(super) fn encode(
    format: &Format,
    dims: &[u64],
    start: u64,
    values: &[f32],
    importance: &[f32],
    out: &mut [u8],
) -> Result<(), EncodeError> {
    let row_len = dims.first().map_or(1, |&n| usize::try_from(n).unwrap_or(usize::MAX)).max(1);
    let rows_per_matrix = dims.get(1).copied().unwrap_or(1).max(1);
    let row_bytes = format.row_bytes(row_len)?;
    let rows = values.len() / row_len;
    let mut done = 0;
    while done < rows {
        let row = start / row_len as u64 + done as u64;
        let matrix = (row / rows_per_matrix) as usize;
        // A single row stands for all matrices.
        let own = importance.get(matrix * row_len..).and_then(|w| w.get(..row_len));
        let weights = own.unwrap_or_else(|| &importance[..row_len.min(importance.len())]);
        let end = rows.min(done + (rows_per_matrix - row % rows_per_matrix) as usize);
        let out = &mut out[done * row_bytes..end * row_bytes];
        format
            .encode_rows(&values[done * row_len..end * row_len], row_len, Some(weights), out)
            .map_err(|e| shift(e, done * row_len))?;
        done = end;
    }
    Ok(())
}

/// The same error with its element counted from further back.
fn shift(error: EncodeError, by: usize) -> EncodeError {
    match error {
        EncodeError::NonFinite { index, value } => EncodeError::NonFinite { index: index + by, value },
        EncodeError::Unrepresentable { name, index } => {
            EncodeError::Unrepresentable { name, index: index + by }
        }
        other => other,
    }
}

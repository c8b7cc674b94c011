//! A source with adapters merged into it.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use gguf_format::{Builder, WriteError};

use super::adapter::Adapter;
use super::apply::Loaded;
use super::resolve::{Merge, sides};
use crate::Error;
use crate::source::{Source, Tensor};

/// The factors of two tensors are kept in any case, as threads pass from one to the next at different times; of
/// more, which is when tensors are small and threads many, as long as all take no more than so many bytes.
const KEPT: usize = 16 << 20;

/// A source whose tensors are those of another, some with changed values: these are computed row by row as
/// they are asked for, with the factors of the tensors at hand in memory. All others pass through.
pub struct MergedSource<'a> {
    base: &'a dyn Source,
    adapters: &'a [Adapter],
    /// By tensor, in the order in which they apply.
    merges: BTreeMap<usize, Vec<Merge<'a>>>,
    kept: Mutex<VecDeque<(usize, Factors)>>,
}

/// What is needed to change one tensor.
type Factors = Arc<Vec<Loaded>>;

impl fmt::Debug for MergedSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MergedSource").field("merges", &self.merges).finish_non_exhaustive()
    }
}

impl<'a> MergedSource<'a> {
    /// `base` with `merges`, which [`resolve`](super::resolve) made for it from `adapters`.
    #[must_use]
    pub fn new(base: &'a dyn Source, adapters: &'a [Adapter], merges: Vec<Merge<'a>>) -> Self {
        let mut by_tensor: BTreeMap<usize, Vec<Merge<'a>>> = BTreeMap::new();
        for merge in merges {
            by_tensor.entry(merge.tensor).or_default().push(merge);
        }
        Self { base, adapters, merges: by_tensor, kept: Mutex::default() }
    }

    /// The changes, by tensor and then in the order in which they apply.
    pub fn merges(&self) -> impl Iterator<Item = &Merge<'a>> {
        self.merges.values().flatten()
    }

    /// The adapters.
    #[must_use]
    pub fn adapters(&self) -> &'a [Adapter] {
        self.adapters
    }

    /// The source without the changes.
    #[must_use]
    pub fn base(&self) -> &'a dyn Source {
        self.base
    }

    /// The tensors that are changed, with their changes in order.
    pub(super) fn by_tensor(&self) -> Vec<(usize, &[Merge<'a>])> {
        self.merges.iter().map(|(i, list)| (*i, list.as_slice())).collect()
    }

    fn factors(&self, index: usize, merges: &[Merge<'a>]) -> Result<Factors, Error> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = kept.iter().find(|(i, _)| *i == index) {
            return Ok(found.clone());
        }
        // Room is made before more is read.
        let bytes = |list: &[Loaded]| list.iter().map(Loaded::bytes).sum::<usize>();
        while kept.len() > 1 && kept.iter().map(|(_, f)| bytes(f)).sum::<usize>() > KEPT {
            kept.pop_back();
        }
        let factors: Factors = Arc::new(merges.iter().map(Loaded::read).collect::<Result<_, _>>()?);
        kept.push_front((index, factors.clone()));
        Ok(factors)
    }
}

/// Reads whole rows around a range where a merge needs them, and hands out the range.
pub(super) fn merged_values(
    base: &dyn Source,
    index: usize,
    merges: &[Merge<'_>],
    factors: &[Loaded],
    start: u64,
    out: &mut [f32],
) -> Result<(), Error> {
    let (_, width) = sides(&base.tensors()[index].dims);
    let apply = |values: &mut [f32], start| {
        merge_into(values, start, width, factors).map_err(|e| Error::tensor(&base.tensors()[index].name, e))
    };
    if !merges.iter().any(Merge::needs_whole_rows) {
        base.values(index, start, out)?;
        return apply(out, start);
    }
    let (first, last) = (start / width * width, (start + out.len() as u64).div_ceil(width) * width);
    // Two rows more than `out` at most.
    let mut rows = vec![0.0; (last - first) as usize];
    base.values(index, first, &mut rows)?;
    apply(&mut rows, first)?;
    let from = (start - first) as usize;
    out.copy_from_slice(&rows[from..from + out.len()]);
    Ok(())
}

/// Applies all changes to `values`, which begin at element `start`. Neither what they change nor what comes
/// of it may be infinite or no number.
fn merge_into(values: &mut [f32], start: u64, width: u64, factors: &[Loaded]) -> Result<(), String> {
    check_base(values, start, width)?;
    factors.iter().try_for_each(|m| m.apply(values, start, width))?;
    check_merged(values, start, width)
}

/// That the base has only numbers where something is merged.
pub(super) fn check_base(values: &[f32], start: u64, width: u64) -> Result<(), String> {
    finite(values, start, width, "in the base: nothing can be merged into that")
}

/// That only numbers come of a merge.
pub(super) fn check_merged(values: &[f32], start: u64, width: u64) -> Result<(), String> {
    finite(values, start, width, "after the merge: the adapter's values or its scale are too large")
}

fn finite(values: &[f32], start: u64, width: u64, what: &str) -> Result<(), String> {
    let Some(at) = values.iter().position(|v| !v.is_finite()) else { return Ok(()) };
    let element = start + at as u64;
    Err(format!("{} in row {}, column {} {what}", values[at], element / width, element % width))
}

impl Source for MergedSource<'_> {
    fn tensors(&self) -> &[Tensor] {
        self.base.tensors()
    }

    fn metadata(&self) -> Builder {
        self.base.metadata()
    }

    fn alignment(&self) -> u32 {
        self.base.alignment()
    }

    fn part(&self, index: usize) -> usize {
        self.base.part(index)
    }

    fn inputs(&self) -> Vec<PathBuf> {
        let adapters = self.adapters.iter().flat_map(|a| a.files().iter().cloned());
        self.base.inputs().into_iter().chain(adapters).collect()
    }

    fn declare(&self, index: usize, builder: &mut Builder) -> Result<(), WriteError> {
        self.base.declare(index, builder)
    }

    fn bytes(&self, index: usize, range: Range<u64>) -> Option<&[u8]> {
        if self.is_merged(index) { None } else { self.base.bytes(index, range) }
    }

    fn values(&self, index: usize, start: u64, out: &mut [f32]) -> Result<(), Error> {
        match self.merges.get(&index) {
            None => self.base.values(index, start, out),
            Some(merges) => {
                let factors = self.factors(index, merges)?;
                merged_values(self.base, index, merges, &factors, start, out)
            }
        }
    }

    fn is_merged(&self, index: usize) -> bool {
        self.merges.contains_key(&index)
    }

    fn prefetch(&self, index: usize, range: Range<u64>) {
        self.base.prefetch(index, range);
    }

    fn release(&self, index: usize, range: Range<u64>) {
        self.base.release(index, range);
    }
}

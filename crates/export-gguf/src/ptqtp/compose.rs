//! The way back: a model whose planes are one tensor each, their sum.

use std::ops::Range;
use std::path::PathBuf;

use gguf_format::{Builder, GgmlType, WriteError};

use super::sets::{TIE_KEY, VERSION_KEY};
use super::{Choice, GROUP, MAX_PLANES, sets};
use crate::Error;
use crate::imatrix::Imatrix;
use crate::plan::{self, Plan, Why};
use crate::source::{GgufSource, Source, Tensor};

/// A model with planes, seen without them: each set is one `F32` tensor in the place of its first plane.
#[derive(Debug)]
pub struct Composed {
    inner: GgufSource,
    tensors: Vec<Tensor>,
    /// Where each tensor comes from.
    parts: Vec<Part>,
}

/// The tensors of the file that one of ours comes from.
#[derive(Debug)]
enum Part {
    Stored(usize),
    Planes(Vec<usize>),
}

impl Composed {
    /// Wraps a model with planes.
    ///
    /// # Errors
    /// [`Error::Refused`] when it has none, or when something is wrong with them: all faults are named.
    pub fn new(inner: GgufSource) -> Result<Self, Error> {
        let found = sets(&inner.model().gguf(), inner.tensors());
        if !found.faults.is_empty() {
            return Err(Error::Refused(found.faults.join("; ")));
        }
        if found.sets.is_empty() {
            return Err(Error::Refused(
                "there are no trit-planes in this file; --from-gguf copies it".into(),
            ));
        }
        let (mut tensors, mut parts) = (Vec::new(), Vec::new());
        for (index, stored) in inner.tensors().iter().enumerate() {
            match found.sets.iter().find(|set| set.planes.contains(&index)) {
                None => {
                    tensors.push(stored.clone());
                    parts.push(Part::Stored(index));
                }
                // Planes may stand in any order; the tensor stands where the first of them is met.
                Some(set) if set.planes.iter().min() == Some(&index) => {
                    let ty = GgmlType::F32;
                    let too_large = || Error::tensor(&set.base, "its sum would exceed 2^64 bytes");
                    tensors.push(Tensor {
                        name: set.base.clone(),
                        dims: set.dims.clone(),
                        ty,
                        bytes: ty.row_bytes(set.weights()).ok_or_else(too_large)?,
                        decodable: true,
                    });
                    parts.push(Part::Planes(set.planes.clone()));
                }
                Some(_) => {}
            }
        }
        Ok(Self { inner, tensors, parts })
    }

    /// What becomes of each tensor: sums get type `to`, or stay `F32`; everything else stays as it is.
    ///
    /// # Errors
    /// As [`plan::plan`].
    pub fn plan(&self, to: Option<GgmlType>, imatrix: Option<&Imatrix>) -> Result<Plan, Error> {
        let mut plan = plan::plan(&self.tensors, plan::Request::default(), None)?;
        for (step, part) in plan.steps.iter_mut().zip(&self.parts) {
            let Part::Planes(planes) = part else { continue };
            step.to = to.unwrap_or(step.from);
            let too_large = || Error::tensor(&step.name, format!("{} would exceed 2^64 bytes", step.to));
            step.bytes_after = step.to.row_bytes(step.dims.iter().product()).ok_or_else(too_large)?;
            step.why = Why::Trits(Choice::Sum(planes.len()));
        }
        plan::weigh(&mut plan.steps, imatrix)?;
        if let Some(to) = to {
            plan.keys = plan::keys_of(to);
        }
        Ok(plan)
    }
}

impl Source for Composed {
    fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    fn metadata(&self) -> Builder {
        let mut metadata = self.inner.metadata();
        metadata.remove(VERSION_KEY);
        metadata.remove(TIE_KEY);
        metadata
    }

    fn alignment(&self) -> u32 {
        self.inner.alignment()
    }

    fn part(&self, index: usize) -> usize {
        match &self.parts[index] {
            Part::Stored(stored) => self.inner.part(*stored),
            Part::Planes(planes) => planes.first().map_or(0, |p| self.inner.part(*p)),
        }
    }

    fn inputs(&self) -> Vec<PathBuf> {
        self.inner.inputs()
    }

    fn declare(&self, index: usize, builder: &mut Builder) -> Result<(), WriteError> {
        let tensor = &self.tensors[index];
        match &self.parts[index] {
            Part::Stored(stored) => self.inner.declare(*stored, builder),
            Part::Planes(_) => builder.tensor(&tensor.name, &tensor.dims, tensor.ty).map(|_| ()),
        }
    }

    fn bytes(&self, index: usize, range: Range<u64>) -> Option<&[u8]> {
        match self.parts.get(index)? {
            Part::Stored(stored) => self.inner.bytes(*stored, range),
            Part::Planes(_) => None,
        }
    }

    fn values(&self, index: usize, start: u64, out: &mut [f32]) -> Result<(), Error> {
        let planes = match &self.parts[index] {
            Part::Stored(stored) => return self.inner.values(*stored, start, out),
            Part::Planes(planes) => planes,
        };
        let mut values = vec![0.0; out.len()];
        out.fill(0.0);
        for plane in planes {
            self.inner.values(*plane, start, &mut values)?;
            for (sum, x) in out.iter_mut().zip(&values) {
                *sum += x;
            }
        }
        Ok(())
    }

    fn prefetch(&self, index: usize, range: Range<u64>) {
        self.each_part(index, range, |stored, range| self.inner.prefetch(stored, range));
    }

    fn release(&self, index: usize, range: Range<u64>) {
        self.each_part(index, range, |stored, range| self.inner.release(stored, range));
    }
}

impl Composed {
    /// The stored ranges behind a range of bytes of one tensor.
    fn each_part(&self, index: usize, range: Range<u64>, tell: impl Fn(usize, Range<u64>)) {
        match &self.parts[index] {
            Part::Stored(stored) => tell(*stored, range),
            Part::Planes(planes) => {
                let bytes = |sum: u64| GgmlType::TQ2_0.row_bytes((sum / 4).next_multiple_of(GROUP as u64));
                let (Some(start), Some(end)) = (bytes(range.start), bytes(range.end)) else { return };
                planes.iter().take(MAX_PLANES).for_each(|plane| tell(*plane, start..end));
            }
        }
    }
}

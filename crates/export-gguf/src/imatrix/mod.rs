//! Importance matrices: the mean squared activation of each input channel of each weight tensor, as
//! llama-imatrix writes them.
//!
//! Both of its file forms are read: the GGUF form (tensors `NAME.in_sum2` and `NAME.counts`) and the older
//! `.dat` form. The file stays mapped; the values of a tensor are computed when they are asked for, so a
//! matrix for hundreds of experts costs no memory of its own. Every value is checked when the file is
//! opened.

mod dat;
mod error;
mod gguf;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use gguf_mmap::Mapping;

pub use error::{ImatrixError, Problem};

/// An opened importance matrix.
#[derive(Debug)]
pub struct Imatrix {
    mapping: Mapping,
    entries: BTreeMap<String, Entry>,
    datasets: Vec<String>,
    chunks: u32,
}

/// Where the values of one tensor stand in the file, and what they must be divided by.
#[derive(Debug)]
struct Entry {
    sums: Range<usize>,
    divisors: Divisors,
}

#[derive(Debug)]
enum Divisors {
    /// All values by one number; not at all where it isn't positive.
    Calls(i32),
    /// Each expert's share by its own count; a count that isn't positive stands for "never used".
    Counts(Range<usize>),
}

/// What a parser of either form finds.
struct Contents {
    entries: BTreeMap<String, Entry>,
    datasets: Vec<String>,
    chunks: u32,
}

impl Imatrix {
    /// Opens a matrix of either form.
    ///
    /// # Errors
    /// [`ImatrixError`] where the file cannot be read, is damaged, or holds a value that is not finite.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ImatrixError> {
        let path = path.as_ref();
        let mapping = Mapping::open(path).map_err(|e| ImatrixError::new(path, Problem::Open(Box::new(e))))?;
        Self::from_mapping(mapping).map_err(|p| ImatrixError::new(path, p))
    }

    fn from_mapping(mapping: Mapping) -> Result<Self, Problem> {
        let bytes = mapping.bytes();
        let is_gguf = bytes.starts_with(b"GGUF");
        let contents = if is_gguf { gguf::parse(bytes)? } else { dat::parse(bytes)? };
        if contents.entries.is_empty() {
            return Err(Problem::Empty);
        }
        for (name, entry) in &contents.entries {
            entry.check(bytes).map_err(|index| Problem::NotFinite { tensor: name.clone(), index })?;
        }
        let Contents { entries, datasets, chunks } = contents;
        Ok(Self { mapping, entries, datasets, chunks })
    }

    /// The file it was read from.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.mapping.path()
    }

    /// The tensors it speaks of, in order of their names.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// How many tensors it speaks of.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Never: a matrix without entries does not open. Entries can be dropped later, though.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The text files it was computed from.
    #[must_use]
    pub fn datasets(&self) -> &[String] {
        &self.datasets
    }

    /// How many chunks of text it was computed on, 0 where the file does not say.
    #[must_use]
    pub const fn chunks(&self) -> u32 {
        self.chunks
    }

    /// Keeps the entries for which `keep` holds.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.entries.retain(|name, _| keep(name));
    }

    /// Whether there is an entry for `tensor`.
    #[must_use]
    pub fn contains(&self, tensor: &str) -> bool {
        self.entries.contains_key(tensor)
    }

    /// How many values stand for `tensor`: its row length times its number of experts.
    #[must_use]
    pub fn values_len(&self, tensor: &str) -> Option<usize> {
        self.entries.get(tensor).map(|e| e.sums.len() / 4)
    }

    /// The importance of `tensor`'s input channels: `row_len` values for each of its `experts` matrices, one
    /// expert after the other, normalised as llama-quantize does. `None` where the file has none for it.
    ///
    /// # Errors
    /// [`Problem::Size`] where the file's values are not `row_len * experts` many.
    pub fn importance(&self, tensor: &str, row_len: u64, experts: u64) -> Result<Option<Vec<f32>>, Problem> {
        let Some(entry) = self.entries.get(tensor) else { return Ok(None) };
        let have = (entry.sums.len() / 4) as u64;
        if row_len.checked_mul(experts) != Some(have) {
            return Err(Problem::Size { tensor: tensor.into(), have, row_len, experts });
        }
        Ok(Some(entry.values(self.mapping.bytes())))
    }
}

impl Entry {
    /// The normalised values: f32 divisions, as in llama.cpp.
    fn values(&self, bytes: &[u8]) -> Vec<f32> {
        let mut values: Vec<f32> = floats(bytes, &self.sums).collect();
        match &self.divisors {
            &Divisors::Calls(n) if n > 0 => values.iter_mut().for_each(|v| *v /= n as f32),
            Divisors::Calls(_) => {}
            Divisors::Counts(range) => {
                let experts = range.len() / 4;
                let share = values.len() / experts;
                for (expert, count) in values.chunks_exact_mut(share).zip(floats(bytes, range)) {
                    // Counts are whole numbers kept as f32; llama.cpp rounds them half away from zero.
                    let count = count.round();
                    expert.iter_mut().for_each(|v| *v = if count > 0.0 { *v / count } else { 1.0 });
                }
            }
        }
        values
    }

    /// The index of the first value that is not a finite number, sums and counts included.
    fn check(&self, bytes: &[u8]) -> Result<(), usize> {
        if let Divisors::Counts(range) = &self.divisors {
            first_not_finite(floats(bytes, range))?;
        }
        first_not_finite(self.values(bytes).into_iter())
    }
}

fn first_not_finite(mut values: impl Iterator<Item = f32>) -> Result<(), usize> {
    values.position(|v| !v.is_finite()).map_or(Ok(()), Err)
}

/// The little-endian numbers in `range`, which a parser has found to lie in the file.
fn floats<'a>(bytes: &'a [u8], range: &Range<usize>) -> impl Iterator<Item = f32> + 'a {
    let bytes = bytes.get(range.clone()).unwrap_or_default();
    bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b))
}

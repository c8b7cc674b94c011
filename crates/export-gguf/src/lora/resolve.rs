//! From adapters and the tensors of a base to merges: what goes where, or everything that does not fit.

mod fit;
mod place;

use std::collections::BTreeMap;
use std::ops::Range;

use gguf_format::Gguf;

use super::adapter::{Adapter, Factor, Kind, Matrix, Piece};
use super::facts::{Facts, Heads};
use super::problems::Problems;
use crate::Error;
use crate::source::Tensor;

/// One change to rows of one tensor of the base.
#[derive(Debug)]
pub struct Merge<'a> {
    /// Which adapter, counted from 0.
    pub adapter: usize,
    /// Index of the base's tensor.
    pub tensor: usize,
    /// The adapter's tensors, by name.
    pub from: Vec<String>,
    pub(super) rows: Range<u64>,
    pub(super) order: Order,
    pub(super) op: Op<'a>,
}

/// In which order an adapter's rows stand in the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The same.
    Same,
    /// In each head of so many rows the two halves take turns.
    Paired(u64),
}

impl Order {
    /// The adapter's row for a row of the base.
    pub(super) fn source(self, row: u64) -> u64 {
        match self {
            Self::Same => row,
            Self::Paired(head) => {
                let (first, k) = (row / head * head, row % head);
                first + (k % 2) * (head / 2) + k / 2
            }
        }
    }
}

/// What is done to the rows.
#[derive(Debug)]
pub(super) enum Op<'a> {
    /// `scale` times the product of the factors is added, and the rows get the lengths of `magnitude`.
    Product { left: &'a Factor, right: &'a Factor, rank: u64, scale: f64, magnitude: Option<&'a Matrix> },
    /// `scale` times a vector is added, a number for each row.
    Add { vector: &'a Matrix, scale: f64 },
    /// Other rows take their place, with `plus` added to each value.
    Replace { with: &'a Matrix, plus: f32 },
}

impl Merge<'_> {
    /// The rank of the product that is added, if one is.
    #[must_use]
    pub fn rank(&self) -> Option<u64> {
        match self.op {
            Op::Product { rank, .. } => Some(rank),
            _ => None,
        }
    }

    /// What the product is multiplied with: the caller's scale times alpha over the rank. `None` where values
    /// are replaced.
    #[must_use]
    pub fn scale(&self) -> Option<f64> {
        match self.op {
            Op::Product { scale, .. } | Op::Add { scale, .. } => Some(scale),
            Op::Replace { .. } => None,
        }
    }

    /// What happens, in a word.
    #[must_use]
    pub fn verb(&self) -> &'static str {
        match self.op {
            Op::Product { magnitude: Some(_), .. } => "DoRA",
            Op::Product { .. } => "LoRA",
            Op::Add { .. } => "bias",
            Op::Replace { .. } => "replace",
        }
    }

    /// Whether all of a row must be at hand to change any of it.
    pub(super) fn needs_whole_rows(&self) -> bool {
        matches!(self.op, Op::Product { magnitude: Some(_), .. })
    }
}

/// Rows and row length of a tensor. A vector counts as rows of one value.
pub(super) fn sides(dims: &[u64]) -> (u64, u64) {
    match dims {
        [] => (1, 1),
        [n] => (*n, 1),
        [width, more @ ..] => (more.iter().product(), *width),
    }
}

/// Finds the place of every piece of every adapter, in order.
///
/// # Errors
/// When anything does not fit: a tensor that the base lacks, a shape, a rank, a scale of zero. All of it is named.
pub fn resolve<'a>(
    adapters: &'a [Adapter],
    tensors: &[Tensor],
    gguf: &Gguf<'_>,
) -> Result<Vec<Merge<'a>>, Error> {
    let base = Base::new(tensors, gguf);
    let mut problems = Problems::default();
    let mut merges = Vec::new();
    for (number, adapter) in adapters.iter().enumerate() {
        if !base.takes(adapter, &mut problems) {
            continue;
        }
        let first = merges.len();
        for piece in &adapter.pieces {
            if let Err((what, problem)) = base.merge(number, adapter, piece).map(|m| merges.push(m)) {
                problems.add(&adapter.path, &what, problem);
            }
        }
        overlaps(adapter, &merges[first..], tensors, &mut problems);
    }
    problems.check()?;
    Ok(merges)
}

/// The base's tensors by name, and its metadata.
struct Base<'a> {
    tensors: &'a [Tensor],
    by_name: BTreeMap<&'a str, usize>,
    facts: Facts<'a>,
}

/// A tensor of the adapter, and what is wrong with it.
type Problem = (String, String);

impl<'b> Base<'b> {
    fn new(tensors: &'b [Tensor], gguf: &'b Gguf<'b>) -> Self {
        let by_name = tensors.iter().enumerate().map(|(i, t)| (t.name.as_str(), i)).collect();
        Self { tensors, by_name, facts: Facts::new(gguf) }
    }

    /// Whether the adapter is for such a base at all.
    fn takes(&self, adapter: &Adapter, problems: &mut Problems) -> bool {
        let ours = self.facts.architecture;
        match adapter.kind {
            Kind::Gguf if adapter.architecture.as_deref() != ours => {
                let shown = |a: Option<&str>| a.unwrap_or("unknown").escape_debug().to_string();
                problems.whole(
                    &adapter.path,
                    format_args!(
                        "made for the architecture {}, and the base's is {}",
                        shown(adapter.architecture.as_deref()),
                        shown(ours)
                    ),
                );
                false
            }
            Kind::Peft if ours.and_then(super::names::architecture).is_none() => {
                let known: Vec<&str> = super::names::architectures().collect();
                problems.whole(
                    &adapter.path,
                    format_args!(
                        "no table of names for the architecture {} (there are: {}); convert the adapter to GGUF first",
                        ours.unwrap_or("unknown").escape_debug(),
                        known.join(", ")
                    ),
                );
                false
            }
            _ => true,
        }
    }

    /// Finds a piece's place, and checks that it fits there.
    fn merge<'a>(&self, number: usize, adapter: &Adapter, piece: &'a Piece) -> Result<Merge<'a>, Problem> {
        let from: Vec<String> = piece.change.matrices().map(|m| m.name().to_owned()).collect();
        let what = || from.first().cloned().unwrap_or_default();
        let place = self.place(piece).map_err(|e| (what(), e))?;
        let op = self.fit(&place, &piece.change, adapter.scale)?;
        Ok(Merge { adapter: number, tensor: place.tensor, rows: place.rows, order: place.order, op, from })
    }
}

/// Names pieces of one adapter that change the same rows in the same way: only one of them can be meant.
fn overlaps(adapter: &Adapter, merges: &[Merge<'_>], tensors: &[Tensor], problems: &mut Problems) {
    let mut sorted: Vec<&Merge<'_>> = merges.iter().collect();
    let key = |m: &Merge<'_>| (m.tensor, matches!(m.op, Op::Replace { .. }), m.rows.start);
    sorted.sort_by_key(|m| key(m));
    for pair in sorted.windows(2) {
        let [a, b] = pair else { continue };
        if (key(a).0, key(a).1) == (key(b).0, key(b).1) && a.rows.end > b.rows.start {
            let name = &tensors[a.tensor].name;
            let what = b.from.first().map_or("", String::as_str);
            let other = a.from.first().map_or("", String::as_str).escape_debug();
            problems.add(
                &adapter.path,
                what,
                format_args!("changes rows of {name} that {other} changes too"),
            );
        }
    }
}

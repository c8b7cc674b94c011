//! What will become of each tensor, decided before a byte is written.
//!
//! A [`Plan`] is plain data made by a pure function of the source's directory and the request; the
//! dry run prints it, the executor carries it out.

mod edit;
mod obstacle;
mod policy;
mod print;
#[cfg(test)]
mod tests;

use std::fmt;

use ggml_blocks::FORMATS;
use gguf_format::{GgmlType, Kind};

use crate::mix::Choice;
use crate::ptqtp;

pub use edit::{Edit, MetaValue};
pub(crate) use obstacle::Obstacles;
pub use policy::plan;
pub(crate) use policy::{FILE_TYPE, GGML_QNT_VERSION, QUANTIZATION_VERSION, fits, keys_of, may_weigh, weigh};
pub(crate) use print::{bits_per_weight, json, write_notes};
pub use print::{human_bytes, write_json, write_text};

/// Which types the caller wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Request {
    /// The type of all weights; `None` leaves them as they are.
    pub dtype: Option<GgmlType>,
    /// The type of expert weights (`*_exps.weight`), which may be quantized again.
    pub experts: Experts,
    /// Weights that are quantized already may be quantized again.
    pub requantize: bool,
}

/// What becomes of expert weights.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Experts {
    /// The same as of all others.
    #[default]
    Follow,
    /// They stay as they are.
    Keep,
    /// They get this type, even if they are quantized already.
    To(GgmlType),
}

/// One tensor of the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Index of the source's tensor.
    pub source: usize,
    /// The name in the output.
    pub name: String,
    /// The dimensions in ggml's order, the row length first.
    pub dims: Vec<u64>,
    /// The type it has.
    pub from: GgmlType,
    /// The type it gets.
    pub to: GgmlType,
    /// Its length now, in bytes.
    pub bytes_before: u64,
    /// Its length then, in bytes.
    pub bytes_after: u64,
    /// Why it gets this type.
    pub why: Why,
    /// What its encoder weighs errors with.
    pub weighting: Weighting,
}

/// How much each input channel of a tensor matters to its encoder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Weighting {
    /// The encoder's own rule.
    #[default]
    None,
    /// All channels the same, through the path for importance.
    Uniform,
    /// This entry of the importance matrix.
    Entry(String),
}

/// All tensors of the output in file order, and the keys that change with them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// The tensors.
    pub steps: Vec<Step>,
    /// Changes to the metadata, in order.
    pub keys: Vec<Edit>,
    /// How many steps go into each file of a split set, where the plan itself says so.
    pub parts: Option<Vec<usize>>,
    /// What may not be what was meant, in words.
    pub notes: Vec<String>,
}

impl Plan {
    /// The tensors' bytes before and after, without headers and padding.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        self.steps.iter().fold((0, 0), |(a, b), s| (a + s.bytes_before, b + s.bytes_after))
    }

    /// The number of elements of all tensors; planes of one tensor count once.
    #[must_use]
    pub fn elements(&self) -> u64 {
        let more = |why: &Why| matches!(why, Why::Trits(ptqtp::Choice::Plane { index: 1.., .. }));
        self.steps.iter().filter(|s| !more(&s.why)).map(|s| s.dims.iter().product::<u64>()).sum()
    }
}

/// Why a tensor gets the type it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// No type was asked for.
    NotAsked,
    /// `--dtype` names this type.
    Dtype,
    /// `--experts-dtype` names this type.
    Experts,
    /// It has the type that was asked for.
    Already,
    /// The name does not end in `.weight`.
    NotWeight,
    /// Fewer than two dimensions.
    Vector,
    /// The name contains `norm`.
    Norm,
    /// llama.cpp adds this tensor to its activations as 32-bit floats, and aborts on others.
    Added,
    /// Numbers that are no weights.
    Integers,
    /// The row length in elements is not a whole number of blocks of this many.
    Indivisible(u64, u32),
    /// What a mix decided.
    Mix(Choice),
    /// Its type stays, and an adapter changes its values.
    Merged,
    /// What decomposing into trit-planes decided.
    Trits(ptqtp::Choice),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAsked => f.write_str("verbatim"),
            Self::Dtype => f.write_str("--dtype"),
            Self::Experts => f.write_str("--experts-dtype"),
            Self::Already => f.write_str("has that type"),
            Self::NotWeight => f.write_str("kept: not a .weight"),
            Self::Vector => f.write_str("kept: one dimension"),
            Self::Norm => f.write_str("kept: a norm"),
            Self::Added => f.write_str("kept: llama.cpp adds it as floats"),
            Self::Integers => f.write_str("kept: integers"),
            Self::Indivisible(row, block) => {
                write!(f, "kept: row of {row} not divisible by block of {block}")
            }
            Self::Mix(choice) => choice.fmt(f),
            Self::Merged => f.write_str("merged"),
            Self::Trits(choice) => choice.fmt(f),
        }
    }
}

/// The types that tensors can be transcoded to, by table: everything with an encoder that files
/// carry. Those that need importance can only be had with a matrix.
pub fn targets() -> impl Iterator<Item = GgmlType> {
    FORMATS
        .iter()
        .filter(|f| f.can_encode())
        .filter(|f| matches!(f.info().kind, Kind::Float | Kind::Block))
        .map(|f| f.info().id)
}

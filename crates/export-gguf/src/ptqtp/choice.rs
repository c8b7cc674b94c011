//! Why a tensor is or is not decomposed.

use std::fmt;

/// What was decided for one tensor, beyond the rules that every transcoding has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Choice {
    /// It becomes one of several planes.
    Plane {
        /// Which, from the coarsest on.
        index: usize,
        /// How many there are.
        of: usize,
        /// Whether their scales are tied.
        tied: bool,
    },
    /// It is the sum of so many planes.
    Sum(usize),
    /// It is a plane already.
    IsPlane,
    /// Its planes stand in the file already.
    HasPlanes,
    /// It is neither a matrix nor a stack of experts.
    Shape,
    /// It is ternary already.
    Ternary,
    /// Its type cannot be decoded.
    Undecodable,
    /// Embeddings and the output matrix stay unless they are named.
    Ends,
    /// No name of `--ptqtp-include` occurs in its own.
    NotIncluded,
    /// A name of `--ptqtp-exclude` does.
    Excluded,
    /// The names of its planes would be longer than llama.cpp reads.
    LongName,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plane { index, of, tied } => {
                write!(f, "plane {} of {of}, {}", index + 1, if *tied { "tied" } else { "free" })
            }
            Self::Sum(planes) => {
                write!(f, "sum of {planes} {}", if *planes == 1 { "plane" } else { "planes" })
            }
            Self::IsPlane => f.write_str("kept: a plane"),
            Self::HasPlanes => f.write_str("kept: its planes are there"),
            Self::Shape => f.write_str("kept: neither a matrix nor experts"),
            Self::Ternary => f.write_str("kept: ternary"),
            Self::Undecodable => f.write_str("kept: no decoder"),
            Self::Ends => f.write_str("kept: embedding or output; --ptqtp-include names it"),
            Self::NotIncluded => f.write_str("kept: not in --ptqtp-include"),
            Self::Excluded => f.write_str("kept: in --ptqtp-exclude"),
            Self::LongName => f.write_str("kept: name too long for planes"),
        }
    }
}

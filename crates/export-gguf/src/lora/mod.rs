//! Merging low-rank adapters into a model: `W' = W + scale * (alpha / r) * (B * A)`.
//!
//! Three kinds of adapters are read into one shape ([`Adapter`]); [`resolve`] finds the base tensors and
//! names everything that does not fit at once; [`MergedSource`] is the base with its values changed, so
//! that planning, transcoding and writing know nothing of adapters.

mod adapter;
mod apply;
mod facts;
mod kernel;
mod measure;
mod merged;
mod names;
mod print;
mod problems;
mod resolve;
mod types;

pub use adapter::{Adapter, Kind, Matrix};
pub use measure::{Measured, measure};
pub use merged::MergedSource;
pub use names::{architectures, markdown_tables};
pub(crate) use print::{json, write_text};
pub use resolve::{Merge, resolve};
pub use types::{Conversion, check_types, mark};

//! Mixes: what `Q4_K_M` means, tensor by tensor.
//!
//! [`assign`] is llama-quantize's choice of types as a pure function of names, shapes, a few
//! [`HyperParameters`] and [`Options`]; the rules themselves are data (`rules.rs`).

mod describe;
mod file_type;
mod guess;
mod model;
mod names;
mod plan;
mod policy;
mod prune;
mod rules;

pub use describe::markdown_table;
pub use file_type::FileType;
pub use names::{Part, part_of};
pub use plan::{Missing, Order, Request, plan, recorded_name};
pub use policy::{
    Choice, HyperParameters, Options, Override, PolicyError, Reason, Subject, assign, processing_order,
};
pub use rules::When;

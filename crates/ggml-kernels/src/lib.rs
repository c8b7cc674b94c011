#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod cache;
mod error;
mod isa;
mod kernel;
mod layout;
mod level;
mod lhs;
mod matmul;
mod memory;
mod packed;
mod panel;
mod planes;
mod rhs;
mod scratch;
mod task;
mod transposed;
mod unpack;

pub use cache::PackCache;
pub use error::Error;
#[doc(no_inline)]
pub use ggml_blocks::GgmlType;
pub use level::{Kernels, Level};
pub use lhs::Lhs;
pub use packed::Packed;
pub use planes::PlaneSet;
pub use rhs::{Rhs, RhsLifetime};
pub use scratch::Scratch;

#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::cast_possible_truncation
)]

mod dtype;
mod error;
pub mod fs;
mod header;
mod json;
mod rules;
mod slice;
mod view;
mod write;

pub use dtype::{DTYPES, Dtype};
pub use error::{Error, ErrorKind, Found};
pub use header::{Header, MAX_HEADER_LEN, TensorInfo};
pub use slice::{Slice, SliceError};
pub use view::{SafeTensors, SafeTensorsBuf, TensorView};
pub use write::{Builder, Layout, Tensor, WriteError, serialize};

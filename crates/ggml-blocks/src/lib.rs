#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod block;
pub mod cast;
mod encode;
mod error;
mod format;
pub mod formats;
mod grid;
mod half;
mod iq;
mod lanes;
mod scan;
mod search;
#[doc(hidden)]
pub mod simd;

pub use block::{Block, Encode, Rows, Weights, cast_blocks, cast_blocks_mut};
pub use error::{DecodeError, EncodeError, LengthError, NonFiniteScale};
pub use format::{FORMATS, Format};
#[doc(no_inline)]
pub use gguf_format::{GgmlType, Importance, Kind, TypeInfo};
pub use half::{Bf16, F16};
pub use scan::{Limit, Overflow};

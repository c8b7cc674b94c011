#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]
#![deny(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::cast_possible_truncation
)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod array;
mod builder;
mod cursor;
mod entry;
mod error;
mod extent;
mod finding;
mod gguf;
mod index;
mod layout;
mod lenient;
mod parse;
mod quote;
mod shape;
mod sink;
mod sniff;
mod stream;
mod tensor;
mod to_value;
mod types;
mod value;
mod value_type;
mod wire;
mod write_error;

pub use array::{Array, Elements, Values};
pub use builder::Builder;
pub use cursor::MAX_LEN;
pub use error::{Error, ErrorKind, Place};
pub use finding::Finding;
pub use gguf::{Bounds, Gguf, ParseOptions};
pub use index::Index;
pub use layout::{Layout, TensorLayout};
pub use parse::{ALIGNMENT_KEY, DEFAULT_ALIGNMENT, MAX_GGML_NAME, MAX_NAME};
pub use quote::Name;
pub use shape::{MAX_DIMS, ShapeError};
#[cfg(feature = "std")]
pub use sink::IoSink;
pub use sink::Sink;
pub use sniff::Foreign;
pub use stream::{Stream, StreamError};
pub use tensor::TensorInfo;
pub use to_value::ToValue;
pub use types::{GgmlType, Importance, Kind, TYPES, TypeInfo};
pub use value::{KeyValue, Str, Value};
pub use value_type::ValueType;
pub use wire::{Element, FromWire};
pub use write_error::WriteError;

#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod bytes;
mod error;
mod file;
mod hint;
mod mapping;
mod model;
mod split;

pub use bytes::Bytes;
pub use error::{Error, ErrorKind};
pub use file::{GgufFile, OpenOptions};
pub use hint::Advice;
pub use mapping::{MapOptions, Mapping};
pub use model::{Model, ModelTensor};
pub use split::{PartName, SplitError, check_set};

#![doc = include_str!("../README.md")]

mod bytes;
mod error;
mod hint;
mod mapping;

pub use bytes::Bytes;
pub use error::{Error, ErrorKind};
pub use hint::Advice;
pub use mapping::{MapOptions, Mapping};

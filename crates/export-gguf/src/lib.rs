#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod cli;
mod error;
pub mod look;
pub mod mix;

pub use error::{Error, Outcome};

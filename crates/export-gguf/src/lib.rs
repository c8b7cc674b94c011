#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod atomic;
mod cancel;
pub mod cli;
mod error;
pub mod imatrix;
pub mod look;
pub mod mix;
mod sys;

pub use cancel::Cancel;
pub use error::{Error, Outcome};
pub use sys::peak_rss;

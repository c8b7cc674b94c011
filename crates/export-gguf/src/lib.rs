#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod atomic;
mod cancel;
pub mod cli;
pub mod demo;
pub mod emit;
mod error;
pub mod imatrix;
pub mod look;
pub mod lora;
pub mod mix;
pub mod plan;
pub mod progress;
pub mod ptqtp;
pub mod report;
pub mod run;
pub mod source;
pub mod st;
mod sys;

pub use cancel::Cancel;
pub use error::{Error, Outcome};
pub use sys::peak_rss;

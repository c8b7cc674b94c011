#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod types;

pub use types::{GgmlType, Importance, Kind, TYPES, TypeInfo};

//! Behaviour of mappings, opened files and split sets, on files made in temporary folders.

mod file;
mod make;
mod mapping;
mod model;
#[cfg(target_os = "linux")]
mod residency;
mod split;

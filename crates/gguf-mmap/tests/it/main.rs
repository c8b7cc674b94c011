//! Behaviour of mappings, opened files and split sets, on files made in temporary folders.

mod mapping;
#[cfg(target_os = "linux")]
mod residency;

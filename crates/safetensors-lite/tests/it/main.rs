//! What the crate promises, through its public API.

mod atomic;
mod errors;
mod files;
mod frames;
mod fuzz_bodies;
mod golden;
mod hostile;
mod make;
mod rules;
mod shards;
mod slices;
mod stream;
mod upstream;

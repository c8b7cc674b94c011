//! Integration tests of gguf-format.

mod accepted;
mod fuzz_bodies;
mod mutate;
mod raw;
mod refused;
mod roundtrip;

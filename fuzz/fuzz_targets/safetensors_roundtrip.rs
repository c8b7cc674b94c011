//! Any bytes are a recipe for tensors, which are written and read back; the body is shared with the tests.
#![no_main]

#[path = "../../crates/safetensors-lite/tests/it/fuzz_bodies.rs"]
mod fuzz_bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_bodies::roundtrip(bytes));

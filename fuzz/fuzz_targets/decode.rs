//! Any bytes as blocks of any format, decoded in every way; the body is shared with the tests.
#![no_main]

#[path = "../../crates/ggml-blocks/tests/it/fuzz_bodies.rs"]
#[expect(dead_code, reason = "the other target's body is in the same file")]
mod fuzz_bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_bodies::decode(bytes));

//! Integration tests of gguf-format.

mod accepted;
mod fuzz_bodies;
mod lenient;
mod mutate;
mod q2_0;
mod raw;
mod refused;
mod roundtrip;
mod values;
mod view;
mod writer;

/// Strict, where only the header is at hand.
const HEADER: gguf_format::ParseOptions =
    gguf_format::ParseOptions { lenient: false, bounds: gguf_format::Bounds::HeaderOnly { file_len: None } };

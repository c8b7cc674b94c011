//! Integration tests of gguf-format.

mod roundtrip;

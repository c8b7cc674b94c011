//! Integration tests.

mod mixes;

//! Integration tests: one binary.

mod golden;

//! Integration tests.

mod mix_dry_runs;
mod mixes;

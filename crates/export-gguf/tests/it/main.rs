//! Integration tests.

mod docs;
mod mix_dry_runs;
mod mixes;

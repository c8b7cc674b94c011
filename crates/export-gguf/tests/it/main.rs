//! Integration tests.

mod checkpoints;
mod copy;
mod demo;
mod docs;
mod importance;
mod inputs;
mod look;
mod lora;
mod mix_dry_runs;
mod mixes;
mod output;
mod planes;
mod report;
mod split;
mod support;
mod text;
mod transcode;
mod trit_planes;

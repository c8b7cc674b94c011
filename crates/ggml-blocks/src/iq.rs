//! The encoders of the codebook formats: `IQ1`, `IQ2` and `IQ3`.
//!
//! The arithmetic is ggml's, operation by operation; lanes hold candidates of the search on the grid, or
//! steps of the search for a scale, so that none of them mixes what ggml keeps apart.
//!
//! ggml stops the process where no candidate has an error below `f32::MAX`, as squares that overflow
//! bring about. Here the candidate nearest by levels stands in, and a block whose scale then is not
//! finite in f16 is an error that says which.

mod block;
mod codebook;
mod iq1_m;
mod iq1_s;
mod iq2;
mod iq3;
mod nearest;
mod split;
mod steps;
mod ternary;

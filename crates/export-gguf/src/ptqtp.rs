//! Trit-planes: a matrix as the sum of one, two or three ternary ones, found without calibration data.
//!
//! PTQTP (arXiv 2509.16989) approximates each group of 256 consecutive weights of a row by
//! `a0 t0 + a1 t1 + a2 t2` with trits `t` in {-1, 0, 1}. A group is a block of `TQ2_0`, so each plane
//! is a valid `TQ2_0` tensor of its own. `docs/ptqtp.md` has the formulas; every choice that they leave
//! open, the order of additions included, is that of fucina's solver, so that the bytes are its bytes.
//!
//! [`quantize_matrix`] is what the command line uses, eight groups side by side; [`solve_group`] is the
//! same one weight after the other, for groups of any length.

mod choice;
mod compose;
mod fits;
mod group;
mod lanes;
mod matrix;
mod options;
mod pack;
mod plan;
mod reference;
mod ridge;
mod search;
mod sets;
mod tied;

pub use choice::Choice;
pub use compose::Composed;
pub use fits::{Fit, Fits, json as fits_json, write_text as write_fits};
pub use group::{Solution, solve_group};
pub use matrix::{Quantized, Statistics, quantize_groups, quantize_matrix, reconstruct};
pub use options::{Error, Options};
pub use plan::{Request, plan, sets};
pub use reference::{Approximation, reconstruct_reference};
pub use sets::{Entry, Set, Sets, TIE_KEY, VERSION, VERSION_KEY, parse_plane_name, plane_name};

/// Weights per group: a block of `TQ2_0`.
pub const GROUP: usize = 256;

/// The most planes.
pub const MAX_PLANES: usize = 3;

//! Whole matrices.

use ggml_blocks::formats::tq2_0::Tq2_0;
use ggml_blocks::{Block, simd};
use rayon::prelude::*;

use super::lanes::Free;
use super::options::{Error, same, whole};
use super::pack::Pack;
use super::search::{ONE, THREE, TWO};
use super::tied::Tied;
use super::{GROUP, MAX_PLANES, Options, Solution};

/// How well planes fit, by what is stored. Sums, so that parts can be added.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Statistics {
    /// The sum of squared differences, over finite weights.
    pub error: f64,
    /// The sum of squared weights, over finite ones.
    pub power: f64,
    /// Weights that are NaN or infinite, taken as 0.
    pub not_finite: u64,
    /// Zero trits in each plane.
    pub zeros: [u64; MAX_PLANES],
    /// Groups.
    pub groups: u64,
    /// Rounds of all groups together.
    pub rounds: u64,
    /// Groups whose scales had not come to rest.
    pub unconverged: u64,
}

impl Statistics {
    /// Adds those of other groups.
    pub fn add(&mut self, other: &Self) {
        self.error += other.error;
        self.power += other.power;
        self.not_finite += other.not_finite;
        for (zeros, more) in self.zeros.iter_mut().zip(other.zeros) {
            *zeros += more;
        }
        self.groups += other.groups;
        self.rounds += other.rounds;
        self.unconverged += other.unconverged;
    }

    /// The Frobenius norm of the difference over that of the weights; 0 if all are zero.
    #[must_use]
    pub fn relative_error(&self) -> f64 {
        if self.power > 0.0 { (self.error / self.power).sqrt() } else { 0.0 }
    }

    /// Rounds per group.
    #[must_use]
    pub fn mean_rounds(&self) -> f64 {
        self.rounds as f64 / self.groups.max(1) as f64
    }

    /// The part of zero trits in each plane, of groups of `group_len` weights.
    #[must_use]
    pub fn zero_fractions(&self, group_len: usize) -> [f64; MAX_PLANES] {
        let weights = self.groups.max(1) as f64 * group_len as f64;
        self.zeros.map(|n| n as f64 / weights)
    }
}

/// A matrix as planes.
#[derive(Debug, Clone)]
pub struct Quantized {
    /// The planes, coarsest first: the blocks of the matrix's rows, one row behind the other.
    pub planes: Vec<Vec<Tq2_0>>,
    /// How well they fit.
    pub statistics: Statistics,
}

/// Groups that one thread takes at a time.
const BATCH: usize = 512;

/// Decomposes the rows of a matrix on all threads of the current rayon pool. Neither the planes nor the
/// statistics depend on how many those are.
///
/// # Errors
/// When an option makes no sense, `row_len` is no multiple of [`GROUP`], or the weights are no whole rows.
pub fn quantize_matrix(weights: &[f32], row_len: usize, options: &Options) -> Result<Quantized, Error> {
    options.check_packable()?;
    whole("weights per row", row_len, GROUP)?;
    if row_len == 0 {
        return Err(Error::Length { what: "weights per row", len: 0, wanted: GROUP });
    }
    whole("weights", weights.len(), row_len)?;
    let parts: Vec<(Vec<Vec<Tq2_0>>, Statistics)> = weights
        .par_chunks(BATCH * GROUP)
        .map(|weights| {
            let mut planes = vec![vec![EMPTY; weights.len() / GROUP]; options.planes];
            let mut out: Vec<&mut [Tq2_0]> = planes.iter_mut().map(Vec::as_mut_slice).collect();
            let statistics = quantize_groups(weights, options, &mut out)?;
            Ok((planes, statistics))
        })
        .collect::<Result<_, Error>>()?;
    let mut all = Quantized {
        planes: vec![Vec::with_capacity(weights.len() / GROUP); options.planes],
        statistics: Statistics::default(),
    };
    for (planes, statistics) in parts {
        for (whole, part) in all.planes.iter_mut().zip(planes) {
            whole.extend(part);
        }
        all.statistics.add(&statistics);
    }
    Ok(all)
}

/// A block to be filled.
pub(crate) const EMPTY: Tq2_0 = Tq2_0 { qs: [0; 64], d: ggml_blocks::F16::from_bits(0) };

/// Decomposes consecutive groups on this thread; `out` has a slice for each plane, with a block for each
/// group.
///
/// # Errors
/// When an option makes no sense, `weights` are no whole groups, or `out` has not the lengths it must have.
pub fn quantize_groups(
    weights: &[f32],
    options: &Options,
    out: &mut [&mut [Tq2_0]],
) -> Result<Statistics, Error> {
    options.check_packable()?;
    whole("weights", weights.len(), GROUP)?;
    same("planes to write", out.len(), options.planes)?;
    for plane in &*out {
        same("blocks to write", plane.len(), weights.len() / GROUP)?;
    }
    let mut solutions = vec![Solution::default(); weights.len() / GROUP];
    let (planes, solved) = (options.planes, &mut solutions[..]);
    if options.tie_scales {
        simd::dispatch_narrow(Tied { planes, weights, out: solved });
    } else {
        match planes {
            1 => simd::dispatch_narrow(Free::<1, 3> { weights, options, tuples: &ONE, out: solved }),
            2 => simd::dispatch_narrow(Free::<2, 9> { weights, options, tuples: &TWO, out: solved }),
            _ => simd::dispatch_narrow(Free::<3, 27> { weights, options, tuples: &THREE, out: solved }),
        }
    }
    let solutions = &solutions[..];
    Ok(match planes {
        1 => simd::dispatch_narrow(Pack::<1, 3> { weights, solutions, tuples: &ONE, out }),
        2 => simd::dispatch_narrow(Pack::<2, 9> { weights, solutions, tuples: &TWO, out }),
        _ => simd::dispatch_narrow(Pack::<3, 27> { weights, solutions, tuples: &THREE, out }),
    })
}

/// The sum of planes, added in f32 from the first on.
///
/// # Errors
/// When a plane has not a block for each 256 numbers of `out`.
pub fn reconstruct(planes: &[&[Tq2_0]], out: &mut [f32]) -> Result<(), Error> {
    whole("weights", out.len(), GROUP)?;
    out.fill(0.0);
    let mut values = [0.0; GROUP];
    for plane in planes {
        same("blocks of a plane", plane.len(), out.len() / GROUP)?;
        for (block, out) in plane.iter().zip(out.as_chunks_mut::<GROUP>().0) {
            block.decode(&mut values);
            for (sum, x) in out.iter_mut().zip(&values) {
                *sum += x;
            }
        }
    }
    Ok(())
}

//! How much a merge changes: the length of the change against that of the rows it changes.

use rayon::prelude::*;

use super::apply::Loaded;
use super::merged::{MergedSource, check_base, check_merged};
use super::resolve::{Merge, sides};
use crate::source::Source;
use crate::{Cancel, Error};

/// Rows are read in pieces of at least this many values.
const PIECE: u64 = 1 << 16;

/// A merge and how much it changes.
#[derive(Debug)]
pub struct Measured<'s, 'a> {
    /// The merge.
    pub merge: &'s Merge<'a>,
    /// The Frobenius norm of the change over that of the base's rows; infinite where these are all zero.
    pub change: f64,
}

/// Measures every merge of a source. Reads the base's changed tensors once, some of them at the same time.
///
/// # Errors
/// When values cannot be had, or `cancel` is set.
pub fn measure<'s, 'a>(
    source: &'s MergedSource<'a>,
    cancel: &Cancel,
) -> Result<Vec<Measured<'s, 'a>>, Error> {
    let tensors = source.by_tensor();
    let measured: Result<Vec<_>, Error> =
        tensors.into_par_iter().map(|(i, merges)| tensor(source.base(), i, merges, cancel)).collect();
    Ok(measured?.into_iter().flatten().collect())
}

fn tensor<'s, 'a>(
    base: &dyn Source,
    index: usize,
    merges: &'s [Merge<'a>],
    cancel: &Cancel,
) -> Result<Vec<Measured<'s, 'a>>, Error> {
    let t = &base.tensors()[index];
    let (rows, width) = sides(&t.dims);
    let loaded: Vec<Loaded> = merges.iter().map(Loaded::read).collect::<Result<_, _>>()?;
    let mut sums = vec![(0.0_f64, 0.0_f64); merges.len()];
    let step = (PIECE / width.max(1)).max(1);
    let (mut plain, mut changed, mut before) = (Vec::new(), Vec::new(), Vec::new());
    for first in (0..rows).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
        cancel.check()?;
        let last = rows.min(first + step);
        let len = usize::try_from((last - first) * width).unwrap_or(0);
        plain.resize(len, 0.0);
        base.values(index, first * width, &mut plain)?;
        let at = first * width;
        let of_tensor = |e| Error::tensor(&t.name, e);
        check_base(&plain, at, width).map_err(of_tensor)?;
        changed.clone_from(&plain);
        for (merge, sum) in loaded.iter().zip(&mut sums) {
            before.clone_from(&changed);
            merge.apply(&mut changed, at, width).map_err(of_tensor)?;
            let own = merge.rows();
            let (from, to) = (own.start.clamp(first, last), own.end.clamp(first, last));
            let range = ((from - first) * width) as usize..((to - first) * width) as usize;
            for i in range {
                sum.0 += (f64::from(changed[i]) - f64::from(before[i])).powi(2);
                sum.1 += f64::from(plain[i]).powi(2);
            }
        }
        check_merged(&changed, at, width).map_err(of_tensor)?;
        if let Some(bytes) = t.ty.row_bytes(last * width).zip(t.ty.row_bytes(first * width)) {
            base.release(index, bytes.1..bytes.0);
        }
    }
    let change = |(change, own): (f64, f64)| if change == 0.0 { 0.0 } else { (change / own).sqrt() };
    Ok(merges.iter().zip(sums).map(|(merge, sum)| Measured { merge, change: change(sum) }).collect())
}

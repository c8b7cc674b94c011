//! How well the planes of a run fit: gathered while it runs, told when it is over.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::sets::parse_plane_name;
use super::{Choice, GROUP, Statistics};
use crate::plan::{Plan, Step, Why};

/// The statistics of every piece of work, by step, matrix and place.
#[derive(Debug, Default)]
pub struct Fits(Mutex<BTreeMap<(usize, u64, u64), Statistics>>);

/// How well one tensor's planes fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The tensor's name.
    pub name: String,
    /// Its planes.
    pub planes: usize,
    /// Whether their scales are tied.
    pub tied: bool,
    /// The statistics of each of its matrices: one, or one for each expert.
    pub matrices: Vec<Statistics>,
}

impl Fits {
    /// Notes a piece: of which step of the plan, of which matrix of the tensor, and where in it.
    pub fn note(&self, step: usize, matrix: u64, start: u64, statistics: &Statistics) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert((step, matrix, start), *statistics);
    }

    /// One row for each tensor, in the plan's order. Pieces are added in theirs, so that nothing depends
    /// on which came first.
    #[must_use]
    pub fn of(&self, plan: &Plan) -> Vec<Fit> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut fits: Vec<(usize, u64, Fit)> = Vec::new();
        for (&(number, matrix, _), statistics) in &*all {
            let Some(Step { name, why: Why::Trits(Choice::Plane { of, tied, .. }), .. }) =
                plan.steps.get(number)
            else {
                continue;
            };
            if fits.last().is_none_or(|(last, ..)| *last != number) {
                let name = parse_plane_name(name).map_or(name.as_str(), |(base, _)| base).to_owned();
                fits.push((number, u64::MAX, Fit { name, planes: *of, tied: *tied, matrices: Vec::new() }));
            }
            let Some((_, last, fit)) = fits.last_mut() else { continue };
            if *last != matrix {
                fit.matrices.push(Statistics::default());
                *last = matrix;
            }
            if let Some(sum) = fit.matrices.last_mut() {
                sum.add(statistics);
            }
        }
        fits.into_iter().map(|(.., fit)| fit).collect()
    }
}

impl Fit {
    /// Over all matrices.
    #[must_use]
    pub fn total(&self) -> Statistics {
        total(&self.matrices)
    }

    /// The mean and the largest relative error of its matrices.
    #[must_use]
    pub fn errors(&self) -> (f64, f64) {
        let errors = self.matrices.iter().map(Statistics::relative_error);
        let sum: f64 = errors.clone().sum();
        (sum / self.matrices.len().max(1) as f64, errors.fold(0.0, f64::max))
    }

    fn json(&self) -> Value {
        let (total, (mean, max)) = (self.total(), self.errors());
        json!({
            "name": self.name,
            "planes": self.planes,
            "tied": self.tied,
            "matrices": self.matrices.len(),
            "relative_error": mean,
            "relative_error_max": max,
            "mean_rounds": total.mean_rounds(),
            "groups": total.groups,
            "unconverged_groups": total.unconverged,
            "not_finite": total.not_finite,
            "zero_fractions": total.zero_fractions(GROUP)[..self.planes],
        })
    }
}

fn total(all: &[Statistics]) -> Statistics {
    let mut sum = Statistics::default();
    all.iter().for_each(|s| sum.add(s));
    sum
}

/// All of them for machines.
#[must_use]
pub fn json(fits: &[Fit]) -> Value {
    fits.iter().map(Fit::json).collect()
}

/// A line for each tensor, and one for all.
///
/// # Errors
/// When `out` fails.
pub fn write_text(fits: &[Fit], out: &mut dyn Write) -> io::Result<()> {
    let wide = fits.iter().map(|f| f.name.chars().count()).max().unwrap_or(0);
    for fit in fits {
        let (total, (mean, max)) = (fit.total(), fit.errors());
        let error = match fit.matrices.len() {
            1 => format!("relative error {mean:.4}"),
            n => format!("{n} experts, relative error {mean:.4} (largest {max:.4})"),
        };
        writeln!(out, "{:wide$}  {error}, {}", fit.name, rest(&total))?;
    }
    if fits.len() > 1 {
        let sum = total(&fits.iter().map(Fit::total).collect::<Vec<_>>());
        let count = format!("{} tensors", fits.len());
        writeln!(out, "{count:wide$}  relative error {:.4}, {}", sum.relative_error(), rest(&sum))?;
    }
    Ok(())
}

fn rest(s: &Statistics) -> String {
    let lost = match s.not_finite {
        0 => String::new(),
        1 => ", 1 weight not finite: taken as 0".to_owned(),
        n => format!(", {n} weights not finite: taken as 0"),
    };
    format!("{:.1} rounds, {} of {} groups unconverged{lost}", s.mean_rounds(), s.unconverged, s.groups)
}

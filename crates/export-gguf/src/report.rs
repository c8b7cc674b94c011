//! What a run did: the summary for people and for machines.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::atomic::{Staged, Target};
use crate::emit::OutputFile;
use crate::look::plural;
use crate::plan::{self, Plan, Step, bits_per_weight, human_bytes};
use crate::ptqtp::{self, Fit};
use crate::run::Tally;
use crate::{Cancel, Error, sys};

/// The version of the JSON, raised when a field changes its meaning or goes.
const SCHEMA: u32 = 1;
/// How many tensors the summary names as those with the largest error.
const WORST: usize = 10;

/// The outcome of a run.
#[derive(Debug)]
pub struct Report<'a> {
    plan: &'a Plan,
    files: &'a [OutputFile],
    tallies: &'a [Tally],
    elapsed: Duration,
    peak_rss: Option<u64>,
    fits: &'a [Fit],
    merged: &'a [String],
}

/// Tensors that fared alike.
struct Group<'a> {
    first: &'a Step,
    why: String,
    tensors: usize,
    before: u64,
    after: u64,
    tally: Tally,
}

impl<'a> Report<'a> {
    /// A report of a run that has just ended.
    #[must_use]
    pub fn new(plan: &'a Plan, files: &'a [OutputFile], tallies: &'a [Tally], elapsed: Duration) -> Self {
        Self { plan, files, tallies, elapsed, peak_rss: sys::peak_rss(), fits: &[], merged: &[] }
    }

    /// Adds how well trit-planes fit.
    #[must_use]
    pub fn with_fits(mut self, fits: &'a [Fit]) -> Self {
        self.fits = fits;
        self
    }

    /// Adds the names of the tensors that adapters were merged into.
    #[must_use]
    pub fn with_merged(mut self, merged: &'a [String]) -> Self {
        self.merged = merged;
        self
    }

    fn groups(&self, each: bool) -> Vec<Group<'a>> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        for (step, tally) in self.plan.steps.iter().zip(self.tallies) {
            let why = step.why.to_string();
            let alike =
                |g: &&mut Group<'_>| (g.first.from, g.first.to) == (step.from, step.to) && g.why == why;
            match groups.iter_mut().find(alike).filter(|_| !each) {
                Some(group) => {
                    group.tensors += 1;
                    group.before += step.bytes_before;
                    group.after += step.bytes_after;
                    group.tally.add(tally);
                }
                None => groups.push(Group {
                    first: step,
                    why,
                    tensors: 1,
                    before: step.bytes_before,
                    after: step.bytes_after,
                    tally: *tally,
                }),
            }
        }
        groups
    }

    fn total_len(&self) -> u64 {
        self.files.iter().map(|f| f.layout.total_len()).sum()
    }

    fn bits(&self) -> f64 {
        bits_per_weight(self.plan.bytes().1, self.plan.elements())
    }

    /// The tensors with the largest relative errors, the worst first; exact ones are not among them.
    fn worst(&self) -> Vec<(&'a Step, f64)> {
        let steps = self.plan.steps.iter().zip(self.tallies);
        let mut all: Vec<(&Step, f64)> =
            steps.filter_map(|(s, t)| Some((s, t.relative_error().filter(|e| *e > 0.0)?))).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all.truncate(WORST);
        all
    }

    /// Writes a table and a closing line. `each` lists every tensor instead of groups.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn write_text(&self, each: bool, out: &mut dyn Write) -> io::Result<()> {
        ptqtp::write_fits(self.fits, out)?;
        let groups = self.groups(each);
        let label = |g: &Group<'_>| match each {
            true => g.first.name.escape_debug().to_string(),
            false => plural(g.tensors, "tensor"),
        };
        let wide = groups.iter().map(|g| label(g).len()).max().unwrap_or(0);
        for g in &groups {
            let (before, after) = (human_bytes(g.before), human_bytes(g.after));
            let (from, to) = (g.first.from, g.first.to);
            write!(out, "{:wide$}  {from:>7} -> {to:7}  {before:>10} -> {after:>10}  {}", label(g), g.why)?;
            if let Some(error) = g.tally.relative_error() {
                write!(out, ", relative error {}", short(error))?;
            }
            writeln!(out)?;
        }
        for (step, tally) in self.plan.steps.iter().zip(self.tallies).filter(|(_, t)| t.overflows > 0) {
            writeln!(
                out,
                "warning: {}: {} values out of the range of {}, the largest {:e}",
                step.name.escape_debug(),
                tally.overflows,
                step.to,
                tally.largest
            )?;
        }
        plan::write_notes(self.plan, out)?;
        if !self.merged.is_empty() {
            writeln!(out, "adapters merged into {}", plural(self.merged.len(), "tensor"))?;
        }
        let worst = self.worst();
        if worst.len() > 1 {
            let list: Vec<String> = worst
                .iter()
                .map(|(s, e)| format!("{} ({}) {}", s.name.escape_debug(), s.to, short(*e)))
                .collect();
            writeln!(out, "largest relative errors: {}", list.join(", "))?;
        }
        let rss = self.peak_rss.map_or_else(|| "unknown".to_owned(), human_bytes);
        let first = self.files.first().map(|f| f.path.display().to_string()).unwrap_or_default();
        let parts = match self.files.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        writeln!(
            out,
            "{first}{parts}: {}, {} -> {}, {:.3} bits per weight, {:.2} s, peak RSS {rss}",
            plural(self.plan.steps.len(), "tensor"),
            human_bytes(self.plan.bytes().0),
            human_bytes(self.total_len()),
            self.bits(),
            self.elapsed.as_secs_f64(),
        )
    }

    /// Writes the plan as [`plan::write_json`] does, with what came of it. `docs/report.md` in the
    /// repository describes every field.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut all = plan::json(self.plan);
        all["schema"] = json!(SCHEMA);
        if let Some(tensors) = all.get_mut("tensors").and_then(Value::as_array_mut) {
            for (tensor, tally) in tensors.iter_mut().zip(self.tallies) {
                tensor["overflows"] = json!(tally.overflows);
                tensor["relative_error"] = json!(tally.relative_error());
            }
        }
        all["worst"] = self.worst().iter().map(|(s, _)| s.name.as_str()).collect();
        if !self.fits.is_empty() {
            all["ptqtp"] = ptqtp::fits_json(self.fits);
        }
        if !self.merged.is_empty() {
            all["merged"] = json!(self.merged);
        }
        all["files"] = self.files.iter().map(OutputFile::json).collect();
        all["seconds"] = json!(self.elapsed.as_secs_f64());
        all["peak_rss"] = json!(self.peak_rss);
        serde_json::to_writer_pretty(&mut *out, &all)?;
        writeln!(out)
    }
}

/// Two or more digits of a relative error.
fn short(error: f64) -> String {
    match error {
        0.0 => "0".to_owned(),
        e if e < 0.001 => format!("{e:.1e}"),
        e => format!("{e:.4}"),
    }
}

/// A report's place on disk, held while the model is being written, so that a place that cannot be
/// written to is known beforehand.
#[derive(Debug)]
pub struct ReportFile(Staged);

impl ReportFile {
    /// Takes the place.
    ///
    /// # Errors
    /// As [`Staged::create`].
    pub fn create(path: &Path, force: bool, inputs: &[PathBuf]) -> Result<Self, Error> {
        Staged::create(&[Target { path: path.to_path_buf(), len: 0 }], force, inputs).map(Self)
    }

    /// Writes the report; it appears whole.
    ///
    /// # Errors
    /// When the system refuses, or `cancel` is set; the place is then as it was.
    pub fn write(self, report: &Report<'_>, cancel: &Cancel) -> Result<(), Error> {
        let mut text = Vec::new();
        report.write_json(&mut text)?;
        self.0.write_at(0, &text, 0)?;
        self.0.commit(cancel)
    }
}

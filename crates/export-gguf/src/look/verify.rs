//! `verify`: names every fault of a model, not just the first.
//!
//! A fault is what makes a reader fail or compute nonsense; a warning is what it can live with. With
//! `--lenient`, what the lenient reader accepts is a warning. Memory stays bounded: tensor data is
//! released behind the check.

mod checkpoint;
mod metadata;
mod planes;
mod set;
mod structure;
mod tokenizer;
mod values;

use std::io::Write;
use std::path::Path;

use gguf_format::Gguf;
use gguf_mmap::Mapping;
use serde::Serialize;

use super::Input;
use super::json;
use super::text::{Size, plural};
use crate::st::is_checkpoint;
use crate::{Error, Outcome};
use structure::Directory;

/// The arguments of `verify`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes: 0 without faults (warnings included), 1 with faults, 2 for a wrong \
                        command line.")]
pub struct VerifyArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields document themselves")]
    pub input: Input,

    /// Look at structure and metadata only, not at the tensors' values
    ///
    /// Example: `export-gguf verify model.gguf --no-values`
    #[arg(long)]
    pub no_values: bool,
}

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    Fault,
    Warning,
}

/// One problem, in words.
#[derive(Debug, Serialize)]
struct Problem {
    severity: Severity,
    file: String,
    text: String,
}

/// What was found so far.
#[derive(Debug, Default, Serialize)]
struct Log {
    problems: Vec<Problem>,
}

impl Log {
    fn add(&mut self, severity: Severity, file: &Path, text: impl ToString) {
        let file = file.display().to_string();
        self.problems.push(Problem { severity, file, text: text.to_string() });
    }

    fn fault(&mut self, file: &Path, text: impl ToString) {
        self.add(Severity::Fault, file, text);
    }

    fn warning(&mut self, file: &Path, text: impl ToString) {
        self.add(Severity::Warning, file, text);
    }

    fn count(&self, severity: Severity) -> usize {
        self.problems.iter().filter(|p| p.severity == severity).count()
    }
}

#[derive(Serialize)]
struct Report {
    faults: usize,
    warnings: usize,
    files: usize,
    tensors: usize,
    bytes_checked: u64,
    #[serde(flatten)]
    log: Log,
}

/// A file under examination: its bytes, and its directory as far as it can be read.
struct File {
    mapping: Mapping,
    directory: Option<Directory>,
}

impl File {
    fn path(&self) -> &Path {
        self.mapping.path().unwrap_or(Path::new("-"))
    }

    fn gguf(&self) -> Option<Gguf<'_>> {
        self.directory.as_ref()?.gguf(&self.mapping)
    }
}

/// Runs the command, writing to `out`.
///
/// # Errors
/// When the file cannot be opened or `out` not written. Faults are no error but an outcome.
pub fn run(args: &VerifyArgs, out: &mut dyn Write) -> Result<Outcome, Error> {
    let checkpoint = is_checkpoint(&args.input.file);
    let report = if checkpoint { checkpoint::examine(args)? } else { examine(args)? };
    let clean = report.faults == 0;
    if args.input.json {
        json::write(out, &report)?;
    } else {
        write(&report, out)?;
    }
    Ok(if clean { Outcome::Ok } else { Outcome::Faults })
}

fn examine(args: &VerifyArgs) -> Result<Report, Error> {
    let mut log = Log::default();
    let files = set::open(&args.input, &mut log)?;
    if set::has_metadata(&files[0]) {
        metadata::check(&files, &mut log);
        planes::check(&files, &mut log);
    }
    let mut bytes_checked = 0;
    for file in &files {
        let Some(directory) = &file.directory else { continue };
        values::warn_of_oddities(file, directory, &mut log);
        if !args.no_values {
            bytes_checked += values::check(file, directory, &mut log);
        }
    }
    Ok(Report {
        faults: log.count(Severity::Fault),
        warnings: log.count(Severity::Warning),
        files: files.len(),
        tensors: files.iter().filter_map(|f| f.directory.as_ref()).map(Directory::len).sum(),
        bytes_checked,
        log,
    })
}

fn write(report: &Report, out: &mut dyn Write) -> Result<(), Error> {
    for problem in &report.log.problems {
        let severity = if problem.severity == Severity::Fault { "fault" } else { "warning" };
        writeln!(out, "{}: {severity}: {}", problem.file, problem.text)?;
    }
    writeln!(
        out,
        "{}, {}; {} in {}, {} of values checked",
        plural(report.faults, "fault"),
        plural(report.warnings, "warning"),
        plural(report.tensors, "tensor"),
        plural(report.files, "file"),
        Size(report.bytes_checked),
    )?;
    Ok(())
}

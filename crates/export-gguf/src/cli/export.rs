//! Transcoding from the command line: arguments, and the run from plan to summary.

use std::io::{IsTerminal, Write};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};
use gguf_format::GgmlType;

use super::dtype::DtypeParser;
use super::lora::LoraArgs;
use super::mix::MixArgs;
use super::ptqtp::{self, PtqtpArgs};
use super::size::parse_size;
use crate::emit::{OutputFile, Split, lay_out};
use crate::imatrix::Imatrix;
use crate::lora::{self, Conversion, MergedSource};
use crate::mix;
use crate::plan::{self, Experts, Plan, Request, human_bytes};
use crate::progress::Progress;
use crate::ptqtp::{Fits, Statistics};
use crate::report::{Report, ReportFile};
use crate::run::{self, Observer, Options, Overflow};
use crate::source::{GgufSource, Source};
use crate::{Cancel, Error, Outcome};

/// The arguments of a transcoding run.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The model to read: a GGUF file, or part 1 of a split set
    ///
    /// Example: `export-gguf --from-gguf in-f16.gguf --out out.gguf --dtype q4_k`
    #[arg(long, value_name = "FILE", required_unless_present = "from_ptqtp")]
    pub from_gguf: Option<PathBuf>,

    /// Where the result appears, whole or not at all
    ///
    /// Example: `export-gguf --from-gguf in.gguf --out copy.gguf`
    #[arg(long, value_name = "FILE", required_unless_present = "dry_run")]
    pub out: Option<PathBuf>,

    /// The type of all weights
    ///
    /// Weights are tensors named `*.weight` with two or more dimensions and no `norm` in the name,
    /// stored as F32, F16 or BF16. Rows that the type's blocks do not divide keep their type.
    ///
    /// Example: `export-gguf --from-gguf in-f16.gguf --out out.gguf --dtype q6_k`
    #[arg(long, value_name = "TYPE", value_parser = DtypeParser, default_value = "verbatim", hide_possible_values = true)]
    pub dtype: Dtype,

    /// The type of expert weights (`*_exps.weight`), which may be quantized again
    ///
    /// Everything else follows --dtype.
    ///
    /// Example: `export-gguf --from-gguf moe.gguf --out out.gguf --experts-dtype q4_k`
    #[arg(long, value_name = "TYPE", value_parser = DtypeParser, hide_possible_values = true)]
    pub experts_dtype: Option<Dtype>,

    /// Weigh errors by an importance matrix, as llama-imatrix writes it (.gguf or .dat)
    ///
    /// It changes the bytes of most types, and `IQ1_S`, `IQ2_XXS` and `IQ2_XS` cannot do without.
    ///
    /// Example: `export-gguf --from-gguf in-f16.gguf --out out.gguf --dtype iq2_xs --imatrix im.gguf`
    #[arg(long, value_name = "FILE")]
    pub imatrix: Option<PathBuf>,

    /// What to do with values that F16 or BF16 cannot hold
    ///
    /// Example: `export-gguf --from-gguf bf16.gguf --out f16.gguf --dtype f16 --overflow clamp`
    #[arg(long, value_name = "WHAT", default_value = "refuse")]
    pub overflow: OverflowArg,

    /// Write a split set whose files hold at most this much tensor data (M and G are 10^6 and 10^9)
    ///
    /// The files are named after --out: NAME-00001-of-00003.gguf and so on.
    ///
    /// Example: `export-gguf --from-gguf in.gguf --out out.gguf --split-max-size 4G`
    #[arg(long, value_name = "N(M|G)", value_parser = parse_size)]
    pub split_max_size: Option<NonZeroU64>,

    /// Write a split set whose files hold at most this many tensors
    ///
    /// Example: `export-gguf --from-gguf in.gguf --out out.gguf --split-max-tensors 128`
    #[arg(long, value_name = "N")]
    pub split_max_tensors: Option<NonZeroUsize>,

    /// Worker threads, at most 256; the bytes do not depend on it [default: all cores]
    ///
    /// Example: `export-gguf --from-gguf in.gguf --out out.gguf --dtype q4_k --threads 2`
    #[arg(long, value_name = "N", value_parser = super::size::parse_threads)]
    pub threads: Option<NonZeroUsize>,

    /// Replace an existing target
    ///
    /// Example: `export-gguf --from-gguf in.gguf --out out.gguf --dtype q8_0 --force`
    #[arg(long)]
    pub force: bool,

    /// Also read files with gaps, reordered or unpadded tensors
    ///
    /// Example: `export-gguf --from-gguf odd.gguf --out tidy.gguf --lenient`
    #[arg(long)]
    pub lenient: bool,

    /// Print what would be done, and do nothing
    ///
    /// Example: `export-gguf --from-gguf in-f16.gguf --dtype q4_k --dry-run`
    #[arg(long)]
    pub dry_run: bool,

    /// Print the plan (with --dry-run) or the summary as JSON
    ///
    /// Example: `export-gguf --from-gguf in-f16.gguf --dtype q4_k --dry-run --json`
    #[arg(long)]
    pub json: bool,

    /// Also write the summary as JSON to this file, which appears whole or not at all
    ///
    /// docs/report.md describes the fields; --json prints the same.
    ///
    /// Example: `export-gguf --from-gguf in-f16.gguf --out out.gguf --mix q4_k_m --report out.json`
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    pub report: Option<PathBuf>,

    /// Do not read back what was encoded to find each tensor's error
    ///
    /// Example: `export-gguf --from-gguf in-f16.gguf --out out.gguf --dtype q8_0 --no-measure`
    #[arg(long)]
    pub no_measure: bool,

    /// Print errors only
    ///
    /// Example: `export-gguf --from-gguf in.gguf --out out.gguf --dtype q4_k --quiet`
    #[arg(short, long, conflicts_with_all = ["json", "verbose", "dry_run"])]
    pub quiet: bool,

    /// Show every tensor in the summary, not only the groups
    ///
    /// Example: `export-gguf --from-gguf in.gguf --out out.gguf --dtype tq2_0 --verbose`
    #[arg(short, long)]
    pub verbose: bool,

    // Headings hold for what follows, so these stand last.
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields document themselves")]
    pub mix: MixArgs,

    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields document themselves")]
    pub lora: LoraArgs,

    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields document themselves")]
    pub ptqtp: PtqtpArgs,
}

/// What a type argument means: a type, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    /// Leave tensors as they are.
    Verbatim,
    /// This type.
    Type(GgmlType),
}

impl Dtype {
    /// The type, if there is one.
    pub(super) fn ty(self) -> Option<GgmlType> {
        match self {
            Self::Verbatim => None,
            Self::Type(ty) => Some(ty),
        }
    }
}

/// `--overflow`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OverflowArg {
    /// Name the tensor, the count and the largest value, and write nothing
    Refuse,
    /// Write the largest value that the type holds
    Clamp,
    /// Write infinity
    Keep,
}

impl From<OverflowArg> for Overflow {
    fn from(arg: OverflowArg) -> Self {
        match arg {
            OverflowArg::Refuse => Self::Refuse,
            OverflowArg::Clamp => Self::Clamp,
            OverflowArg::Keep => Self::Keep,
        }
    }
}

/// Plans, and unless it is a dry run, writes.
///
/// # Errors
/// Whatever stands in the way; the target is then as it was.
pub(super) fn run(args: &ExportArgs, out: &mut dyn Write) -> Result<Outcome, Error> {
    if let Some(from) = &args.ptqtp.from_ptqtp {
        return ptqtp::compose(args, from, out);
    }
    let Some(from) = &args.from_gguf else {
        return Err(Error::Usage("--from-gguf is missing".into()));
    };
    if let Some(request) = args.ptqtp.request()? {
        return ptqtp::decompose(args, from, &request, out);
    }
    let started = Instant::now();
    let base = GgufSource::open(from, args.lenient)?;
    let gguf = base.model().gguf();
    let adapters = args.lora.open()?;
    let merges = lora::resolve(&adapters, base.tensors(), &gguf)?;
    let source = MergedSource::new(&base, &adapters, merges);
    let experts = match args.experts_dtype {
        None => Experts::Follow,
        Some(Dtype::Verbatim) => Experts::Keep,
        Some(Dtype::Type(ty)) => Experts::To(ty),
    };
    let dtype = args.dtype.ty();
    let requantize = args.mix.allow_requantize;
    if requantize && dtype.is_none() && args.mix.mix.is_none() {
        return Err(Error::Usage(
            "--allow-requantize needs a type to write: name one with --dtype or --mix".into(),
        ));
    }
    let named = dtype.is_some() || args.mix.names_types();
    lora::check_types(&source, Conversion { named, requantize }).map_err(|e| e.in_file(from))?;
    let request = Request { dtype, experts, requantize };
    let imatrix = importance(args)?;
    let plan = match args.mix.request(args.imatrix.as_deref())? {
        Some(request) => mix::plan(&source, &gguf, &request, imatrix.as_ref()),
        None => plan::plan(source.tensors(), request, imatrix.as_ref()),
    };
    let mut plan = plan.map_err(|e| e.in_file(from))?;
    lora::mark(&mut plan, &source, imatrix.as_ref()).map_err(|e| e.in_file(from))?;
    if args.dry_run {
        let files = planned_files(args, &plan, &source).map_err(|e| e.in_file(from))?;
        return dry_run(args, &plan, &source, &files, out).map_err(|e| e.in_file(from));
    }
    execute(args, from, &source, &plan, imatrix.as_ref(), started, out)
}

/// The importance matrix, if one is given and has entries that are wanted.
pub(super) fn importance(args: &ExportArgs) -> Result<Option<Imatrix>, Error> {
    let Some(path) = &args.imatrix else { return Ok(None) };
    let imatrix = Imatrix::open(path).map_err(|e| Error::Refused(e.to_string()))?;
    Ok(args.mix.filter(imatrix))
}

/// Writes what is planned, and tells what came of it.
pub(super) fn execute(
    args: &ExportArgs,
    from: &Path,
    source: &dyn Source,
    plan: &Plan,
    imatrix: Option<&Imatrix>,
    started: Instant,
    out: &mut dyn Write,
) -> Result<Outcome, Error> {
    let Some(target) = &args.out else {
        return Err(Error::Usage("--out is missing".into()));
    };
    let cancel = Cancel::on_signals()?;
    let files = lay_out(plan, source, target, split(args)).map_err(|e| e.in_file(from))?;
    let defaults = Options::default();
    let inputs: Vec<PathBuf> = args.imatrix.iter().chain(&args.mix.tensor_type_file).cloned().collect();
    let options = Options {
        threads: args.threads.unwrap_or(defaults.threads),
        overflow: args.overflow.into(),
        force: args.force,
        measure: !args.no_measure,
        inputs: &inputs,
        ..defaults
    };
    let report_file = report_file(args, source, &inputs, &files)?;
    let progress = if args.quiet || args.json {
        Progress::silent()
    } else {
        Progress::new(plan.bytes().0, std::io::stderr().is_terminal())
    };
    let watch = Watch { progress, fits: Fits::default() };
    let done = run::run(plan, &files, source, imatrix, options, &watch, &cancel);
    watch.progress.finish();
    let tallies = done.map_err(|e| e.in_file(from))?;
    let fits = watch.fits.of(plan);
    let merged: Vec<String> = (0..source.tensors().len())
        .filter(|&i| source.is_merged(i))
        .map(|i| source.tensors()[i].name.clone())
        .collect();
    let report = Report::new(plan, &files, &tallies, started.elapsed()).with_fits(&fits).with_merged(&merged);
    // The model stands, so a signal does not stop what is left to say about it.
    report_file
        .map_or(Ok(()), |file| file.write(&report, &Cancel::default()))
        .and_then(|()| tell(args, &report, out))
        .map_err(|e| Error::Written { path: target.clone(), source: Box::new(e) })?;
    Ok(Outcome::Ok)
}

/// Prints what came of a run.
fn tell(args: &ExportArgs, report: &Report<'_>, out: &mut dyn Write) -> Result<(), Error> {
    if args.json {
        report.write_json(out)?;
    } else if !args.quiet {
        report.write_text(args.verbose, out)?;
    }
    Ok(out.flush()?)
}

/// Shows how far a run is, and gathers how well trit-planes fit.
struct Watch {
    progress: Progress,
    fits: Fits,
}

impl Observer for Watch {
    fn advance(&self, bytes: u64) {
        self.progress.advance(bytes);
    }

    fn solved(&self, step: usize, matrix: u64, start: u64, found: &Statistics) {
        self.fits.note(step, matrix, start, found);
    }
}

/// The place for `--report`, which is none of the other files.
fn report_file(
    args: &ExportArgs,
    source: &dyn Source,
    inputs: &[PathBuf],
    files: &[OutputFile],
) -> Result<Option<ReportFile>, Error> {
    let Some(path) = &args.report else { return Ok(None) };
    let mut others = source.inputs();
    others.extend_from_slice(inputs);
    others.extend(files.iter().map(|f| f.path.clone()));
    if others.iter().any(|other| place(other) == place(path)) {
        return Err(Error::Usage(format!("--report: {} is another file of this run", path.display())));
    }
    ReportFile::create(path, args.force, &others).map(Some)
}

/// A path that is the same however its folder is spelled; the file need not exist.
fn place(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (folder.canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path.to_path_buf(),
    }
}

/// The files that a run would write, laid out so that a dry run refuses what the run would.
pub(super) fn planned_files(
    args: &ExportArgs,
    plan: &Plan,
    source: &dyn Source,
) -> Result<Vec<OutputFile>, Error> {
    let target = args.out.as_deref().unwrap_or(Path::new("out.gguf"));
    lay_out(plan, source, target, split(args))
}

/// Prints the plan, what adapters change, and the files of a split set.
fn dry_run(
    args: &ExportArgs,
    plan: &Plan,
    source: &MergedSource<'_>,
    files: &[OutputFile],
    out: &mut dyn Write,
) -> Result<Outcome, Error> {
    let measured = lora::measure(source, &Cancel::on_signals()?)?;
    if args.json {
        let mut all = plan::json(plan);
        all["files"] = files.iter().map(OutputFile::json).collect();
        if !source.adapters().is_empty() {
            all["adapters"] = lora::json(source, &measured);
        }
        serde_json::to_writer_pretty(&mut *out, &all).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        plan::write_text(plan, out)?;
        for file in files.iter().filter(|_| files.len() > 1) {
            let (tensors, bytes) = (file.steps.len(), human_bytes(file.layout.total_len()));
            writeln!(out, "{}: {tensors} tensors, {bytes}", file.path.display())?;
        }
        lora::write_text(source, &measured, out)?;
    }
    Ok(Outcome::Ok)
}

fn split(args: &ExportArgs) -> Option<Split> {
    (args.split_max_size.is_some() || args.split_max_tensors.is_some()).then(|| Split {
        max_bytes: args.split_max_size.map_or(u64::MAX, NonZeroU64::get),
        max_tensors: args.split_max_tensors.map_or(usize::MAX, NonZeroUsize::get),
    })
}

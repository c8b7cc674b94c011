//! The options of trit-planes.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::export::{Dtype, ExportArgs, execute, importance, planned_files};
use crate::plan::{self, Plan};
use crate::ptqtp::{self, Composed, Options, Request};
use crate::source::{GgufSource, Source};
use crate::{Error, Outcome};

/// What decomposes weights into trit-planes, and what puts them together again.
#[derive(Debug, Args)]
#[command(next_help_heading = "Trit-planes (PTQTP)")]
pub struct PtqtpArgs {
    /// Decompose weights into K planes of `TQ2_0`, without calibration data [default: 2]
    ///
    /// Weights are matrices named `*.weight` and experts named `*_exps.weight`, of whatever type that can
    /// be decoded, with rows of a multiple of 256. Norms, `token_embd` and `output.weight` stay. Everything
    /// else passes through as it is, planes that are there already too. docs/ptqtp.md says what this is
    /// good for.
    ///
    /// Example: `export-gguf --from-gguf big-bf16.gguf --out big-ptqtp.gguf --ptqtp=3`
    #[arg(long, value_name = "K", num_args = 0..=1, require_equals = true, value_parser = planes)]
    pub ptqtp: Option<Option<u8>>,

    /// The number of planes, another way to say --ptqtp=K
    ///
    /// Example: `export-gguf --from-gguf in.gguf --out out.gguf --ptqtp --ptqtp-planes 3`
    #[arg(long, value_name = "K", value_parser = planes)]
    pub ptqtp_planes: Option<u8>,

    /// Tie the planes' scales by a factor of 3, for kernels that fold two planes into one
    ///
    /// Example: `export-gguf --from-gguf in.gguf --out out.gguf --ptqtp --ptqtp-tie`
    #[arg(long)]
    pub ptqtp_tie: bool,

    /// Only weights whose name contains one of these; `token_embd` and `output.weight` can be named
    ///
    /// Example: `export-gguf --from-gguf moe.gguf --out out.gguf --ptqtp --ptqtp-include ffn_up_exps,ffn_gate_exps`
    #[arg(long, value_name = "SUB[,SUB]", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub ptqtp_include: Vec<String>,

    /// No weights whose name contains one of these, even if included
    ///
    /// Example: `export-gguf --from-gguf in.gguf --out out.gguf --ptqtp --ptqtp-exclude blk.0.,attn_v`
    #[arg(long, value_name = "SUB[,SUB]", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub ptqtp_exclude: Vec<String>,

    /// A model with trit-planes, each set of which becomes one tensor again: their sum
    ///
    /// For tools that know nothing of planes. --dtype is the type of these tensors (F32 without it);
    /// everything else passes through as it is.
    ///
    /// Example: `export-gguf --from-ptqtp planes.gguf --out plain.gguf --dtype f16`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from_gguf", "ptqtp", "ptqtp_planes", "ptqtp_tie", "ptqtp_include", "ptqtp_exclude", "experts_dtype", "mix", "adapters", "allow_requantize"])]
    pub from_ptqtp: Option<PathBuf>,
}

impl PtqtpArgs {
    /// What to decompose, if that is what was asked for: any of the options asks for it.
    ///
    /// # Errors
    /// [`Error::Usage`] when two options contradict each other.
    pub(super) fn request(&self) -> Result<Option<Request>, Error> {
        let asked = self.ptqtp.is_some() || self.ptqtp_planes.is_some() || self.ptqtp_tie;
        if !asked && self.ptqtp_include.is_empty() && self.ptqtp_exclude.is_empty() {
            return Ok(None);
        }
        let planes = match (self.ptqtp.flatten(), self.ptqtp_planes) {
            (Some(a), Some(b)) if a != b => {
                return Err(Error::Usage(format!(
                    "--ptqtp={a} and --ptqtp-planes {b} contradict each other"
                )));
            }
            (a, b) => a.or(b).unwrap_or(2),
        };
        if self.ptqtp_tie && planes == 1 {
            return Err(Error::Usage(
                "--ptqtp-tie ties the scales of two or three planes, not of one".into(),
            ));
        }
        let options = Options { tie_scales: self.ptqtp_tie, ..Options::with_planes(planes.into()) };
        let (include, exclude) = (self.ptqtp_include.clone(), self.ptqtp_exclude.clone());
        Ok(Some(Request { options, include, exclude }))
    }
}

/// Parses 1, 2 or 3.
fn planes(text: &str) -> Result<u8, String> {
    match text {
        "1" => Ok(1),
        "2" => Ok(2),
        "3" => Ok(3),
        _ => Err("there can be 1, 2 or 3 planes".to_owned()),
    }
}

/// Turns weights into planes.
pub(super) fn decompose(
    args: &ExportArgs,
    from: &Path,
    request: &Request,
    out: &mut dyn Write,
) -> Result<Outcome, Error> {
    refuse_two_passes(args)?;
    let started = Instant::now();
    let source = GgufSource::open(from, args.lenient)?;
    let plan = ptqtp::plan(source.tensors(), &source.model().gguf(), request);
    let plan = plan.map_err(|e| e.in_file(from))?;
    if args.dry_run {
        planned_files(args, &plan, &source).map_err(|e| e.in_file(from))?;
        return print(args, &plan, out);
    }
    execute(args, from, &source, &plan, None, started, out)
}

/// Turns planes into weights.
pub(super) fn compose(args: &ExportArgs, from: &Path, out: &mut dyn Write) -> Result<Outcome, Error> {
    let started = Instant::now();
    let imatrix = importance(args)?;
    let planes = GgufSource::open(from, args.lenient)?;
    let source = Composed::new(planes).map_err(|e| e.in_file(from))?;
    let plan = source.plan(args.dtype.ty(), imatrix.as_ref()).map_err(|e| e.in_file(from))?;
    if args.dry_run {
        planned_files(args, &plan, &source).map_err(|e| e.in_file(from))?;
        return print(args, &plan, out);
    }
    execute(args, from, &source, &plan, imatrix.as_ref(), started, out)
}

fn print(args: &ExportArgs, plan: &Plan, out: &mut dyn Write) -> Result<Outcome, Error> {
    if args.json {
        plan::write_json(plan, out)?;
    } else {
        plan::write_text(plan, out)?;
    }
    Ok(Outcome::Ok)
}

/// Options that would quantize twice, or quantize what is not merged yet.
fn refuse_two_passes(args: &ExportArgs) -> Result<(), Error> {
    let others = [
        ("--dtype", args.dtype != Dtype::Verbatim),
        ("--experts-dtype", args.experts_dtype.is_some()),
        ("--mix", args.mix.mix.is_some()),
        ("--imatrix", args.imatrix.is_some()),
        ("--adapters", !args.lora.adapters.is_empty()),
        ("--allow-requantize", args.mix.allow_requantize),
    ];
    let Some((other, _)) = others.into_iter().find(|(_, given)| *given) else { return Ok(()) };
    Err(Error::Usage(format!(
        "{other} has no say in what --ptqtp does: run two passes, one with {other} and one with --ptqtp"
    )))
}

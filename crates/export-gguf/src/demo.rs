//! `demo`: makes a model out of nothing, transcodes it, and checks the result.

mod gauss;
mod model;
mod vocabulary;

use std::io::{IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use gguf_format::GgmlType;
use rayon::prelude::*;

use crate::emit::{OutputFile, lay_out};
use crate::look::Input;
use crate::look::verify::{self, VerifyArgs};
use crate::plan::{self, Plan, Request, human_bytes};
use crate::progress::Progress;
use crate::report::Report;
use crate::run::{self, Options, Tally};
use crate::source::{GgufSource, Source};
use crate::{Cancel, Error, Outcome};

pub use model::{Shape, SyntheticModel};

/// The arguments of `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// The folder to keep the two models in; without one they are removed at the end
    ///
    /// Example: `export-gguf demo models`
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,

    /// How many weights
    ///
    /// Example: `export-gguf demo --size 672M models`
    #[arg(long, value_name = "SIZE", default_value = "23M")]
    pub size: Size,

    /// Make the F16 model and stop
    ///
    /// Example: `export-gguf demo --size 672M --only-model models`
    #[arg(long, requires = "dir")]
    pub only_model: bool,

    /// Replace models of an earlier demo
    ///
    /// Example: `export-gguf demo models --force`
    #[arg(long)]
    pub force: bool,

    /// Worker threads, at most 256 [default: all cores]
    ///
    /// Example: `export-gguf demo --threads 2`
    #[arg(long, value_name = "N", value_parser = crate::cli::parse_threads)]
    pub threads: Option<NonZeroUsize>,
}

/// The sizes a demo comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Size {
    /// 2 million weights, 4 MB as F16
    #[value(name = "2M")]
    Tiny,
    /// 23 million weights, 46 MB as F16
    #[value(name = "23M")]
    Small,
    /// 672 million weights, 1.3 GB as F16: the model of the benchmarks
    #[value(name = "672M")]
    Benchmark,
}

impl Size {
    fn shape(self) -> Shape {
        match self {
            Self::Tiny => Shape { blocks: 2, hidden: 256, ffn: 512, heads: 4, kv_heads: 2, vocabulary: 1024 },
            Self::Small => {
                Shape { blocks: 6, hidden: 512, ffn: 1536, heads: 8, kv_heads: 4, vocabulary: 4096 }
            }
            Self::Benchmark => {
                Shape { blocks: 12, hidden: 2048, ffn: 5632, heads: 32, kv_heads: 8, vocabulary: 32_000 }
            }
        }
    }
}

/// What the steps of a demo have in common.
struct Demo<'a> {
    options: Options<'static>,
    cancel: Cancel,
    out: &'a mut dyn Write,
}

/// Runs the command, writing to `out`.
///
/// # Errors
/// When the folder cannot be written, or the result is not what it must be.
pub fn run(args: &DemoArgs, out: &mut dyn Write) -> Result<Outcome, Error> {
    let cancel = Cancel::on_signals()?;
    let temporary;
    let dir: &Path = match &args.dir {
        Some(dir) => {
            std::fs::create_dir_all(dir).map_err(Error::io("make folder", dir))?;
            dir
        }
        None => {
            temporary = tempfile::Builder::new()
                .prefix("export-gguf-demo-")
                .tempdir()
                .map_err(Error::io("make a folder in", std::env::temp_dir()))?;
            temporary.path()
        }
    };
    let defaults = Options::default();
    let options =
        Options { threads: args.threads.unwrap_or(defaults.threads), force: args.force, ..defaults };
    let mut demo = Demo { options, cancel, out };
    let (f16, q4_k) = (dir.join("demo-f16.gguf"), dir.join("demo-q4_k.gguf"));
    let model = SyntheticModel::new(args.size.shape());
    writeln!(demo.out, "making a llama-shaped model of {:.1} million weights", model.weights() as f64 / 1e6)?;
    demo.write(&model, model.plan(), &f16, false)?;
    if args.only_model {
        return Ok(Outcome::Ok);
    }
    let source = GgufSource::open(&f16, false)?;
    writeln!(demo.out, "transcoding it to Q4_K")?;
    let plan =
        plan::plan(source.tensors(), Request { dtype: Some(GgmlType::Q4_K), ..Request::default() }, None)?;
    demo.write(&source, plan, &q4_k, true)?;
    writeln!(demo.out, "verifying: every block decoded and compared with its source")?;
    demo.verify(&source, &q4_k)?;
    if args.dir.is_none() {
        writeln!(demo.out, "the models are removed again; `demo DIR` keeps them")?;
    }
    Ok(Outcome::Ok)
}

impl Demo<'_> {
    /// Writes one model and says how it went, with the table of what became what if it was `transcoded`.
    fn write(&mut self, source: &dyn Source, plan: Plan, path: &Path, transcoded: bool) -> Result<(), Error> {
        self.out.flush()?;
        let started = Instant::now();
        let files: Vec<OutputFile> = lay_out(&plan, source, path, None)?;
        let progress = Progress::new(plan.bytes().0, std::io::stderr().is_terminal());
        let options = Options { measure: transcoded, ..self.options };
        let done = run::run(&plan, &files, source, None, options, &progress, &self.cancel);
        progress.finish();
        let tallies = done?;
        let elapsed = started.elapsed();
        if transcoded {
            Report::new(&plan, &files, &tallies, elapsed).write_text(false, self.out)?;
        } else {
            let len = human_bytes(files.iter().map(|f| f.layout.total_len()).sum());
            let (tensors, seconds) = (plan.steps.len(), elapsed.as_secs_f64());
            writeln!(self.out, "{}: {tensors} tensors, {len}, {seconds:.2} s", path.display())?;
        }
        Ok(())
    }

    /// Reads the result back and compares all values with the source's.
    fn verify(&mut self, source: &GgufSource, path: &Path) -> Result<(), Error> {
        self.out.flush()?;
        let started = Instant::now();
        let result = GgufSource::open(path, false)?;
        let tallies = (0..source.tensors().len())
            .into_par_iter()
            .map(|i| compare(source, &result, i, &self.cancel))
            .collect::<Result<Vec<Tally>, Error>>()?;
        // Copies would hide the error of the rest.
        let mut encoded = Tally::default();
        let types = source.tensors().iter().zip(result.tensors());
        tallies.iter().zip(types).filter(|(_, (a, b))| a.ty != b.ty).for_each(|(t, _)| encoded.add(t));
        let worst = tallies.iter().zip(source.tensors()).max_by(|(a, _), (b, _)| {
            a.relative_error().unwrap_or(0.0).total_cmp(&b.relative_error().unwrap_or(0.0))
        });
        if let Some((tally, tensor)) = worst {
            writeln!(
                self.out,
                "{} tensors as planned, relative error {:.4}, at most {:.4} ({}), {:.2} s",
                tallies.len(),
                encoded.relative_error().unwrap_or(0.0),
                tally.relative_error().unwrap_or(0.0),
                tensor.name,
                started.elapsed().as_secs_f64()
            )?;
        }
        let input = Input { file: path.to_path_buf(), lenient: false, json: false };
        match verify::run(&VerifyArgs { input, no_values: false }, self.out)? {
            Outcome::Ok => Ok(()),
            Outcome::Faults => Err(Error::Refused(format!("{}: the result has faults", path.display()))),
        }
    }
}

/// The difference between one tensor's values in two models; more than a quantization error is a fault.
fn compare(a: &GgufSource, b: &GgufSource, index: usize, cancel: &Cancel) -> Result<Tally, Error> {
    /// `Q4_K` on normally distributed weights stays well below this.
    const LARGEST: f64 = 0.1;
    const PIECE: u64 = 64 * 1024;
    let (x, y) = (&a.tensors()[index], &b.tensors()[index]);
    if (&x.name, &x.dims) != (&y.name, &y.dims) {
        return Err(Error::tensor(&y.name, format!("stands where {} should", x.name)));
    }
    let mut tally = Tally::default();
    let (mut left, mut right) = (vec![0.0; PIECE as usize], vec![0.0; PIECE as usize]);
    let mut start = 0;
    while start < x.elements() {
        cancel.check()?;
        let len = PIECE.min(x.elements() - start) as usize;
        a.values(index, start, &mut left[..len])?;
        b.values(index, start, &mut right[..len])?;
        tally.compare(&left[..len], &right[..len]);
        start += len as u64;
    }
    a.release(index, 0..x.bytes);
    b.release(index, 0..y.bytes);
    match tally.relative_error() {
        Some(e) if e > LARGEST => Err(Error::tensor(&x.name, format!("relative error {e:.4} is too large"))),
        _ => Ok(tally),
    }
}

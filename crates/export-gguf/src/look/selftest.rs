//! `selftest`: does this build read what it writes, on this machine, with this CPU's code paths?

use std::io::Write;

use ggml_blocks::{FORMATS, Format};
use gguf_format::{Builder, Gguf, Value};
use gguf_mmap::Model;
use serde::Serialize;

use super::json;
use super::sample::{ROW, SCALARS, Sample, weights};
use crate::{Error, Outcome};

/// The arguments of `selftest`.
#[derive(Debug, clap::Args)]
pub struct SelftestArgs {
    /// Print JSON instead of text
    ///
    /// Example: `export-gguf selftest --json`
    #[arg(long)]
    pub json: bool,
}

/// One check and its outcome: an empty fault is a pass.
#[derive(Serialize)]
struct Check {
    name: String,
    fault: Option<String>,
}

#[derive(Serialize)]
struct Report {
    passed: usize,
    failed: usize,
    checks: Vec<Check>,
}

type Verdict = Result<(), String>;

/// Runs the command, writing to `out`.
///
/// # Errors
/// When `out` cannot be written. A failed check is no error but an outcome.
pub fn run(args: &SelftestArgs, out: &mut dyn Write) -> Result<Outcome, Error> {
    let sample = Sample::new()?;
    let bytes = sample.bytes()?;
    let mut checks = Vec::new();
    let mut check = |name: &str, verdict: Verdict| {
        checks.push(Check { name: name.to_owned(), fault: verdict.err() });
    };
    check("the same bytes streamed in chunks of any size", streamed(&sample, &bytes));
    check("strict parse, nothing to report", parse(&bytes));
    check("values and arrays as written", values(&bytes));
    check("tensors as written", tensors(&sample, &bytes));
    check("parsed and written again, the same bytes", rewritten(&bytes));
    check("mapped from a file, the same tensors", mapped(&sample, &bytes));
    for format in &FORMATS {
        check(&format!("decode {}", format.name()), decode(format, &sample));
        if format.can_encode() {
            check(&format!("encode {}", format.name()), encode(format, &sample));
        }
    }
    let failed = checks.iter().filter(|c| c.fault.is_some()).count();
    let report = Report { passed: checks.len() - failed, failed, checks };
    if args.json {
        json::write(out, &report)?;
    } else {
        report.write(out)?;
    }
    Ok(if failed == 0 { Outcome::Ok } else { Outcome::Faults })
}

impl Report {
    fn write(&self, out: &mut dyn Write) -> Result<(), Error> {
        for check in &self.checks {
            match &check.fault {
                None => writeln!(out, "ok      {}", check.name)?,
                Some(fault) => writeln!(out, "FAILED  {}: {fault}", check.name)?,
            }
        }
        Ok(writeln!(out, "{} passed, {} failed", self.passed, self.failed)?)
    }
}

fn expect(holds: bool, fault: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(fault()) }
}

fn text(e: impl ToString) -> String {
    e.to_string()
}

fn streamed(sample: &Sample, bytes: &[u8]) -> Verdict {
    let layout = sample.layout().map_err(text)?;
    for size in [1, 7, 4096] {
        let mut stream = layout.stream(Vec::new());
        for chunk in sample.data().into_iter().flat_map(|data| data.chunks(size)) {
            stream.write(chunk).map_err(text)?;
        }
        let streamed = stream.finish().map_err(text)?;
        expect(streamed == bytes, || format!("chunks of {size} give other bytes"))?;
    }
    Ok(())
}

fn parse(bytes: &[u8]) -> Verdict {
    let gguf = Gguf::parse(bytes).map_err(text)?;
    let findings: Vec<String> = gguf.findings().iter().map(text).collect();
    expect(findings.is_empty(), || findings.join(", "))
}

fn values(bytes: &[u8]) -> Verdict {
    let gguf = Gguf::parse(bytes).map_err(text)?;
    for (key, value) in SCALARS {
        expect(gguf.get(key) == Some(value), || format!("{key} is {:?}", gguf.get(key)))?;
    }
    for kv in gguf.metadata() {
        let Value::Array(array) = kv.value() else { continue };
        let decoded = array.iter().count();
        let fault = || format!("{} gives {decoded} of {} elements", kv.key(), array.len());
        expect(decoded == array.len(), fault)?;
    }
    Ok(())
}

fn tensors(sample: &Sample, bytes: &[u8]) -> Verdict {
    let gguf = Gguf::parse(bytes).map_err(text)?;
    for tensor in &sample.tensors {
        let found = gguf.tensor(&tensor.name).and_then(|t| gguf.data(&t));
        expect(found == Some(&tensor.bytes), || format!("{} differs", tensor.name))?;
    }
    Ok(())
}

fn rewritten(bytes: &[u8]) -> Verdict {
    let gguf = Gguf::parse(bytes).map_err(text)?;
    let mut builder = Builder::from_gguf(&gguf);
    let mut data = Vec::new();
    for tensor in gguf.tensors() {
        builder.copy_tensor(&tensor).map_err(text)?;
        data.push(gguf.data(&tensor).ok_or("a tensor without bytes")?);
    }
    let again = builder.layout().and_then(|layout| layout.whole(&data)).map_err(text)?;
    expect(again == bytes, || "other bytes".to_owned())
}

fn mapped(sample: &Sample, bytes: &[u8]) -> Verdict {
    let mut file = tempfile::NamedTempFile::new().map_err(text)?;
    file.write_all(bytes).map_err(text)?;
    let mut model = Model::open(file.path()).map_err(text)?;
    let handles: Vec<_> = sample.tensors.iter().map(|t| model.tensor_bytes(&t.name)).collect();
    drop(model.take_mappings());
    for (tensor, handle) in sample.tensors.iter().zip(handles) {
        expect(handle.as_deref() == Some(&tensor.bytes), || format!("{} differs", tensor.name))?;
    }
    Ok(())
}

fn bytes_of<'a>(format: &Format, sample: &'a Sample) -> Result<&'a [u8], String> {
    let tensor = sample.tensors.iter().find(|t| t.ty == format.info().id);
    Ok(&tensor.ok_or("no such tensor in the sample")?.bytes)
}

/// Decoded as rows and block by block, bit for bit the same.
fn decode(format: &Format, sample: &Sample) -> Verdict {
    let bytes = bytes_of(format, sample)?;
    let mut whole = weights();
    let mut single = vec![0.0; whole.len()];
    format.decode_rows(bytes, ROW, &mut whole).map_err(text)?;
    for (block, out) in single.chunks_exact_mut(format.block_len()).enumerate() {
        format.decode_range(bytes, block..block + 1, out).map_err(text)?;
    }
    let differ = whole.iter().zip(&single).position(|(a, b)| a.to_bits() != b.to_bits());
    expect(differ.is_none(), || format!("weight {} depends on how it is asked for", differ.unwrap_or(0)))
}

/// Encoded weights come back about as they were: the error that a format's bits allow, not more.
fn encode(format: &Format, sample: &Sample) -> Verdict {
    let original = weights();
    let mut decoded = vec![0.0; original.len()];
    format.decode_rows(bytes_of(format, sample)?, ROW, &mut decoded).map_err(text)?;
    let square = |it: &mut dyn Iterator<Item = f32>| it.map(|v| f64::from(v * v)).sum::<f64>();
    let error = square(&mut original.iter().zip(&decoded).map(|(a, b)| a - b));
    let relative = (error / square(&mut original.iter().copied())).sqrt();
    let bits = format.block_bytes() as f64 * 8.0 / format.block_len() as f64;
    // A uniform quantizer of b bits errs by 2^-b of the amplitude; scales and minima take their share
    // of the bits, hence two to spare. Of plain floats, exponents take some: BF16 has 8 bits left.
    let allowed = 2.0_f64.powf(2.0 - bits.min(10.0)).min(0.95);
    expect(relative <= allowed, || format!("relative error {relative:.4}, {allowed:.4} allowed"))
}

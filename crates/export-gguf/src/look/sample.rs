//! `gen`: writes a reference sample file.
//!
//! The sample has a key of every wire type, an array of every element type, and a tensor of every format.
//! Its bytes depend on nothing but this program's version.

use std::io::Write;
use std::path::PathBuf;

use ggml_blocks::{EncodeError, FORMATS, Format};
use gguf_format::{Builder, GgmlType, Importance, Layout, Str, Value};
use serde::Serialize;

use super::json;
use crate::atomic::{Staged, Target};
use crate::{Cancel, Error, Outcome};

/// The arguments of `gen`.
#[derive(Debug, clap::Args)]
pub struct GenArgs {
    /// Where to write the sample
    ///
    /// Example: `export-gguf gen sample.gguf`
    #[arg(value_name = "OUT")]
    pub out: PathBuf,

    /// Replace an existing file
    ///
    /// Example: `export-gguf gen sample.gguf --force`
    #[arg(long)]
    pub force: bool,

    /// Print JSON instead of text
    ///
    /// Example: `export-gguf gen sample.gguf --json`
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct Report {
    out: String,
    keys: usize,
    tensors: usize,
    bytes: u64,
}

/// Runs the command, writing to `out`.
///
/// # Errors
/// When the sample or `out` cannot be written.
pub fn run(args: &GenArgs, out: &mut dyn Write) -> Result<Outcome, Error> {
    let sample = Sample::new()?;
    let bytes = sample.bytes()?;
    let cancel = Cancel::on_signals()?;
    let target = Target { path: args.out.clone(), len: bytes.len() as u64 };
    let staged = Staged::create(&[target], args.force, &[])?;
    staged.write_at(0, &bytes, 0)?;
    staged.commit(&cancel)?;
    let report = Report {
        out: args.out.display().to_string(),
        keys: sample.keys,
        tensors: sample.tensors.len(),
        bytes: bytes.len() as u64,
    };
    if args.json {
        json::write(out, &report)?;
    } else {
        let Report { out: path, keys, tensors, bytes } = report;
        writeln!(out, "{path}: {keys} keys, {tensors} tensors, {bytes} bytes")?;
    }
    Ok(Outcome::Ok)
}

/// Row length of the sample's tensors, a multiple of every block length.
pub(super) const ROW: usize = 256;

/// Rows of the sample's tensors: so many that a `Q2_0` tensor cannot be taken for the other layout of
/// its type id.
pub(super) const ROWS: usize = 8;

/// One tensor of the sample.
pub(super) struct Tensor {
    pub(super) name: String,
    pub(super) ty: GgmlType,
    pub(super) bytes: Vec<u8>,
}

/// The sample, not yet laid out.
pub(super) struct Sample {
    pub(super) builder: Builder,
    pub(super) tensors: Vec<Tensor>,
    keys: usize,
}

impl Sample {
    pub(super) fn new() -> Result<Self, Error> {
        let mut builder = Builder::new();
        builder.set("general.architecture", "sample");
        builder.set("general.name", "export-gguf reference sample");
        builder.set("general.quantization_version", 2_u32);
        for (key, value) in SCALARS {
            builder.set(key, value);
        }
        let arrays = put_arrays(&mut builder);
        let mut tensors = Vec::new();
        for format in &FORMATS {
            let name = format!("sample.{}.weight", format.name().to_lowercase());
            let ty = format.info().id;
            builder.tensor(&name, &[ROW as u64, ROWS as u64], ty).map_err(refused)?;
            tensors.push(Tensor { name, ty, bytes: tensor_bytes(format).map_err(refused)? });
        }
        Ok(Self { builder, tensors, keys: 3 + SCALARS.len() + arrays })
    }

    pub(super) fn layout(&self) -> Result<Layout, Error> {
        self.builder.layout().map_err(refused)
    }

    pub(super) fn data(&self) -> Vec<&[u8]> {
        self.tensors.iter().map(|t| t.bytes.as_slice()).collect()
    }

    /// The whole file.
    pub(super) fn bytes(&self) -> Result<Vec<u8>, Error> {
        self.layout()?.whole(&self.data()).map_err(refused)
    }
}

fn refused(e: impl std::error::Error) -> Error {
    Error::Refused(format!("the sample cannot be made: {e}"))
}

/// One key of every wire type but arrays, each with a value that a careless reader gets wrong.
pub(super) const SCALARS: [(&str, Value<'static>); 14] = [
    ("sample.u8", Value::U8(u8::MAX)),
    ("sample.i8", Value::I8(i8::MIN)),
    ("sample.u16", Value::U16(u16::MAX)),
    ("sample.i16", Value::I16(i16::MIN)),
    ("sample.u32", Value::U32(u32::MAX)),
    ("sample.i32", Value::I32(i32::MIN)),
    ("sample.u64", Value::U64(u64::MAX)),
    ("sample.i64", Value::I64(i64::MIN)),
    ("sample.f32", Value::F32(f32::from_bits(1))),
    ("sample.f64", Value::F64(f64::MAX)),
    ("sample.bool", Value::Bool(true)),
    ("sample.string", Value::String(Str::new("grüße, 世界\n".as_bytes()))),
    ("sample.string.empty", Value::String(Str::new(b""))),
    ("sample.string.bytes", Value::String(Str::new(b"\xff\x00 is no text"))),
];

/// Sets an array of every element type, and tells how many.
fn put_arrays(b: &mut Builder) -> usize {
    let mut count = 0;
    macro_rules! arrays {
        ($($ty:ident: [$($value:expr),*];)+) => {$(
            let values: &[$ty] = &[$($value),*];
            b.set(concat!("sample.array.", stringify!($ty)), values);
            count += 1;
        )+};
    }
    arrays! {
        u8: [0, 1, u8::MAX];
        i8: [i8::MIN, -1, i8::MAX];
        u16: [0, u16::MAX];
        i16: [i16::MIN, i16::MAX];
        u32: [0, u32::MAX];
        i32: [i32::MIN, i32::MAX];
        u64: [0, u64::MAX];
        i64: [i64::MIN, i64::MAX];
        f32: [-0.0, f32::MIN_POSITIVE, f32::MAX];
        f64: [-0.0, f64::MIN_POSITIVE, f64::MAX];
        bool: [true, false, true];
    }
    b.set("sample.array.string", ["", "a", "ü"]);
    b.set("sample.array.empty", Vec::<f32>::new());
    count + 2
}

/// Weights in [-1, 1) that every machine makes alike, from a linear congruence.
pub(super) fn weights() -> Vec<f32> {
    let mut numbers = Numbers(1);
    (0..ROW * ROWS).map(|_| (numbers.next() >> 40) as f32 / (1 << 23) as f32 - 1.0).collect()
}

/// The multiplier is Knuth's for 64 bits; the upper bits are the good ones.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0
    }
}

/// [`weights`] in this format, or for one that cannot be encoded here, blocks of arbitrary bits whose
/// scales are finite.
fn tensor_bytes(format: &Format) -> Result<Vec<u8>, EncodeError> {
    let weights = weights();
    let len = weights.len() / format.block_len() * format.block_bytes();
    if format.can_encode() {
        let mut bytes = vec![0; len];
        let importance = vec![1.0; ROW];
        let importance = (format.importance() == Importance::Required).then_some(&*importance);
        format.encode_rows(&weights, ROW, importance, &mut bytes)?;
        return Ok(bytes);
    }
    if format.info().id == GgmlType::F64 {
        return Ok(weights.iter().flat_map(|&w| f64::from(w).to_le_bytes()).collect());
    }
    let mut numbers = Numbers(format.info().id.0.into());
    let mut bytes = Vec::with_capacity(len);
    while bytes.len() < len {
        let block: Vec<u8> = (0..format.block_bytes()).map(|_| (numbers.next() >> 56) as u8).collect();
        if format.check_finite(&block).is_ok() {
            bytes.extend(block);
        }
    }
    Ok(bytes)
}

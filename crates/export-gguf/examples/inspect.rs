//! Exercise 1: look into a model without reading its weights.
//!
//! `cargo run -p export-gguf --example inspect [FILE]`; without a file it makes a small one.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::collections::BTreeMap;
use std::error::Error;

use export_gguf::demo::{Shape, SyntheticModel};
use export_gguf::{Cancel, emit, run};
use gguf_format::Value;
use gguf_mmap::Model;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let path = match std::env::args_os().nth(1) {
        Some(path) => path.into(),
        None => {
            let path = dir.path().join("small.gguf");
            let shape = Shape { blocks: 2, hidden: 256, ffn: 512, heads: 4, kv_heads: 2, vocabulary: 512 };
            let model = SyntheticModel::new(shape);
            let plan = model.plan();
            let files = emit::lay_out(&plan, &model, &path, None)?;
            run::run(&plan, &files, &model, None, run::Options::default(), &(), &Cancel::default())?;
            path
        }
    };
    // Opening maps the file and checks the whole header; no tensor byte is touched.
    let model = Model::open(&path)?;
    let gguf = model.gguf();
    println!("{}: version {}, alignment {}", path.display(), gguf.version(), gguf.alignment());
    for entry in gguf.metadata() {
        match entry.value() {
            Value::Array(a) => println!("  {} = {} elements", entry.key(), a.len()),
            value => println!("  {} = {value:?}", entry.key()),
        }
    }
    let mut types: BTreeMap<String, (usize, u64, u64)> = BTreeMap::new();
    for tensor in model.tensors() {
        let row = types.entry(tensor.info.ty().to_string()).or_default();
        *row = (row.0 + 1, row.1 + tensor.info.elements(), row.2 + tensor.info.byte_len());
    }
    for (ty, (tensors, weights, bytes)) in &types {
        println!("{ty:>6}: {tensors} tensors, {weights} weights, {bytes} bytes");
    }
    if types.is_empty() {
        return Err("the model has no tensors".into());
    }
    Ok(())
}

//! Exercise 5: transcode a model without ever holding it.
//!
//! Makes a model of 300 MB in a temporary folder, streams it to `Q8_0`, and checks that this process
//! never had more than a fraction of it in memory, mapped pages included.
//!
//! `cargo run --release -p export-gguf --example streaming_transcoder`

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::path::Path;

use export_gguf::demo::{Shape, SyntheticModel};
use export_gguf::plan::{self, Plan, Request, human_bytes};
use export_gguf::source::{GgufSource, Source};
use export_gguf::{Cancel, emit, peak_rss, run};
use gguf_format::GgmlType;

/// The bound on this process's memory.
const BOUND: u64 = 128 << 20;

fn write(plan: &Plan, source: &dyn Source, path: &Path) -> Result<u64, Box<dyn Error>> {
    let files = emit::lay_out(plan, source, path, None)?;
    run::run(plan, &files, source, None, run::Options::default(), &(), &Cancel::default())?;
    Ok(path.metadata()?.len())
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let shape = Shape { blocks: 8, hidden: 1024, ffn: 4096, heads: 16, kv_heads: 8, vocabulary: 16_384 };
    let model = SyntheticModel::new(shape);
    let input = dir.path().join("f16.gguf");
    let before = write(&model.plan(), &model, &input)?;

    let source = GgufSource::open(&input, false)?;
    let request = Request { dtype: Some(GgmlType::Q8_0), ..Request::default() };
    let plan = plan::plan(source.tensors(), request, None)?;
    let after = write(&plan, &source, &dir.path().join("q8_0.gguf"))?;

    println!("{} -> {}", human_bytes(before), human_bytes(after));
    let Some(peak) = peak_rss() else {
        println!("this system does not tell a process its peak memory; the bound holds where it does");
        return Ok(());
    };
    println!("peak resident memory {}, bound {}", human_bytes(peak), human_bytes(BOUND));
    if peak > BOUND {
        return Err("the transcoder held more of the model than it may".into());
    }
    Ok(())
}

//! Exercise 3: parse a file, write it again, and compare byte for byte; at once and in a stream.
//!
//! `cargo run -p export-gguf --example reemit_and_compare [FILE]`

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;

use gguf_format::{Builder, GgmlType, Gguf};

fn sample() -> Result<Vec<u8>, Box<dyn Error>> {
    let mut b = Builder::new();
    b.set("general.architecture", "llama")
        .set("general.alignment", 64_u32)
        .set("x.nan", f32::from_bits(0x7FA0_0001))
        .set("x.texts", vec!["one", "", "\u{2581}three"]);
    b.tensor("token_embd.weight", &[32, 3], GgmlType::Q4_0)?.tensor("norm.weight", &[5], GgmlType::F32)?;
    Ok(b.layout()?.whole(&[&[9; 54], &[7; 20]])?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let original = match std::env::args_os().nth(1) {
        Some(path) => std::fs::read(path)?,
        None => sample()?,
    };
    let gguf = Gguf::parse(&original)?;

    // Declare everything again; keys are copied as bytes, so even a NaN keeps its payload.
    let mut builder = Builder::from_gguf(&gguf);
    for tensor in gguf.tensors() {
        builder.copy_tensor(&tensor)?;
    }
    let layout = builder.layout()?;
    let data: Vec<&[u8]> =
        gguf.tensors().map(|t| gguf.data(&t).ok_or("no data")).collect::<Result<_, _>>()?;
    let whole = layout.whole(&data)?;

    // The same through a stream, in pieces of seven bytes.
    let mut stream = layout.stream(Vec::new());
    for piece in data.iter().flat_map(|d| d.chunks(7)) {
        stream.write(piece).map_err(|e| e.to_string())?;
    }
    let streamed = stream.finish().map_err(|e| e.to_string())?;

    println!("{} bytes read, {} written, {} streamed", original.len(), whole.len(), streamed.len());
    if whole != streamed {
        return Err("the two ways out differ".into());
    }
    match original.iter().zip(&whole).position(|(a, b)| a != b) {
        None if original.len() == whole.len() => {
            println!("identical");
            Ok(())
        }
        at => Err(format!("the files differ, first at byte {:#x}", at.unwrap_or(whole.len())).into()),
    }
}

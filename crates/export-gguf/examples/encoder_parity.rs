//! Exercise 4: encoders held to bytes that ggml itself produced.
//!
//! `golden/` has, per format, what ggml makes of the input rows. This compares the last three
//! inputs, weights of a real model among them, for every format that encodes without importance.
//!
//! `cargo run -p export-gguf --example encoder_parity`

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::fs;
use std::path::Path;

use ggml_blocks::FORMATS;

/// The last inputs of each golden, in their order, with their row lengths.
const INPUTS: [(&str, usize); 3] = [("gaussian", 768), ("heavy-tails", 768), ("minilm", 1536)];

fn main() -> Result<(), Box<dyn Error>> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden");
    let mut inputs = Vec::new();
    for (name, row_len) in INPUTS {
        let bytes = fs::read(golden.join(format!("inputs/{name}.f32")))?;
        let values: Vec<f32> = bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        inputs.push((values, row_len));
    }
    let mut compared = 0;
    for format in FORMATS.iter().filter(|f| f.can_encode()) {
        let path = golden.join(format!("blocks/{}/none.bin", format.name().to_lowercase()));
        let Ok(reference) = fs::read(&path) else { continue };
        let mut encoded = Vec::new();
        for (values, row_len) in &inputs {
            let mut bytes = vec![0; values.len() / format.block_len() * format.block_bytes()];
            format.encode_rows(values, *row_len, None, &mut bytes)?;
            encoded.extend(bytes);
        }
        let tail = &reference[reference.len() - encoded.len()..];
        if let Some(at) = encoded.iter().zip(tail).position(|(a, b)| a != b) {
            let block = at / format.block_bytes();
            return Err(format!("{}: block {block} differs from ggml's", format.name()).into());
        }
        println!("{:8} {} bytes equal ggml's", format.name(), encoded.len());
        compared += 1;
    }
    if compared < 5 {
        return Err(format!("only {compared} formats were compared").into());
    }
    Ok(())
}

//! Exercise 2: a parser that no input gets down.
//!
//! Every prefix of a valid file, and every single byte of its header set to four hostile values:
//! each gives a model or an error that says where, never a panic.
//!
//! `cargo run -p export-gguf --example hostile_input`

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::panic::catch_unwind;

use gguf_format::{Builder, GgmlType, Gguf};

fn main() -> Result<(), Box<dyn Error>> {
    let mut b = Builder::new();
    b.set("general.architecture", "llama").set("general.alignment", 32_u32).set("x.list", vec![1_u8, 2, 3]);
    b.tensor("a.weight", &[32, 2], GgmlType::Q8_0)?.tensor("b", &[3], GgmlType::F32)?;
    let layout = b.layout()?;
    let valid = layout.whole(&[&[1; 68], &[2; 12]])?;

    let (mut accepted, mut refused) = (0, 0);
    let mut look = |bytes: &[u8]| -> Result<(), String> {
        match catch_unwind(|| Gguf::parse(bytes).map(|g| g.tensors().len()).map_err(|e| e.to_string())) {
            Err(_) => Err(format!("the parser panicked on {} bytes", bytes.len())),
            Ok(Ok(_)) => {
                accepted += 1;
                Ok(())
            }
            Ok(Err(message)) => {
                refused += 1;
                if refused % 400 == 1 {
                    println!("refused: {message}");
                }
                if message.is_empty() { Err("an error without words".into()) } else { Ok(()) }
            }
        }
    };
    for len in 0..valid.len() {
        look(&valid[..len])?;
    }
    for at in 0..layout.header().len() {
        for hostile in [0x00, 0x7F, 0x80, 0xFF] {
            let mut bytes = valid.clone();
            bytes[at] = hostile;
            look(&bytes)?;
        }
    }
    println!("{refused} inputs refused, {accepted} accepted, no panic");
    // Changing a byte of a name or a value gives another valid file; most changes do not.
    if refused == 0 || accepted == 0 {
        return Err("the parser does not tell good from bad".into());
    }
    Ok(())
}

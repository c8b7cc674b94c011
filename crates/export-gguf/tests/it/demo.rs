//! The README's first command.

use gguf_format::{GgmlType, Gguf};

use crate::support::*;

#[test]
fn the_demo_makes_transcodes_and_verifies() {
    let place = Place::new();
    let ran = place.run(&["demo", "models"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("F16 -> Q4_K") && ran.out.contains("relative error 0.0"), "{}", ran.out);
    let f16 = place.read("models/demo-f16.gguf");
    let g = Gguf::parse(&f16).unwrap();
    assert_eq!(g.tensor("blk.5.ffn_down.weight").unwrap().ty(), GgmlType::F16);
    assert_eq!(g.get("tokenizer.ggml.tokens").unwrap().as_array().unwrap().len(), 4096);
    assert_eq!(ty(&place.read("models/demo-q4_k.gguf"), "output.weight"), GgmlType::Q4_K);
    // The same bytes on every machine, or benchmarks would not be about the same thing.
    let fnv = |h: u64, b: &u8| (h ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3);
    assert_eq!(
        f16.iter().fold(0xcbf2_9ce4_8422_2325, fnv),
        0x0,
        "{:#x}",
        f16.iter().fold(0xcbf2_9ce4_8422_2325, fnv)
    );
    let again = place.run(&["demo", "models"]);
    assert!(again.code == 1 && again.err.contains("--force"), "{}", again.err);
}

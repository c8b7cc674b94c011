//! The README's first command.

use gguf_format::{GgmlType, Gguf};

use crate::support::*;

#[test]
fn the_model_is_the_same_on_every_machine() {
    let place = Place::new();
    let ran = place.run(&["demo", "models", "--only-model"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let file = place.read("models/demo-f16.gguf");
    // FNV over words: benchmarks on two machines are about the same weights.
    let (words, rest) = file.as_chunks::<8>();
    let mix = |h: u64, x: u64| (h ^ x).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = words.iter().map(|w| u64::from_le_bytes(*w)).fold(0xcbf2_9ce4_8422_2325, mix);
    let hash = rest.iter().map(|b| u64::from(*b)).fold(hash, mix);
    assert_eq!((file.len(), hash), (46_255_840, 0xea80_c493_518f_e39a));
    let again = place.run(&["demo", "models", "--only-model"]);
    assert!(again.code == 1 && again.err.contains("--force"), "{}", again.err);
}

#[test]
fn the_demo_makes_transcodes_and_verifies() {
    let place = Place::new();
    let ran = place.run(&["demo", "models", "--size", "2M"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("F16 -> Q4_K") && ran.out.contains("relative error 0.0"), "{}", ran.out);
    assert!(ran.out.contains("0 faults, 0 warnings"), "{}", ran.out);
    let f16 = place.read("models/demo-f16.gguf");
    let g = Gguf::parse(&f16).unwrap();
    assert_eq!(g.tensor("blk.1.ffn_down.weight").unwrap().ty(), GgmlType::F16);
    assert_eq!(g.get("tokenizer.ggml.tokens").unwrap().as_array().unwrap().len(), 1024);
    assert_eq!(ty(&place.read("models/demo-q4_k.gguf"), "output.weight"), GgmlType::Q4_K);
}

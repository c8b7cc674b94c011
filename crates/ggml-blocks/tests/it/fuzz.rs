//! The fuzz bodies on seeds: every format with bytes and numbers of several kinds.

use crate::{Random, fuzz_bodies};

/// Bytes that mean something as scales, or as numbers.
fn seeds() -> Vec<Vec<u8>> {
    let mut random = Random(0x5eed);
    let floats = |f: &dyn Fn(usize) -> f32| (0..512).flat_map(|i| f(i).to_le_bytes()).collect::<Vec<u8>>();
    vec![
        Vec::new(),
        vec![0; 700],
        vec![0xff; 700],
        vec![0x7c; 300],
        random.bytes(1100),
        floats(&|i| (i as f32 * 0.37).sin()),
        floats(&|i| if i == 300 { f32::NAN } else { 1.0 }),
        floats(&|i| if i % 2 == 0 { f32::MAX } else { f32::MIN }),
        floats(&|i| f32::from_bits(i as u32)),
        floats(&|i| (i as f32 - 256.0) * 1e30),
        floats(&|_| -0.0),
        floats(&|i| if i == 17 { 3e4 } else { 1e-3 }),
    ]
}

#[test]
fn decode_seeds() {
    for format in 0..ggml_blocks::FORMATS.len() as u8 {
        for seed in seeds() {
            fuzz_bodies::decode(&[&[format][..], &seed].concat());
        }
    }
}

#[test]
fn encode_seeds() {
    for format in 0..ggml_blocks::FORMATS.len() as u8 {
        for (i, seed) in seeds().iter().enumerate() {
            fuzz_bodies::encode(&[&[format, i as u8][..], seed].concat());
        }
    }
}

//! The codebook encoders where ggml stops, or writes what is no number: a finite block or an error
//! that says where, the same on every SIMD level.

use ggml_blocks::simd::{Level, with_level};
use ggml_blocks::{EncodeError, FORMATS, Format};
use gguf_format::Importance;

use crate::Random;

fn formats() -> impl Iterator<Item = &'static Format> {
    FORMATS.iter().filter(|f| ["IQ1_", "IQ2_", "IQ3_"].iter().any(|family| f.name().starts_with(family)))
}

/// Encodes on every level; all must agree.
fn encode(
    format: &Format,
    values: &[f32],
    row_len: usize,
    importance: Option<&[f32]>,
) -> Result<Vec<u8>, EncodeError> {
    let on = |level| {
        let mut out = vec![0; values.len() / 256 * format.block_bytes()];
        let result = with_level(level, || format.encode_rows(values, row_len, importance, &mut out));
        result.unwrap().map(|()| out)
    };
    let want = on(Level::Portable);
    for level in Level::supported() {
        assert_eq!(on(level), want, "{} {level}", format.name());
    }
    want
}

#[test]
fn what_ggml_cannot_encode_is_finite_or_an_error_with_its_place() {
    let mut random = Random(77);
    let small = random.values(256);
    let with = |i: usize, x: f32| {
        let mut values = small.clone();
        values[i] = x;
        values
    };
    let scaled = |s: f32| small.iter().map(|x| x * s).collect::<Vec<f32>>();
    let inputs = [
        small.clone(),
        vec![0.0; 256],
        vec![-0.0; 256],
        vec![f32::MAX; 256],
        vec![-f32::MAX; 256],
        scaled(1e38),
        scaled(1e25),
        scaled(1e5),
        scaled(1e-20),
        scaled(1e-44),
        with(3, f32::MAX),
        with(200, -1e30),
        with(9, 1e12),
        (0..256).map(|i| if i % 2 == 0 { 1e20 } else { -1e-20 }).collect(),
    ];
    let dominating = |x: f32| (0..256).map(|i| if i == 5 { x } else { 1e-6 }).collect::<Vec<f32>>();
    let importances = [
        vec![0.0; 256],
        vec![1e-45; 256],
        vec![f32::MAX; 256],
        dominating(1e6),
        dominating(f32::MAX),
        (0..256).map(|i| (i / 3 % 2) as f32).collect(),
        (0..256).map(|i| (i / 16 % 2) as f32).collect(),
        small.clone(),
        vec![-1.0; 256],
    ];
    for format in formats() {
        for values in &inputs {
            let required = format.importance() == Importance::Required;
            let none = (!required).then_some(None);
            for importance in importances.iter().map(|w| Some(&w[..])).chain(none) {
                // A good block first, so that the place is not 0.
                let values = [small.as_slice(), values].concat();
                match encode(format, &values, 256, importance) {
                    Ok(bytes) => assert_eq!(format.check_finite(&bytes), Ok(())),
                    Err(EncodeError::Unrepresentable { name, index }) => {
                        assert_eq!(name, format.name());
                        assert!(index == 0 || index == 256);
                        assert!(index == 256 || importance.is_some());
                    }
                    Err(e) => panic!("{}: {e}", format.name()),
                }
            }
        }
        let large = [small.as_slice(), &[f32::MAX; 256]].concat();
        let error = encode(format, &large, 256, Some(&[1.0; 256])).unwrap_err();
        let text = format!("values too large for a {} scale in the block at element 256", format.name());
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn rows_do_not_depend_on_their_neighbours() {
    let mut random = Random(5);
    let values = random.values(3 * 768);
    let importance: Vec<f32> = random.values(768).iter().map(|x| x * x).collect();
    for format in formats() {
        let all = encode(format, &values, 768, Some(&importance)).unwrap();
        let rows = values.chunks(768).map(|row| encode(format, row, 768, Some(&importance)).unwrap());
        assert_eq!(rows.collect::<Vec<_>>().concat(), all, "{}", format.name());
        // Each block sees the importance of its own columns.
        let blocks = values.chunks(256).zip(importance.chunks(256).cycle());
        let blocks = blocks.map(|(x, w)| encode(format, x, 256, Some(w)).unwrap());
        assert_eq!(blocks.collect::<Vec<_>>().concat(), all, "{}", format.name());
        // Different importances give different bytes somewhere: they are not ignored.
        assert_ne!(encode(format, &values, 768, Some(&[1.0; 768])).unwrap(), all, "{}", format.name());
    }
}

#[test]
fn zeros_decode_to_zeros() {
    for format in formats() {
        for zero in [0.0, -0.0] {
            let bytes = encode(format, &[zero; 512], 512, Some(&[1.0; 512])).unwrap();
            let mut out = [1.0; 512];
            format.decode_rows(&bytes, 512, &mut out).unwrap();
            assert!(out.iter().all(|&x| x == 0.0), "{}", format.name());
        }
    }
}

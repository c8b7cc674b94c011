//! The check for scales that are NaN or infinite.

use ggml_blocks::{FORMATS, Format};
use gguf_format::{GgmlType, Kind};

use crate::Random;

/// Offset in the block, and bytes, of each scale that has to be finite.
fn scales(format: &Format) -> &'static [(usize, &'static [u8])] {
    const INF: &[u8] = &[0, 0x7C];
    match format.name() {
        "F32" | "Q8_K" => &[(0, &[0, 0, 0x80, 0x7F])],
        "F64" => &[(0, &[0, 0, 0, 0, 0, 0, 0xF0, 0x7F])],
        "BF16" => &[(0, &[0x80, 0xFF])],
        "Q4_1" | "Q5_1" | "Q8_1" | "Q4_K" | "Q5_K" => &[(0, INF), (2, INF)],
        "Q2_K" => &[(80, INF), (82, INF)],
        "Q3_K" => &[(108, INF)],
        "Q6_K" => &[(208, INF)],
        "TQ1_0" => &[(52, INF)],
        "TQ2_0" => &[(64, INF)],
        "IQ1_M" => &[(48, &[0, 0x00, 0, 0x00, 0, 0xC0, 0, 0x7F])],
        "MXFP4" => &[(0, &[255])],
        "NVFP4" | "I8" | "I16" | "I32" | "I64" => &[],
        _ => &[(0, INF)],
    }
}

#[test]
fn the_first_block_with_a_bad_scale_is_named() {
    for format in &FORMATS {
        let size = format.block_bytes();
        // Bytes of at most 0x3B hold no exponent of all ones.
        let mut good = Random(4).bytes(10 * size);
        good.iter_mut().for_each(|b| *b %= 0x3C);
        assert_eq!(format.check_finite(&good), Ok(()), "{}", format.name());
        for &(offset, bad) in scales(format) {
            let mut bytes = good.clone();
            for block in [6, 8] {
                bytes[block * size + offset..][..bad.len()].copy_from_slice(bad);
            }
            let error = format.check_finite(&bytes).unwrap_err();
            assert_eq!(error.to_string(), format!("scale of {} block 6 is not finite", format.name()));
            assert_eq!(format.check_finite(&bytes[..6 * size + size / 2]), Ok(()));
        }
    }
}

#[test]
fn blocks_that_pass_decode_without_a_nan() {
    // Random bytes. (A large power-of-two scale of MXFP4 passes, and its weights may be infinite.)
    for format in FORMATS.iter().filter(|f| f.info().kind == Kind::Block) {
        let (len, size) = (format.block_len(), format.block_bytes());
        let bytes = Random(8).bytes(3000 * size);
        let mut out = vec![0.0; len];
        let mut refused = 0;
        for block in bytes.chunks(size) {
            format.decode_rows(block, len, &mut out).unwrap();
            match format.check_finite(block) {
                Ok(()) => assert!(!out.iter().any(|x| x.is_nan()), "{}", format.name()),
                Err(_) => refused += 1,
            }
        }
        assert_eq!(refused > 0, format.name() != "NVFP4", "{}", format.name());
    }
}

#[test]
fn an_exponent_of_255_is_a_number_to_the_decoder_and_a_fault_to_the_check() {
    let format = Format::of(GgmlType::MXFP4).unwrap();
    let mut block = [0x21; 17];
    block[0] = 255;
    let mut out = [0.0; 32];
    format.decode_rows(&block, 32, &mut out).unwrap();
    assert_eq!(out[..16], [2f32.powi(127); 16]);
    assert_eq!(out[16..], [f32::INFINITY; 16]);
    assert!(format.check_finite(&block).is_err());
}

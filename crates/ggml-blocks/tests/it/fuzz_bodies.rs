//! What must hold for any bytes as blocks and any numbers as weights: the bodies of the fuzz targets,
//! run on seeds by the tests. The first byte chooses the format.
//!
//! This file is also a module of the fuzz crate, so it uses nothing but ggml-blocks and gguf-format.

use ggml_blocks::simd::{Level, with_level};
use ggml_blocks::{EncodeError, FORMATS, Format};
use gguf_format::{Importance, Kind};

/// Decodes bytes in every way there is and on every level: one answer, no panic.
pub(crate) fn decode(bytes: &[u8]) {
    let Some((&choice, bytes)) = bytes.split_first() else { return };
    let format = &FORMATS[usize::from(choice) % FORMATS.len()];
    let blocks = bytes.len() / format.block_bytes();
    if blocks == 0 {
        return;
    }
    let (whole, rest) = bytes.split_at(blocks * format.block_bytes());
    let (block_len, len) = (format.block_len(), blocks * format.block_len());
    let mut expect = vec![0.0; len];
    with_level(Level::Portable, || format.decode_rows(whole, len, &mut expect).expect("the lengths fit"));
    let expect = bits(&expect);
    for level in Level::supported() {
        let mut out = vec![0.0; len];
        with_level(level, || format.decode_rows(whole, len, &mut out).expect("the lengths fit"));
        assert_eq!(bits(&out), expect, "{} on {level}", format.name());
        with_level(level, || {
            for block in 0..blocks {
                format.decode_range(whole, block..block + 1, &mut out[..block_len]).expect("in range");
                assert_eq!(bits(&out[..block_len]), expect[block * block_len..][..block_len]);
            }
            let rows: Vec<usize> = (0..blocks).rev().collect();
            format.get_rows(whole, block_len, &rows, &mut out).expect("the rows exist");
        });
        for (got, row) in out.chunks(block_len).zip((0..blocks).rev()) {
            assert_eq!(bits(got), expect[row * block_len..][..block_len]);
        }
    }
    if let Err(bad) = format.check_finite(bytes) {
        assert!(bad.block < blocks, "{bad}");
    }
    if !rest.is_empty() {
        let mut out = vec![0.0; len];
        assert!(format.decode_rows(bytes, len, &mut out).is_err(), "a cut block is refused");
    }
}

/// Encodes any numbers: the same bytes on every level and row by row, which decode to finite values; or
/// an error that names the culprit. The second byte says whether there is importance, taken from the data.
pub(crate) fn encode(bytes: &[u8]) {
    let [choice, mode, bytes @ ..] = bytes else { return };
    let formats: Vec<&Format> = FORMATS.iter().filter(|f| f.can_encode()).collect();
    let format = formats[usize::from(*choice) % formats.len()];
    let numbers: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    let row_len = format.block_len() * (1 + usize::from(mode >> 1) % 3);
    if numbers.is_empty() {
        return;
    }
    // Few bytes shall make whole rows too, so the numbers repeat.
    let at = |i: usize| numbers[i % numbers.len()];
    let rows = numbers.len().div_ceil(row_len).min(3);
    let values: Vec<f32> = (0..rows * row_len).map(at).collect();
    let weights: Vec<f32> = (0..row_len).map(|i| at(i * 7 + 3).abs()).collect();
    let importance = (mode & 1 == 1 || format.importance() == Importance::Required).then_some(&weights[..]);
    let row_bytes = format.row_bytes(row_len).expect("whole blocks");

    let run = |level, values: &[f32]| {
        let mut out = vec![0; values.len() / row_len * row_bytes];
        let done = with_level(level, || format.encode_rows(values, row_len, importance, &mut out));
        done.expect("the level is supported").map(|()| out)
    };
    let expect = run(Level::Portable, &values);
    for level in Level::supported() {
        // Compared as text, since an error may hold a NaN.
        assert_eq!(
            format!("{:?}", run(level, &values)),
            format!("{expect:?}"),
            "{} on {level}",
            format.name()
        );
    }
    let first_bad = values.iter().position(|v| !v.is_finite());
    match expect {
        Ok(out) => {
            for (row, bytes) in values.chunks(row_len).zip(out.chunks(row_bytes)) {
                assert_eq!(run(Level::Portable, row).as_deref(), Ok(bytes), "{}", format.name());
            }
            if format.info().kind == Kind::Float {
                return;
            }
            assert_eq!(first_bad, None);
            // The scale of an activation may be an f32, and its product with a level may then overflow.
            if format.info().kind != Kind::Block {
                return;
            }
            assert_eq!(format.check_finite(&out), Ok(()));
            let mut decoded = vec![0.0; values.len()];
            format.decode_rows(&out, row_len, &mut decoded).expect("just encoded");
            assert!(decoded.iter().all(|v| v.is_finite()), "{}", format.name());
        }
        Err(EncodeError::NonFinite { index, .. }) => assert_eq!(Some(index), first_bad),
        Err(EncodeError::Unrepresentable { index, .. }) => {
            assert!(index < values.len() && index % format.block_len() == 0);
        }
        Err(EncodeError::ImportanceNonFinite { index, .. }) => assert!(!weights[index].is_finite()),
        Err(other) => panic!("{other}"),
    }
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

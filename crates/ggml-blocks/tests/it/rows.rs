//! What holds for every format: the ways to decode agree, on every SIMD level, whatever the bytes.

use ggml_blocks::formats::{q4_0::Q4_0, q4_k::Q4K};
use ggml_blocks::simd::{Level, with_level};
use ggml_blocks::{Block, EncodeError, FORMATS, Format, cast_blocks, cast_blocks_mut};
use gguf_format::{GgmlType, Importance, Kind, TYPES};

use crate::{Random, bits};

/// Random rows of a format: bytes, weights per row, rows.
fn sample(format: &Format, seed: u64) -> (Vec<u8>, usize, usize) {
    let (blocks_per_row, rows) = (3, 40);
    let bytes = Random(seed).bytes(rows * blocks_per_row * format.block_bytes());
    (bytes, blocks_per_row * format.block_len(), rows)
}

#[test]
fn every_type_that_is_not_removed_has_a_format() {
    for info in &TYPES {
        let format = Format::of(info.id);
        assert_eq!(format.is_some(), info.kind != Kind::Removed, "{}", info.name);
        assert!(format.is_none_or(|f| f.info() == info));
    }
    assert!(Format::of(GgmlType(137)).is_none());
}

#[test]
fn the_ways_to_decode_agree_bit_for_bit_on_every_level() {
    for format in &FORMATS {
        let (bytes, row_len, rows) = sample(format, 7);
        let mut want = vec![0.0; rows * row_len];
        with_level(Level::Portable, || format.decode_rows(&bytes, row_len, &mut want)).unwrap().unwrap();
        for level in Level::supported() {
            let name = format!("{} {level}", format.name());
            with_level(level, || {
                let mut all = vec![0.0; want.len()];
                format.decode_rows(&bytes, row_len, &mut all).unwrap();
                assert_eq!(bits(&all), bits(&want), "{name}");

                let mut one_row = vec![0.0; want.len()];
                format.decode_rows(&bytes, want.len(), &mut one_row).unwrap();
                assert_eq!(bits(&one_row), bits(&want), "{name}");

                let (len, blocks) = (format.block_len(), bytes.len() / format.block_bytes());
                for range in [0..0, 0..blocks, 5..6, blocks - 1..blocks, blocks..blocks, 2..blocks - 3] {
                    let mut part = vec![0.0; range.len() * len];
                    format.decode_range(&bytes, range.clone(), &mut part).unwrap();
                    assert_eq!(bits(&part), bits(&want[range.start * len..range.end * len]), "{name}");
                }

                let chosen = [rows - 1, 0, 3, 3];
                let mut got = vec![0.0; chosen.len() * row_len];
                format.get_rows(&bytes, row_len, &chosen, &mut got).unwrap();
                for (row, got) in chosen.iter().zip(got.chunks(row_len)) {
                    assert_eq!(bits(got), bits(&want[row * row_len..][..row_len]), "{name}");
                }
            })
            .unwrap();
        }
    }
}

#[test]
fn of_two_nan_scales_the_first_decides() {
    let (d, m) = (0xFC37u16, 0x7C12u16);
    for name in ["Q4_1", "Q5_1", "Q4_K", "Q5_K"] {
        let format = Format::of(GgmlType::from_name(name).unwrap()).unwrap();
        let mut bytes = Random(21).bytes(50 * format.block_bytes());
        for block in bytes.chunks_mut(format.block_bytes()) {
            block[..2].copy_from_slice(&d.to_le_bytes());
            block[2..4].copy_from_slice(&m.to_le_bytes());
        }
        let mut out = vec![0.0; 50 * format.block_len()];
        for level in Level::supported() {
            with_level(level, || format.decode_rows(&bytes, out.len(), &mut out)).unwrap().unwrap();
            assert!(out.iter().all(|x| x.to_bits() == 0xFFC6_E000), "{name} {level}");
        }
    }
}

#[test]
fn a_chosen_row_is_all_that_a_look_up_reads() {
    // Bytes of other rows do not matter: the look-up gives the same for two files that differ there.
    for format in &FORMATS {
        let (bytes, row_len, rows) = sample(format, 11);
        let mut other = Random(12).bytes(bytes.len());
        let row_bytes = bytes.len() / rows;
        other[2 * row_bytes..3 * row_bytes].copy_from_slice(&bytes[2 * row_bytes..3 * row_bytes]);
        let look_up = |bytes| {
            let mut out = vec![0.0; row_len];
            format.get_rows(bytes, row_len, &[2], &mut out).unwrap();
            bits(&out)
        };
        assert_eq!(look_up(&bytes), look_up(&other), "{}", format.name());
    }
}

#[test]
fn a_single_block_decodes_as_in_a_row_at_any_address() {
    let bytes = Random(3).bytes(145 * 9);
    for start in 0..9 {
        let bytes = &bytes[start..][..144 * 8];
        let mut rows = vec![0.0; 256 * 8];
        Format::of(GgmlType::Q4_K).unwrap().decode_rows(bytes, 256, &mut rows).unwrap();
        let blocks = cast_blocks::<Q4K>(bytes).unwrap();
        for (block, row) in blocks.iter().zip(rows.chunks(256)) {
            let mut out = [0.0; 256];
            block.decode(&mut out);
            assert_eq!(bits(&out), bits(row));
        }
        assert_eq!(blocks.as_ptr().addr(), bytes.as_ptr().addr());
    }
}

#[test]
fn bytes_that_are_no_whole_number_of_blocks_do_not_cast() {
    let mut bytes = [0; 37];
    let error = cast_blocks::<Q4_0>(&bytes).unwrap_err();
    assert_eq!(error.to_string(), "37 bytes are not a whole number of Q4_0 blocks of 18");
    assert_eq!(cast_blocks_mut::<Q4_0>(&mut bytes).unwrap_err(), error);
    assert_eq!(cast_blocks::<Q4_0>(&bytes[..0]).unwrap().len(), 0);
    cast_blocks_mut::<Q4_0>(&mut bytes[..36]).unwrap()[1].qs[15] = 9;
    assert_eq!(bytes[35], 9);
}

#[test]
fn wrong_lengths_are_errors() {
    for format in &FORMATS {
        let (bytes, row_len, rows) = sample(format, 5);
        let weights = rows * row_len;
        let (len, size) = (format.block_len(), format.block_bytes());
        let mut out = vec![0.0; weights + 1];
        let mut decode = |bytes: &[u8], row_len, weights| {
            format.decode_rows(bytes, row_len, &mut out[..weights]).map_err(|e| e.to_string())
        };
        assert_eq!(decode(&bytes, row_len, weights), Ok(()));
        assert_eq!(decode(&[], row_len, 0), Ok(()));
        assert!(decode(&bytes, 0, weights).unwrap_err().starts_with("row of 0 weights"));
        assert!(decode(&bytes, row_len, weights - 1).is_err(), "{}", format.name());
        assert!(decode(&bytes, row_len, weights - row_len).is_err());
        assert!(decode(&bytes[1..], row_len, weights).is_err());
        assert!(decode(&bytes, weights + len, weights).is_err());
        if len > 1 {
            assert!(decode(&bytes, row_len - 1, weights).is_err());
            assert!(decode(&bytes, len / 2, weights).is_err());
        }
        let blocks = bytes.len() / size;
        let mut range = |range, weights: usize| format.decode_range(&bytes, range, &mut out[..weights]);
        assert!(range(0..blocks + 1, weights).is_err());
        assert!(range(usize::MAX - 1..usize::MAX, len).is_err());
        #[expect(clippy::reversed_empty_ranges, reason = "that is the wrong input")]
        let reversed = range(2..1, 0);
        assert_eq!(reversed.unwrap_err().to_string(), format!("blocks 2..1 asked for, {blocks} there"));
        assert!(range(0..2, len).is_err());
        assert_eq!(range(0..2, 2 * len), Ok(()));
        let mut rows_of = |rows: &[usize], weights: usize| {
            format.get_rows(&bytes, row_len, rows, &mut out[..weights]).map_err(|e| e.to_string())
        };
        assert_eq!(rows_of(&[rows], row_len), Err(format!("row {rows} asked for, {rows} there")));
        assert!(rows_of(&[usize::MAX], row_len).is_err());
        assert!(rows_of(&[0, 1], row_len).is_err());
        assert!(format.row_bytes(usize::MAX - usize::MAX % len).is_err() || size <= len);
    }
}

#[test]
fn encoding_refuses_what_it_cannot_take() {
    for format in &FORMATS {
        let (row_len, name) = (2 * format.block_len(), format.name());
        let values = Random(9).values(3 * row_len);
        let mut out = vec![0; 6 * format.block_bytes()];
        let importance = vec![1.0; row_len];
        if !format.can_encode() {
            let error = format.encode_rows(&values, row_len, Some(&importance), &mut out);
            assert_eq!(error, Err(EncodeError::EncoderUnavailable { name }));
            continue;
        }
        let mut encode = |values: &[f32], row_len, importance: Option<&[f32]>, bytes: usize| {
            format.encode_rows(values, row_len, importance, &mut out[..bytes])
        };
        let bytes = 6 * format.block_bytes();
        assert_eq!(encode(&values, row_len, Some(&importance), bytes), Ok(()), "{name}");
        assert!(encode(&values, row_len, Some(&importance), bytes - 1).is_err(), "{name}");
        assert!(encode(&values[1..], row_len, Some(&importance), bytes).is_err(), "{name}");
        assert!(encode(&values, 0, Some(&importance), bytes).is_err(), "{name}");
        if format.importance() == Importance::Required {
            let error = encode(&values, row_len, None, bytes).unwrap_err();
            assert_eq!(error.to_string(), format!("{name} needs an importance matrix"));
        }
        if format.importance() != Importance::Ignored {
            let error = encode(&values, row_len, Some(&importance[1..]), bytes).unwrap_err();
            assert_eq!(error, EncodeError::ImportanceLength { need: row_len, have: row_len - 1 });
            let mut bad = importance.clone();
            bad[row_len - 1] = f32::NAN;
            let error = encode(&values, row_len, Some(&bad), bytes).unwrap_err();
            assert_eq!(error.to_string(), format!("importance NaN at column {} is not finite", row_len - 1));
        }
        if format.block_len() > 1 {
            for x in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let mut bad = values.clone();
                bad[row_len + 1] = x;
                let error = encode(&bad, row_len, Some(&importance), bytes).unwrap_err();
                assert_eq!(error.to_string(), format!("value {x} at element {} is not finite", row_len + 1));
            }
        }
    }
}

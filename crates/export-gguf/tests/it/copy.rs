//! Without a type the output is the input.

use gguf_format::{Builder, GgmlType, Gguf};

use crate::support::*;

// ollama/ollama#10239, #10510
#[test]
fn tensors_of_odd_sizes_come_back_byte_for_byte() {
    let place = Place::new();
    let input = model(&[
        ("a", &[1], GgmlType::F32, vec![1; 4]),
        ("b", &[3, 5], GgmlType::I8, vec![2; 15]),
        ("empty", &[7, 0], GgmlType::F16, vec![]),
        ("c", &[31, 1, 1], GgmlType::F16, vec![3; 62]),
        ("last", &[1, 1], GgmlType::F64, vec![4; 8]),
    ]);
    assert!(place.export(&input, &[]) == input);
    assert!(place.export(&input, &["--dtype", "verbatim", "--threads", "3"]) == input);
    assert!(place.export(&input, &["--dtype", "q4_0"]) == input, "nothing to transcode, nothing touched");
}

// paiml/aprender#1918
#[test]
fn every_kind_of_value_comes_back_with_its_bits() {
    let place = Place::new();
    let mut b = Builder::new();
    b.set("general.architecture", "an architecture nobody knows")
        .set("general.file_type", 99_u64)
        .set("u8", u8::MAX)
        .set("i8", i8::MIN)
        .set("u16", u16::MAX)
        .set("i16", i16::MIN)
        .set("u64", u64::MAX)
        .set("nan", f32::from_bits(0x7FA1_2345))
        .set("f64", f64::MIN_POSITIVE)
        .set("yes", true)
        .set("empty", Vec::<u32>::new())
        .set("texts", vec!["", "\u{2581}", "z"])
        .set("flags", vec![true, false])
        .align(128);
    let input = whole(b, &[("t", &[5], GgmlType::F32, vec![7; 20])]);
    assert!(place.export(&input, &[]) == input);
}

#[test]
fn metadata_of_a_transcoded_file_is_untouched_but_for_two_keys() {
    let place = Place::new();
    let mut b = Builder::new();
    b.set("x.texts", vec!["a", "b"]).set("general.file_type", 1_u32).set("x.nan", f64::NAN);
    let input = whole(b, &[("w.weight", &[32, 2], GgmlType::F32, f32s(weights(64)))]);
    let out = place.export(&input, &["--dtype", "q8_0"]);
    let (before, after) = (Gguf::parse(&input).unwrap(), Gguf::parse(&out).unwrap());
    for (a, b) in before.metadata().zip(after.metadata()) {
        assert_eq!(a.key(), b.key());
        assert_eq!(a.raw() == b.raw(), a.key() != "general.file_type", "{}", a.key());
    }
}

/// A strict file whose two tensors stand in the other order in the data.
#[test]
fn reordered_data_is_put_in_order_in_lenient_mode_only() {
    let place = Place::new();
    let (a, b) = (vec![1; 32], vec![2; 32]);
    let input = model(&[("a", &[8], GgmlType::F32, a.clone()), ("b", &[8], GgmlType::F32, b.clone())]);
    let header = input.len() - 64;
    let mut odd = input.clone();
    let infos = odd[..header].windows(8).rposition(|w| w == 32_u64.to_le_bytes()).unwrap();
    // Tensor infos end with the offset; the first one's is one info before.
    let info = 8 + 1 + 4 + 8 + 4 + 8;
    odd[infos - info..][..8].copy_from_slice(&32_u64.to_le_bytes());
    odd[infos..][..8].copy_from_slice(&0_u64.to_le_bytes());
    odd[header..].rotate_left(32);
    assert!(place.refuse(&odd, &[]).contains("offset"));
    assert!(place.export(&odd, &["--lenient"]) == input);
}

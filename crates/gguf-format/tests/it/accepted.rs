//! Odd files that are legal, or that this crate chooses to read, after public reports.

use gguf_format::{Finding, GgmlType, Gguf, Value, ValueType};

use crate::raw::{Raw, string};
use crate::roundtrip::reemit;

fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Parses, and returns each tensor's bytes as `f32`.
fn tensors(file: &[u8]) -> Vec<(String, Vec<f32>)> {
    let gguf = Gguf::parse(file).unwrap();
    let read = |t| gguf.data(&t).unwrap().as_chunks().0.iter().map(|le| f32::from_le_bytes(*le)).collect();
    gguf.tensors().map(|t| (t.name().to_string(), read(t))).collect()
}

/// `ollama/ollama#18130`, `ggml-org/ggml#1092`: with 32 assumed, tensors come back shifted.
#[test]
fn every_power_of_two_is_an_alignment() {
    for alignment in [1_u32, 2, 4, 8, 16, 64, 4096] {
        let pad = u64::from(alignment);
        let b = 12_u64.next_multiple_of(pad);
        let c = (b + 8).next_multiple_of(pad);
        let mut raw = Raw::new().align(alignment);
        raw = raw.info("a", &[3], 0, 0).info("b", &[2], 0, b).info("c", &[1], 0, c);
        raw.data = f32s(&[1.0, 2.0, 3.0]);
        raw.data.resize(b as usize, 0);
        raw.data.extend(f32s(&[4.0, 5.0]));
        raw.data.resize(c as usize, 0);
        raw.data.extend(f32s(&[6.0]));
        raw.data.resize((c + 4).next_multiple_of(pad) as usize, 0);
        let file = raw.bytes();
        let expected = [("a", vec![1.0, 2.0, 3.0]), ("b", vec![4.0, 5.0]), ("c", vec![6.0])];
        assert_eq!(tensors(&file), expected.map(|(n, v)| (n.to_string(), v)), "alignment {alignment}");
        let gguf = Gguf::parse(&file).unwrap();
        let small = (alignment < 8).then_some(Finding::SmallAlignment(alignment));
        assert_eq!(gguf.findings(), small.as_slice());
        assert_eq!(gguf.alignment(), u64::from(alignment));
        assert_eq!(reemit(&gguf), file, "alignment {alignment}");
    }
}

/// `ggml-org/llama.cpp#26366`, `#24263`; `ggml-org/ggml#1517`.
#[test]
fn tensors_without_elements_keep_their_place() {
    for dims in [&[4, 0][..], &[0, 4], &[1, 0], &[0]] {
        let file = Raw::new().info("z", dims, 0, 0).info("a", &[2], 0, 0).data(8).pad().bytes();
        let gguf = Gguf::parse(&file).unwrap();
        let z = gguf.tensor("z").unwrap();
        assert_eq!((z.byte_len(), z.elements(), gguf.data(&z)), (0, 0, Some(&[][..])));
        assert_eq!(z.dims(), dims);
        assert_eq!(gguf.data(&gguf.tensor("a").unwrap()).unwrap(), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(reemit(&gguf), file);
    }
    // At the very end nothing has to follow, not even padding.
    let file = Raw::new().info("z", &[0], 0, 0).bytes();
    let gguf = Gguf::parse(&file).unwrap();
    assert_eq!(gguf.data(&gguf.tensor("z").unwrap()), Some(&[][..]));
    assert_eq!(gguf.findings(), [Finding::MissingTailPadding { bytes: 64 - file.len() as u64 }]);
}

/// The GGUF specification allows no dimensions: one element, not none.
#[test]
fn no_dimensions_are_one_element() {
    let mut raw = Raw::new().info("s", &[], 0, 0).data(4).pad();
    raw.data[..4].copy_from_slice(&42_f32.to_le_bytes());
    let file = raw.bytes();
    assert_eq!(tensors(&file), [("s".to_string(), vec![42.0])]);
    let gguf = Gguf::parse(&file).unwrap();
    let s = gguf.tensor("s").unwrap();
    assert_eq!((s.elements(), s.row_len(), s.rows(), s.dims()), (1, 1, 1, &[][..]));
    assert_eq!(reemit(&gguf), file);
}

/// `ggml-org/llama.cpp#10100`, `#21776`; `leejet/stable-diffusion.cpp#1949`: cut to 63 bytes, two
/// names that differ in the last would be one.
#[test]
fn long_tensor_names_are_read_and_reported() {
    for (len, reported) in [(63, false), (64, true), (127, true), (65_535, true)] {
        let (a, b) = ("x".repeat(len), "x".repeat(len - 1) + "y");
        let file = Raw::new().info(&a, &[8], 0, 0).info(&b, &[8], 0, 32).data(64).bytes();
        let gguf = Gguf::parse(&file).unwrap();
        assert_eq!(gguf.tensor(&a).unwrap().offset(), 0);
        assert_eq!(gguf.tensor(&b).unwrap().offset(), 32);
        let found = gguf.findings().iter().any(|f| matches!(f, Finding::LongTensorNames { count: 2, .. }));
        assert_eq!(found, reported, "{len}");
        assert_eq!(reemit(&gguf), file);
    }
}

/// `ggml-org/llama.cpp#22189`, `#8769`: the element type must survive.
#[test]
fn empty_arrays_have_a_type() {
    let file = Raw::new().array("n", ValueType::U32.id(), 0, &[]).array("s", 8, 0, &[]).bytes();
    let gguf = Gguf::parse(&file).unwrap();
    for (key, ty) in [("n", ValueType::U32), ("s", ValueType::String)] {
        let array = gguf.get(key).unwrap().as_array().unwrap();
        assert_eq!((array.element_type(), array.len(), array.iter().count()), (ty, 0, 0));
    }
    assert_eq!(reemit(&gguf), file);
}

/// `ggml-org/llama.cpp#21428`, `#21434`: any byte but 0 is true, and stays as it is.
#[test]
fn bools_may_be_any_byte() {
    let file = Raw::new().key(b"b", 7, &[2]).array("a", 7, 4, &[0, 1, 2, 255]).bytes();
    let gguf = Gguf::parse(&file).unwrap();
    assert_eq!(gguf.get("b"), Some(Value::Bool(true)));
    let array = gguf.get("a").unwrap().as_array().unwrap();
    assert_eq!(array.to_vec::<bool>().unwrap(), [false, true, true, true]);
    assert_eq!(reemit(&gguf), file);
}

/// `rustformers/llm#11`: a Latin-1 value is kept as bytes; a NUL is a byte like any other.
#[test]
fn string_values_may_be_any_bytes() {
    let file = Raw::new().string("latin", b"caf\xe9").string("nul", b"a\0b").bytes();
    let gguf = Gguf::parse(&file).unwrap();
    let latin = gguf.get("latin").unwrap();
    assert_eq!(latin.as_str(), None);
    let Value::String(bytes) = latin else { panic!("{latin:?}") };
    assert_eq!(bytes.as_bytes(), b"caf\xe9");
    assert_eq!((format!("{bytes}"), format!("{bytes:?}")), ("caf\u{fffd}".into(), r#""caf\xe9""#.into()));
    assert_eq!(gguf.get("nul").unwrap().as_str(), Some("a\0b"));
    assert_eq!(reemit(&gguf), file);
}

/// `paiml/aprender#310`, `ollama/ollama#11119`: version 2 is version 3 but for the number.
#[test]
fn version_2_reads_as_version_3() {
    let raw = Raw::small();
    let file = Raw { version: 2, ..raw.clone() }.bytes();
    let gguf = Gguf::parse(&file).unwrap();
    assert_eq!((gguf.version(), gguf.tensors().len(), gguf.metadata().len()), (2, 1, 1));
    assert_eq!(reemit(&gguf), raw.bytes());
}

/// `unslothai/unsloth#3124`, `ikawrakow/ik_llama.cpp#2359`: block types have their sizes.
#[test]
fn every_type_of_the_table_is_read_by_its_geometry() {
    for ty in gguf_format::TYPES.iter().filter(|t| t.block_len != 0) {
        let (len, bytes) = (u64::from(ty.block_len), ty.block_bytes as usize * 3);
        let file = Raw::new().info("a", &[len, 3], ty.id.0, 0).data(bytes.next_multiple_of(32)).bytes();
        let gguf = Gguf::parse(&file).unwrap();
        let a = gguf.tensor("a").unwrap();
        assert_eq!((a.ty(), a.block_len(), a.block_bytes()), (ty.id, ty.block_len, ty.block_bytes));
        assert_eq!((gguf.data(&a).unwrap().len(), a.rows(), a.decodable()), (bytes, 3, true), "{}", ty.name);
        assert_eq!(ty.id.row_bytes(len * 3), Some(bytes as u64));
    }
}

/// `ollama/ollama#7844`, `#8456`: complete data without its padding.
#[test]
fn missing_tail_padding_is_a_finding() {
    let file = Raw::new().info("a", &[3], 0, 0).data(12).bytes();
    let gguf = Gguf::parse(&file).unwrap();
    assert_eq!(gguf.findings(), [Finding::MissingTailPadding { bytes: 20 }]);
    assert_eq!(gguf.data(&gguf.tensor("a").unwrap()).unwrap().len(), 12);
    assert_eq!(gguf.findings()[0].to_string(), "20 bytes of padding are missing after the last tensor");
}

/// `ollama/ollama#10201`, `#9368`: zeros, junk or a second file after the data.
#[test]
fn trailing_bytes_are_a_finding() {
    let whole = Raw::small().bytes();
    for tail in [vec![0; 65_536], vec![0xa5; 100], whole.clone(), vec![1]] {
        let file = [&whole[..], &tail].concat();
        let gguf = Gguf::parse(&file).unwrap();
        let (at, bytes) = (whole.len() as u64, tail.len() as u64);
        assert_eq!(gguf.findings(), [Finding::TrailingBytes { at, bytes }]);
        assert_eq!(gguf.tensors().len(), 1);
    }
}

/// `ggml-org/llama.cpp#26690`, `EricLBuehler/mistral.rs#2215`: a typed read never reinterprets.
#[test]
fn typed_reads_refuse_another_wire_type() {
    let file = Raw::new().array("scores", 0, 4, &[0; 4]).u32("n", 7).bytes();
    let gguf = Gguf::parse(&file).unwrap();
    let scores = gguf.get("scores").unwrap().as_array().unwrap();
    assert_eq!(scores.to_vec::<f32>(), None);
    assert_eq!(scores.to_vec::<i8>(), None);
    assert_eq!(scores.to_vec::<u8>(), Some(vec![0; 4]));
    assert!(scores.strings().is_none());
    let n = gguf.get("n").unwrap();
    assert_eq!((n.as_str(), n.as_bool(), n.as_array()), (None, None, None));
}

/// `ggml-org/llama.cpp#19856`: many strings take linear time, and are found by walking.
#[test]
fn long_string_arrays_are_walked() {
    let text: Vec<String> = (0..150_000).map(|i| format!("token{i}")).collect();
    let elements: Vec<u8> = text.iter().flat_map(|t| string(t.as_bytes())).collect();
    let file = Raw::new().array("t", 8, 150_000, &elements).u32("after", 1).bytes();
    let gguf = Gguf::parse(&file).unwrap();
    let array = gguf.get("t").unwrap().as_array().unwrap();
    let strings = array.strings().unwrap();
    assert_eq!(strings.len(), 150_000);
    assert!(strings.map(|s| s.as_str().unwrap()).eq(text.iter()));
    assert_eq!(array.get(149_999).unwrap().as_str(), Some("token149999"));
    assert_eq!(array.get(150_000), None);
    assert_eq!(gguf.get("after"), Some(Value::U32(1)));
    let shown: Vec<String> = gguf.metadata().map(|e| format!("{e:?}")).collect();
    assert_eq!(shown, ["'t' = Array([string; 150000])", "'after' = U32(1)"]);
}

/// The smallest file, and one of metadata only: vocabulary files end without padding.
#[test]
fn files_without_tensors_end_anywhere_up_to_the_padding() {
    let keys = Raw::new().string("general.architecture", b"llama");
    for raw in [Raw::new(), keys] {
        let file = raw.bytes();
        let padded = [&file[..], &vec![0; file.len().next_multiple_of(32) - file.len()]].concat();
        assert_eq!(Gguf::parse(&padded).unwrap().findings(), []);
        let gguf = Gguf::parse(&file).unwrap();
        assert_eq!(gguf.findings(), []);
        assert_eq!(gguf.header_len(), file.len() as u64);
        assert_eq!(reemit(&gguf), file);
    }
}

/// The specification wants ASCII keys; others are read and reported.
#[test]
fn keys_beyond_ascii_are_a_finding() {
    let file = Raw::new().u32("größe", 1).bytes();
    let gguf = Gguf::parse(&file).unwrap();
    assert_eq!(gguf.get("größe"), Some(Value::U32(1)));
    assert_eq!(gguf.findings()[0].to_string(), "keys beyond ASCII: 1, first 'größe'");
}

/// Dimensions stay as written, trailing ones included.
#[test]
fn dimensions_are_in_ne_order() {
    let file = Raw::new().info("a", &[32, 4, 1, 1], 8, 0).data(160).bytes();
    let gguf = Gguf::parse(&file).unwrap();
    let a = gguf.tensor("a").unwrap();
    assert_eq!(a.dims(), [32, 4, 1, 1]);
    assert_eq!(a.logical_shape().collect::<Vec<_>>(), [1, 1, 4, 32]);
    assert_eq!((a.ty(), a.row_len(), a.rows(), a.elements()), (GgmlType::Q8_0, 32, 4, 128));
    assert_eq!(format!("{a:?}"), "'a' [32, 4, 1, 1] Q8_0");
}

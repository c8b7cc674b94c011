//! `gen` and `selftest`.

use super::Folder;
use gguf_format::{GgmlType, Gguf, Kind, TYPES, ValueType};

#[test]
fn the_sample_has_one_of_everything() {
    let folder = Folder::with(&[]);
    assert!(folder.text(&["gen", "s.gguf"]).starts_with("s.gguf: "));
    let bytes = folder.read("s.gguf");
    let gguf = Gguf::parse(&bytes).unwrap();
    assert!(gguf.findings().is_empty(), "{:?}", gguf.findings());
    for ty in ValueType::ALL {
        assert!(gguf.metadata().any(|kv| kv.value_type() == ty), "no {ty}");
        let element = |a: gguf_format::Array<'_>| a.element_type() == ty;
        let array = gguf.metadata().any(|kv| kv.value().as_array().is_some_and(element));
        assert!(array || ty == ValueType::Array, "no array of {ty}");
    }
    let types: Vec<GgmlType> = gguf.tensors().map(|t| t.ty()).collect();
    for info in TYPES.iter().filter(|t| t.kind != Kind::Removed) {
        assert!(types.contains(&info.id), "no {}", info.name);
    }
}

#[test]
fn the_sample_is_the_same_every_time_and_clean() {
    let folder = Folder::with(&[]);
    folder.text(&["gen", "a.gguf"]);
    let j = folder.json(&["gen", "b.gguf"]);
    assert_eq!(folder.read("a.gguf"), folder.read("b.gguf"));
    assert_eq!(j["bytes"], folder.read("a.gguf").len());
    assert!(folder.refused(&["gen", "a.gguf"]).contains("exists already"));
    folder.text(&["gen", "a.gguf", "--force"]);
    let report = folder.json(&["verify", "a.gguf"]);
    assert_eq!(report["faults"], 0, "{report}");
}

#[test]
fn every_tensor_of_the_sample_can_be_extracted() {
    let folder = Folder::with(&[]);
    folder.text(&["gen", "s.gguf"]);
    for tensor in folder.json(&["tensors", "s.gguf"]).as_array().unwrap() {
        let ran = folder.run(&["extract", "s.gguf", tensor["name"].as_str().unwrap(), "-o", "-"]);
        assert_eq!(ran.out.len() as u64, tensor["elements"].as_u64().unwrap() * 4, "{tensor}");
    }
}

#[test]
fn selftest_passes() {
    let folder = Folder::with(&[]);
    let report = folder.json(&["selftest"]);
    assert_eq!(report["failed"], 0, "{report}");
    assert!(report["passed"].as_u64().unwrap() >= 41);
    let text = folder.text(&["selftest"]);
    assert!(text.contains("\nok      decode Q4_K\n"), "{text}");
    assert!(!text.contains("FAILED"), "{text}");
}

//! Split sets out and in.

use gguf_format::{Gguf, Value};

use crate::support::*;

const OUT: [&str; 4] = ["--from-gguf", "in.gguf", "--out", "m.gguf"];

#[test]
fn a_set_and_back_is_the_file() {
    let place = Place::new();
    let input = mixed();
    place.write("in.gguf", &input);
    for (split, parts) in [
        (["--split-max-tensors", "3"], 3),
        (["--split-max-tensors", "1"], 7),
        (["--split-max-size", "25K"], 3),
        (["--split-max-size", "1G"], 1),
    ] {
        let ran = place.run(&[&OUT[..], &split, &["--force"]].concat());
        assert_eq!(ran.code, 0, "{}", ran.err);
        let first = format!("m-00001-of-{parts:05}.gguf");
        let ran = place.run(&["--from-gguf", &first, "--out", "back.gguf", "--force"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let back = place.read("back.gguf");
        let again = place.run(&["--from-gguf", "back.gguf", "--out", "m.gguf", "--force"]);
        assert_eq!(again.code, 0, "{}", again.err);
        assert!(back == input || parts == 1, "{split:?}");
    }
}

#[test]
fn parts_carry_the_keys_that_llama_cpp_reads() {
    let place = Place::new();
    let input = mixed();
    place.write("in.gguf", &input);
    place.run(&[&OUT[..], &["--split-max-tensors", "3", "--dtype", "q8_0"]].concat());
    for no in 0..3_u16 {
        let bytes = place.read(&format!("m-{:05}-of-00003.gguf", no + 1));
        let g = Gguf::parse(&bytes).unwrap();
        assert!(matches!(g.get("split.no"), Some(Value::U16(n)) if n == no));
        assert!(matches!(g.get("split.count"), Some(Value::U16(3))));
        assert!(matches!(g.get("split.tensors.count"), Some(Value::I32(7))));
        assert_eq!(g.get("general.architecture").is_some(), no == 0);
        assert_eq!(g.metadata().len(), if no == 0 { 7 } else { 3 });
        assert_eq!(g.tensors().len(), [3, 3, 1][usize::from(no)]);
    }
}

#[test]
fn a_tensor_larger_than_a_part_is_refused_by_name() {
    let place = Place::new();
    let error = place.refuse(&mixed(), &["--split-max-size", "20K"]);
    insta::assert_snapshot!(error, @"error: in.gguf: tensor token_embd.weight: 20.0 KiB do not fit into parts of at most 19.5 KiB; raise --split-max-size");
}

#[test]
fn a_missing_part_is_named_at_once() {
    let place = Place::new();
    place.write("in.gguf", &mixed());
    place.run(&[&OUT[..], &["--split-max-tensors", "3"]].concat());
    std::fs::remove_file(place.path("m-00002-of-00003.gguf")).unwrap();
    let ran = place.run(&["--from-gguf", "m-00001-of-00003.gguf", "--out", "o.gguf"]);
    assert!(ran.code == 1 && ran.err.contains("m-00002-of-00003.gguf"), "{}", ran.err);
    let ran = place.run(&["--from-gguf", "m-00003-of-00003.gguf", "--out", "o.gguf"]);
    assert!(ran.code == 1 && ran.err.contains("m-00001-of-00003.gguf"), "{}", ran.err);
}

#[test]
fn a_set_may_not_replace_a_part_of_its_source() {
    let place = Place::new();
    place.write("in.gguf", &mixed());
    place.run(&[&OUT[..], &["--split-max-tensors", "3"]].concat());
    let before = place.names();
    let ran = place.run(&[
        "--from-gguf",
        "m-00001-of-00003.gguf",
        "--out",
        "m.gguf",
        "--split-max-tensors",
        "3",
        "--force",
    ]);
    assert!(ran.code == 1 && ran.err.contains("is the input"), "{}", ran.err);
    assert_eq!(place.names(), before);
}

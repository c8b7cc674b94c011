//! `extract`: the values, and that a file appears whole or not at all.

use super::{Folder, f32s, gguf, le, llama, model, set};
use gguf_format::GgmlType;

/// The values of the `Q8_0` tensor of [`model`].
fn q8_0_values() -> Vec<u8> {
    le(&(-16..16).map(|q| q as f32 * 0.5).collect::<Vec<_>>())
}

fn tiny() -> Folder {
    Folder::with(&[("m.gguf", model())])
}

#[test]
fn values_are_decoded() {
    let folder = tiny();
    let said = folder.text(&["extract", "m.gguf", "output.weight", "-o", "out.f32"]);
    assert_eq!(said, "output.weight (Q8_0, [32, 1]) rows 0..1 -> out.f32, 128 B\n");
    assert_eq!(folder.read("out.f32"), q8_0_values());
    let j = folder.json(&["export", "m.gguf", "token_embd.weight", "-o", "e.f32"]);
    assert_eq!((&j["bytes"], &j["rows"]["end"]), (&48.into(), &3.into()));
    assert_eq!(folder.read("e.f32"), le(&[0.5; 12]));
    let piped = folder.run(&["extract", "m.gguf", "output.weight", "-o", "-"]);
    assert_eq!((piped.code, piped.out), (0, q8_0_values()));
}

#[test]
fn rows_are_cut_out() {
    let values: Vec<f32> = (0..15).map(|i| i as f32).collect();
    let file = gguf(llama, &[f32s("t", &[3, 5], &values)]);
    let folder = Folder::with(&[("m.gguf", file)]);
    for (rows, range) in [("1..3", 3..9), ("..1", 0..3), ("4..", 12..15), ("2..2", 6..6), ("..", 0..15)] {
        let ran = folder.run(&["extract", "m.gguf", "t", "-o", "-", "--rows", rows]);
        assert_eq!((ran.code, ran.out), (0, le(&values[range])), "{rows}");
    }
}

/// More than one chunk, and a tensor of the second part.
#[test]
fn long_tensors_and_split_sets_are_decoded() {
    let values: Vec<f32> = (0..(1 << 20) + 77).map(|i| i as f32).collect();
    let file = gguf(llama, &[f32s("t", &[values.len() as u64], &values)]);
    let folder = Folder::with(&[("m.gguf", file)]);
    folder.text(&["extract", "m.gguf", "t", "-o", "o.f32"]);
    assert!(folder.read("o.f32") == le(&values));
    let folder = Folder::with(&set());
    folder.text(&["extract", "m-00001-of-00002.gguf", "b.weight", "-o", "b.f32"]);
    assert_eq!(folder.read("b.f32"), le(&[3.0]));
}

#[test]
fn what_is_there_is_not_overwritten_unasked() {
    let folder = tiny();
    std::fs::write(folder.path("out.f32"), "old").unwrap();
    let args = ["extract", "m.gguf", "output.weight", "-o", "out.f32"];
    let line = folder.refused(&args);
    assert!(line.contains("out.f32: exists already"), "{line}");
    assert_eq!(folder.read("out.f32"), b"old");
    folder.text(&[&args[..], &["--force"]].concat());
    assert_eq!(folder.read("out.f32"), q8_0_values());
}

#[cfg(unix)]
#[test]
fn an_input_is_never_the_output() {
    let folder = tiny();
    std::os::unix::fs::symlink(folder.path("m.gguf"), folder.path("link")).unwrap();
    for out in ["m.gguf", "./m.gguf", "link"] {
        let line = folder.refused(&["extract", "m.gguf", "output.weight", "-o", out, "--force"]);
        assert!(line.contains("is the input"), "{line}");
    }
    assert_eq!(folder.read("m.gguf"), model());
    let folder = Folder::with(&set());
    let second = "m-00002-of-00002.gguf";
    let args = ["extract", "m-00001-of-00002.gguf", "a.weight", "-o", second, "--force"];
    assert!(folder.refused(&args).contains("is the input"));
    assert_eq!(folder.read(second), set()[1].1);
}

#[test]
fn nothing_is_left_after_a_refusal() {
    let folder = tiny();
    let mut unknown = gguf(llama, &[("u", &[32], GgmlType::I8, vec![0; 32])]);
    let name = unknown.windows(9).rposition(|w| w == b"\x01\0\0\0\0\0\0\0u").unwrap();
    unknown[name + 9 + 4 + 8] = 200;
    std::fs::write(folder.path("u.gguf"), unknown).unwrap();
    let before = std::fs::read_dir(folder.path("")).unwrap().count();
    let mut lines = String::new();
    for args in [
        &["m.gguf", "no.such"][..],
        &["m.gguf", "token_embd.weight", "--rows", "2..4"],
        &["m.gguf", "token_embd.weight", "--rows", "9.."],
        &["u.gguf", "u", "--lenient"],
    ] {
        lines += &folder.refused(&[&["extract"], args, &["-o", "o.f32"]].concat());
    }
    insta::assert_snapshot!(lines);
    assert_eq!(std::fs::read_dir(folder.path("")).unwrap().count(), before);
}

#[test]
fn command_lines_without_sense_exit_with_2() {
    let folder = tiny();
    for args in [
        &["extract", "m.gguf", "output.weight", "-o", "o", "--rows", "3..1"][..],
        &["extract", "m.gguf", "output.weight", "-o", "o", "--rows", "x"],
        &["extract", "m.gguf", "output.weight", "-o", "-", "--json"],
        &["extract", "m.gguf", "output.weight"],
        &["kv", "m.gguf"],
        &["kv", "m.gguf", "k", "--raw", "--json"],
        &["info"],
    ] {
        let ran = folder.run(args);
        assert_eq!((ran.code, ran.out.len()), (2, 0), "{args:?}");
        assert!(!ran.err.is_empty());
    }
}

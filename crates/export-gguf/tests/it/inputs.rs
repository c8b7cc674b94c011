//! What the command reads, it never writes over; and a dry run refuses what the run would.

use gguf_format::{GgmlType, Gguf};

use crate::support::*;

/// An old importance file: one entry that is all ones.
fn importance(name: &str, values: usize) -> Vec<u8> {
    let mut out = 1_i32.to_le_bytes().to_vec();
    out.extend((name.len() as i32).to_le_bytes());
    out.extend(name.as_bytes());
    out.extend(1_i32.to_le_bytes());
    out.extend((values as i32).to_le_bytes());
    out.extend(f32s(std::iter::repeat_n(1.0, values)));
    out
}

#[test]
fn nothing_that_was_read_is_replaced() {
    let place = Place::new();
    place.write("in.gguf", &mixed());
    let matrix = importance("blk.0.ffn_up.weight", 512);
    place.write("im.dat", &matrix);
    place.write("types.txt", b"ffn_up=q6_k");
    let with = |more: &[&str]| place.run(&[&["--from-gguf", "in.gguf", "--force"], more].concat());
    let mix = ["--mix", "q8_0", "--tensor-type-file", "types.txt"];
    let cases: [&[&str]; 5] = [
        &["--out", "im.dat", "--dtype", "q8_0", "--imatrix", "im.dat"],
        // No entry is left, but the file was read.
        &["--out", "./im.dat", "--dtype", "q8_0", "--imatrix", "im.dat", "--exclude-weights", "weight"],
        &["--out", "types.txt", mix[0], mix[1], mix[2], mix[3]],
        &["--out", "o.gguf", "--report", "./types.txt", mix[0], mix[1], mix[2], mix[3]],
        &["--out", "o.gguf", "--report", "./o.gguf", "--dtype", "q8_0"],
    ];
    for case in cases {
        let ran = with(case);
        assert_ne!(ran.code, 0, "{case:?}");
        assert_eq!(ran.err.lines().count(), 1, "{case:?}: {}", ran.err);
    }
    assert_eq!(place.names(), ["im.dat", "in.gguf", "types.txt"]);
    assert_eq!((place.read("im.dat"), place.read("types.txt")), (matrix, b"ffn_up=q6_k".to_vec()));
}

#[test]
fn a_dry_run_refuses_what_the_run_refuses() {
    let place = Place::new();
    place.write("in.gguf", &mixed());
    let cases: [&[&str]; 3] = [
        &["--split-max-size", "1"],
        &["--mix", "copy", "--override-kv", "general.alignment=int:3"],
        &["--mix", "q8_0", "--prune-layers", "7"],
    ];
    for case in cases {
        let dry = place.run(&[&["--from-gguf", "in.gguf", "--dry-run"], case].concat());
        let wet = place.run(&[&["--from-gguf", "in.gguf", "--out", "o.gguf"], case].concat());
        assert_eq!((dry.code, wet.code), (1, 1), "{case:?}");
        assert_eq!(dry.err.replace("out.gguf", "o.gguf"), wet.err, "{case:?}");
    }
    assert_eq!(place.names(), ["in.gguf"]);
}

#[test]
fn a_dry_run_lists_the_files_of_a_set() {
    let place = Place::new();
    place.write("in.gguf", &mixed());
    let args = ["--from-gguf", "in.gguf", "--out", "m.gguf", "--dry-run", "--split-max-tensors", "3"];
    let ran = place.run(&args);
    assert!(ran.out.contains("m-00003-of-00003.gguf: 1 tensors"), "{}", ran.out);
    let ran = place.run(&[&args[..], &["--json"]].concat());
    let plan: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(plan["files"][2]["path"], "m-00003-of-00003.gguf");
    assert_eq!(plan["files"][2]["tensors"], 1);
}

#[test]
fn tensors_without_elements_pass_through_every_mix() {
    let place = Place::new();
    let input = model(&[
        ("blk.0.a.weight", &[32, 0], GgmlType::F16, Vec::new()),
        ("blk.0.b.weight", &[32, 2, 0, 1], GgmlType::F16, Vec::new()),
        ("blk.0.c.weight", &[32, 2], GgmlType::F16, f16s(weights(64))),
    ]);
    for mix in ["copy", "q8_0", "q4_k_m"] {
        let out = place.export(&input, &["--mix", mix]);
        let gguf = Gguf::parse(&out).unwrap();
        assert_eq!(gguf.tensor("blk.0.a.weight").unwrap().dims(), [32, 0], "{mix}");
        assert_eq!(gguf.tensor("blk.0.b.weight").unwrap().dims(), [32, 2, 0], "{mix}");
    }
}

#[test]
fn overrides_that_no_file_could_hold_are_refused() {
    let place = Place::new();
    place.write("in.gguf", &mixed());
    for kv in ["split.count=int:5", "x=float:nan", "x=float:1e400", "x=int:4294967296", "=int:1", "x=int"] {
        let ran =
            place.run(&["--from-gguf", "in.gguf", "--out", "o.gguf", "--mix", "copy", "--override-kv", kv]);
        assert_eq!(ran.code, 2, "{kv}: {}", ran.err);
    }
    assert_eq!(place.names(), ["in.gguf"]);
}

/// Linux takes any bytes in a file name.
#[cfg(target_os = "linux")]
#[test]
fn names_need_not_be_text() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    let input = mixed();
    place.write("in.gguf", &input);
    let name = |bytes: &'static [u8]| std::ffi::OsStr::from_bytes(bytes);
    let export = |from, to, more: &[&str]| {
        let mut command = place.command(&["--from-gguf"]);
        let done = command.arg(from).arg("--out").arg(to).args(more).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    export(name(b"in.gguf"), name(b"a\xff.gguf"), &["--split-max-tensors", "4"]);
    export(name(b"a\xff-00001-of-00002.gguf"), name(b"back\xfe.gguf"), &[]);
    let back = std::fs::read(place.path("x").with_file_name(name(b"back\xfe.gguf"))).unwrap();
    assert_eq!(Gguf::parse(&back).unwrap().tensors().len(), Gguf::parse(&input).unwrap().tensors().len());
}

/// `/dev/full` refuses every write.
#[cfg(target_os = "linux")]
#[test]
fn a_summary_that_cannot_be_printed_says_that_the_file_is_there() {
    let place = Place::new();
    place.write("in.gguf", &mixed());
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = place.command(&["--from-gguf", "in.gguf", "--out", "o.gguf", "--dtype", "q8_0"]);
    let ran = Ran::from(command.stdout(full).output().unwrap());
    assert_eq!(ran.code, 1);
    assert!(ran.err.starts_with("error: o.gguf is written, but: cannot write the output"), "{}", ran.err);
    assert!(Gguf::parse(&place.read("o.gguf")).is_ok());
}

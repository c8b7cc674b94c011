//! `verify`: every fault named, warnings told apart, exit codes.

use super::{Folder, Tensor, f32s, gguf, layers, llama, model, q8_0, set};
use gguf_format::{Builder, GgmlType};

/// Verifies one file and gives the exit code and the report.
fn verify(bytes: Vec<u8>, flags: &[&str]) -> (i32, String) {
    let folder = Folder::with(&[("m.gguf", bytes)]);
    let ran = folder.run(&[&["verify", "m.gguf"], flags].concat());
    assert_eq!(ran.err, "");
    (ran.code, String::from_utf8(ran.out).unwrap())
}

/// Where the fields of a tensor info are, counted from the end of its name.
const DIMS: usize = 4;

fn info(bytes: &[u8], name: &str) -> usize {
    let mut field = (name.len() as u64).to_le_bytes().to_vec();
    field.extend(name.as_bytes());
    bytes.windows(field.len()).rposition(|w| w == field).unwrap() + field.len()
}

/// Overwrites a one-dimensional tensor's offset.
fn move_to(bytes: &mut [u8], name: &str, offset: u64) {
    let at = info(bytes, name) + DIMS + 8 + 4;
    bytes[at..at + 8].copy_from_slice(&offset.to_le_bytes());
}

fn three() -> Vec<u8> {
    let keys = |b: &mut Builder| {
        b.set("general.architecture", "llama");
    };
    gguf(keys, &[f32s("a", &[8], &[1.0; 8]), f32s("b", &[8], &[2.0; 8]), f32s("c", &[8], &[3.0; 8])])
}

#[test]
fn a_sound_model_has_nothing_to_report() {
    let (code, text) = verify(model(), &[]);
    assert_eq!(
        (code, text.as_str()),
        (0, "0 faults, 0 warnings; 3 tensors in 1 file, 98 B of values checked\n")
    );
    let folder = Folder::with(&set());
    let ran = folder.text(&["verify", "m-00001-of-00002.gguf"]);
    assert_eq!(ran, "0 faults, 0 warnings; 2 tensors in 2 files, 12 B of values checked\n");
}

/// ollama/ollama#7844, ollama/ollama#10201: both are read by every loader.
#[test]
fn warnings_exit_with_0() {
    let mut cut = model();
    cut.truncate(cut.len() - 30);
    let mut long = model();
    long.extend([0; 100]);
    for (bytes, word) in [(cut, "padding"), (long, "trailing")] {
        let (code, text) = verify(bytes, &[]);
        assert_eq!(code, 0, "{text}");
        assert!(text.contains("m.gguf: warning: ") && text.contains(word), "{text}");
        assert!(text.contains("0 faults, 1 warning;"), "{text}");
    }
}

/// ggml-org/llama.cpp keeps names in 64 bytes, stable-diffusion.cpp in 128: such files exist, and each name
/// is told. So are types that are for activations, and tensors of nothing.
#[test]
fn tensors_that_some_loaders_refuse_are_warned_of_one_by_one() {
    let (long, longer) = ("n".repeat(64), "o".repeat(100));
    let mut b = Builder::new();
    b.set("general.architecture", "sd");
    b.allow_long_names();
    b.tensor(&long, &[1], GgmlType::F32).unwrap();
    b.tensor(&longer, &[1], GgmlType::F32).unwrap();
    b.tensor("activations", &[32], GgmlType::Q8_1).unwrap();
    b.tensor("nothing", &[4, 0], GgmlType::F32).unwrap();
    let layout = b.layout().unwrap();
    let (code, text) = verify(layout.whole(&[&[0; 4], &[0; 4], &[0; 36], &[]]).unwrap(), &[]);
    assert_eq!(code, 0);
    insta::assert_snapshot!(text);
}

/// EricLBuehler/mistral.rs#2282, ggml-org/llama.cpp#26690 and others: what loaders stumble over.
#[test]
fn all_faults_of_the_metadata_are_named() {
    let keys = |b: &mut Builder| {
        llama(b);
        b.set("general.name", 7_u32);
        b.set("general.quantization_version", 3_u32);
        b.set("general.file_type", 999_u32);
        b.set("llama.block_count", 4_u32);
        b.set("tokenizer.ggml.tokens", ["a", "b"]);
        b.set("tokenizer.ggml.scores", [1_u8, 2, 3]);
        b.set("tokenizer.ggml.token_type", 5_i32);
        b.set("tokenizer.ggml.eos_token_id", 2_u32);
        b.set("tokenizer.ggml.unknown_token_id", "unk");
        b.set("tokenizer.ggml.padding_token_id", -1_i32);
    };
    let (code, text) = verify(gguf(keys, &layers()), &[]);
    assert_eq!(code, 1);
    insta::assert_snapshot!(text);
}

#[test]
fn a_missing_architecture_is_a_fault_unless_there_is_none() {
    let file = |kind: Option<&str>| {
        let keys = |b: &mut Builder| {
            if let Some(kind) = kind {
                b.set("general.type", kind);
            }
        };
        verify(gguf(keys, &[f32s("a", &[1], &[1.0])]), &[])
    };
    let (code, text) = file(None);
    assert!(code == 1 && text.contains("'general.architecture' is missing"), "{text}");
    assert_eq!(file(Some("imatrix")).0, 0);
}

/// ggml-org/llama.cpp#7238 and others: NaN in weights, non-finite scales in blocks.
#[test]
fn values_that_are_not_finite_are_counted_and_located() {
    let nan = f32::NAN;
    let mut blocks = q8_0().repeat(6);
    for block in [2, 3] {
        blocks[block * 34..block * 34 + 2].copy_from_slice(&0x7c00_u16.to_le_bytes());
    }
    let mut half = vec![0; 2 * 8];
    half[6..8].copy_from_slice(&0xfc00_u16.to_le_bytes());
    let keys = |b: &mut Builder| {
        b.set("general.architecture", "llama");
        b.set("general.quantization_version", 2_u32);
    };
    let tensors: [Tensor<'_>; 4] = [
        f32s("floats", &[4, 2], &[0.0, 1.0, 2.0, 3.0, 4.0, nan, f32::INFINITY, 7.0]),
        ("halves", &[8], GgmlType::F16, half),
        ("blocks", &[64, 3], GgmlType::Q8_0, blocks),
        f32s("fine", &[1], &[f32::MAX]),
    ];
    let bytes = gguf(keys, &tensors);
    let (code, text) = verify(bytes.clone(), &[]);
    assert_eq!(code, 1);
    insta::assert_snapshot!(text);
    assert_eq!(verify(bytes, &["--no-values"]).0, 0);
}

/// Tensors on top of each other, and more than one of them.
#[test]
fn every_overlap_is_named() {
    let mut bytes = three();
    move_to(&mut bytes, "b", 0);
    move_to(&mut bytes, "c", 0);
    let (code, text) = verify(bytes, &[]);
    assert_eq!(code, 1);
    insta::assert_snapshot!(text);
}

#[test]
fn gaps_and_disorder_are_faults_or_with_lenient_warnings() {
    let mut bytes = three();
    move_to(&mut bytes, "a", 64);
    move_to(&mut bytes, "c", 96);
    bytes.extend([0; 32]);
    let (code, text) = verify(bytes.clone(), &[]);
    assert_eq!(code, 1);
    insta::assert_snapshot!(text);
    let (code, text) = verify(bytes, &["--lenient"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("warning: "), "{text}");
}

/// ollama/ollama#4619 and many more: an interrupted download.
#[test]
fn every_tensor_that_the_end_cuts_is_named() {
    let mut bytes = three();
    bytes.truncate(bytes.len() - 50);
    let (code, text) = verify(bytes, &[]);
    assert_eq!(code, 1);
    insta::assert_snapshot!(text);
}

/// Types that ggml removed or never had, a row that blocks do not divide, a product that overflows, and
/// the same name twice, all in one file: values of the sound tensor are still looked at.
#[test]
fn faults_of_the_header_do_not_hide_each_other() {
    let keys = |b: &mut Builder| {
        b.set("general.architecture", "llama");
    };
    let names = ["old", "new", "row", "vast", "same-1", "same-2", "nan"];
    let tensors: Vec<Tensor<'_>> = names.iter().map(|n| f32s(n, &[8], &[f32::NAN; 8])).collect();
    let mut bytes = gguf(keys, &tensors);
    let mut set = |name: &str, back: usize, value: &[u8]| {
        let at = info(&bytes, name) + back;
        bytes[at..at + value.len()].copy_from_slice(value);
    };
    set("old", DIMS + 8, &[4, 0, 0, 0]);
    set("new", DIMS + 8, &[250, 0, 0, 0]);
    set("row", DIMS + 8, &[8, 0, 0, 0]);
    set("vast", DIMS, &u64::MAX.to_le_bytes());
    let at = info(&bytes, "same-2");
    bytes[at - 1] = b'1';
    let (code, text) = verify(bytes, &[]);
    assert_eq!(code, 1);
    insta::assert_snapshot!(text);
}

/// ggml-org/llama.cpp#6187, FlashML-org/FreeToken#154, ggml-org/llama.cpp#6836.
#[test]
fn faults_of_a_set_are_named_per_part() {
    let [first, _] = set();
    let split = |no: u16, count: u16, tensors: &[Tensor<'_>]| {
        let keys = |b: &mut Builder| {
            b.set("split.no", no);
            b.set("split.count", count);
            b.set("split.tensors.count", 9_i32);
        };
        gguf(keys, tensors)
    };
    let second = ("m-00002-of-00002.gguf", split(0, 3, &[f32s("a.weight", &[2], &[f32::NAN, 1.0])]));
    let ran = Folder::with(&[first.clone(), second.clone()]).run(&["verify", first.0]);
    assert_eq!(ran.code, 1);
    insta::assert_snapshot!(String::from_utf8(ran.out).unwrap());

    let alone = Folder::with(&[second]).run(&["verify", "m-00002-of-00002.gguf"]);
    assert_eq!(alone.code, 1);
    insta::assert_snapshot!(String::from_utf8(alone.out).unwrap());

    let vast = ("m-00001-of-65535.gguf", split(0, 65535, &[]));
    let ran = Folder::with(&[vast]).run(&["verify", "m-00001-of-65535.gguf"]);
    assert_eq!(ran.code, 1);
    insta::assert_snapshot!(String::from_utf8(ran.out).unwrap());
}

#[test]
fn what_is_no_model_is_a_fault_of_one_line() {
    let mut joined = set()[0].1.clone();
    joined.extend(&set()[1].1);
    let zeros = vec![0; 4096];
    let mut huge = b"GGUF\x03\0\0\0".to_vec();
    huge.extend([0xff; 16]);
    let mut report = String::new();
    for bytes in [joined, b"".to_vec(), b"<html>".to_vec(), b"GGUF".to_vec(), zeros, huge] {
        let (code, text) = verify(bytes, &[]);
        assert_eq!(code, 1, "{text}");
        report += &text;
    }
    insta::assert_snapshot!(report);
    let folder = Folder::with(&[]);
    assert!(folder.refused(&["verify", "none.gguf"]).contains("none.gguf: cannot open"));
}

#[test]
fn the_report_as_json() {
    let mut bytes = three();
    move_to(&mut bytes, "b", 0);
    let folder = Folder::with(&[("m.gguf", bytes)]);
    let ran = folder.run(&["verify", "m.gguf", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&ran.out).unwrap();
    assert_eq!((ran.code, &report["faults"]), (1, &1.into()));
    let problem = &report["problems"][0];
    assert_eq!((&problem["severity"], &problem["file"]), (&"fault".into(), &"m.gguf".into()));
    assert!(problem["text"].as_str().unwrap().contains("overlaps"), "{problem}");
}

//! The looking commands on safetensors files and indexes.

use clap::Parser;
use export_gguf::cli::{Cli, Command};
use export_gguf::look::{dump, extract, info, tensors, verify};
use export_gguf::{Error, Outcome};
use safetensors_lite::fs::{ShardPlan, save};
use safetensors_lite::{Builder, Dtype, Tensor};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Runs a command line with `FOLDER` for the folder, and puts it back into what is printed.
fn run(folder: &Path, line: &str) -> Result<(Outcome, String), Error> {
    let shown = folder.display().to_string();
    let words = line.split(' ').map(|word| word.replace("FOLDER", &shown));
    let mut out = Vec::new();
    let cli = Cli::try_parse_from(std::iter::once("export-gguf".to_owned()).chain(words)).unwrap();
    let outcome = match cli.command.unwrap() {
        Command::Info(args) => info::run(&args, &mut out),
        Command::Tensors(args) => tensors::run(&args, &mut out),
        Command::Dump(args) => dump::run(&args, &mut out),
        Command::Verify(args) => verify::run(&args, &mut out),
        Command::Extract(args) => extract::run(&args, &mut out),
        other => panic!("{other:?}"),
    }?;
    Ok((outcome, String::from_utf8(out).unwrap().replace(&shown, "FOLDER")))
}

fn text(folder: &Path, line: &str) -> String {
    run(folder, line).unwrap().1
}

fn f16(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| half::f16::from_f32(*v).to_le_bytes()).collect()
}

fn f32s(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

/// A file with the dtypes that have values, one that has none, a scalar and an empty tensor.
fn one(folder: &Path) {
    let whole: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let tensors = [
        Tensor { name: "w", dtype: Dtype::F32, shape: &[3, 2], data: &whole },
        Tensor { name: "h", dtype: Dtype::F16, shape: &[1, 2, 2], data: &f16(&[0.5, -0.25, 65504.0, 0.0]) },
        Tensor { name: "b\x1b[2J", dtype: Dtype::BF16, shape: &[], data: &[0x80, 0x3f] },
        Tensor { name: "f8", dtype: Dtype::F8E4M3, shape: &[4], data: &[0x38, 0x40, 0x7e, 0x80] },
        Tensor { name: "none", dtype: Dtype::F32, shape: &[0, 2], data: &[] },
    ];
    save(folder.join("one.safetensors"), &tensors, Some(&[("format", "pt"), ("note", "a\x07b")])).unwrap();
}

#[test]
fn a_file_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    one(folder.path());
    for (name, line) in [
        ("info", "info FOLDER/one.safetensors"),
        ("info_json", "info FOLDER/one.safetensors --json"),
        ("tensors", "tensors FOLDER/one.safetensors"),
        ("dump", "dump FOLDER/one.safetensors"),
        ("verify", "verify FOLDER/one.safetensors"),
    ] {
        let shown = text(folder.path(), line);
        assert!(!shown.contains(['\x1b', '\x07']), "{shown}");
        insta::assert_snapshot!(name, shown);
    }
    let json: Value =
        serde_json::from_str(&text(folder.path(), "tensors FOLDER/one.safetensors --json")).unwrap();
    assert_eq!(json[4]["dtype"], "F8_E4M3");
    assert_eq!((&json[4]["decodable"], &json[1]["shape"]), (&false.into(), &serde_json::json!([3, 2])));
    let json: Value =
        serde_json::from_str(&text(folder.path(), "dump FOLDER/one.safetensors --json")).unwrap();
    assert_eq!(json["parts"][0]["metadata"]["note"], "a\x07b");
}

#[test]
fn values_are_extracted() {
    let folder = tempfile::tempdir().unwrap();
    one(folder.path());
    let extract = |tensor: &str, more: &str| {
        let line = format!("extract FOLDER/one.safetensors {tensor} -o FOLDER/out --force{more}");
        run(folder.path(), &line).map(|_| f32s(&fs::read(folder.path().join("out")).unwrap()))
    };
    assert_eq!(extract("w", "").unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(extract("w", " --rows 1..2").unwrap(), [3.0, 4.0]);
    assert_eq!(extract("w", " --rows 2..").unwrap(), [5.0, 6.0]);
    assert_eq!(extract("h", "").unwrap(), [0.5, -0.25, 65504.0, 0.0]);
    assert_eq!(extract("b\x1b[2J", "").unwrap(), [1.0]);
    assert_eq!(extract("none", "").unwrap(), [0.0; 0]);
    for (tensor, more, what) in [
        ("f8", "", "tensor f8: unsupported dtype F8_E4M3: values can be had of F32, F16 and BF16"),
        ("w", " --rows 2..4", "tensor w: rows 2..4 are not within its 3"),
        ("W", "", "no tensor W"),
    ] {
        let error = extract(tensor, more).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    // Never over its own input.
    let line = "extract FOLDER/one.safetensors w -o FOLDER/one.safetensors --force";
    assert!(run(folder.path(), line).is_err());
    assert!(text(folder.path(), "verify FOLDER/one.safetensors").starts_with("0 faults"));
}

#[test]
fn an_index_is_one_model() {
    let folder = tempfile::tempdir().unwrap();
    let mut builder = Builder::new();
    builder.tensor("a", Dtype::F32, &[4]).unwrap().tensor("b", Dtype::BF16, &[4]).unwrap();
    let plan = ShardPlan::new(&builder, "model", 16).unwrap();
    plan.save(folder.path(), |info, sink| sink.write_all(&vec![0x3f; info.byte_len() as usize])).unwrap();
    let index = "FOLDER/model.safetensors.index.json";
    let shown = text(folder.path(), &format!("tensors {index}"));
    assert!(shown.contains("a     F32") && shown.contains("b     BF16"), "{shown}");
    let json: Value = serde_json::from_str(&text(folder.path(), &format!("info {index} --json"))).unwrap();
    assert_eq!((json["tensors"].as_u64(), json["parts"].as_array().map(Vec::len)), (Some(2), Some(2)));
    run(folder.path(), &format!("extract {index} b -o FOLDER/out")).unwrap();
    let value = f32::from_bits(0x3f3f_0000);
    assert_eq!(f32s(&fs::read(folder.path().join("out")).unwrap()), [value; 4]);

    // A shard that is gone is a fault by its name.
    fs::remove_file(folder.path().join("model-00002-of-00002.safetensors")).unwrap();
    let (outcome, shown) = run(folder.path(), &format!("verify {index}")).unwrap();
    assert_eq!(outcome, Outcome::Faults);
    assert!(shown.contains("\"model-00002-of-00002.safetensors\" is missing"), "{shown}");
}

#[test]
fn an_unlisted_tensor_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let tensors = ["a", "extra"].map(|name| Tensor { name, dtype: Dtype::F32, shape: &[1], data: &[0; 4] });
    save(folder.path().join("m1"), &tensors, None).unwrap();
    let index = folder.path().join("m.safetensors.index.json");
    fs::write(index, r#"{"weight_map":{"a":"m1"}}"#).unwrap();
    let (outcome, shown) = run(folder.path(), "verify FOLDER/m.safetensors.index.json").unwrap();
    assert_eq!(outcome, Outcome::Ok);
    assert!(shown.contains("warning: tensor \"extra\" is unlisted"), "{shown}");
    assert!(!text(folder.path(), "tensors FOLDER/m.safetensors.index.json").contains("extra"));
    assert!(run(folder.path(), "extract FOLDER/m.safetensors.index.json extra -o FOLDER/x").is_err());
}

#[test]
fn faults_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let data: Vec<u8> = [1.0, f32::NAN, f32::INFINITY].iter().flat_map(|v| v.to_le_bytes()).collect();
    let tensor = Tensor { name: "w", dtype: Dtype::F32, shape: &[3], data: &data };
    save(folder.path().join("nan.safetensors"), &[tensor], None).unwrap();
    let (outcome, shown) = run(folder.path(), "verify FOLDER/nan.safetensors").unwrap();
    assert_eq!(outcome, Outcome::Faults);
    let what = "fault: tensor 'w' (F32) has 2 non-finite values of 3, first NaN at element 1";
    assert!(shown.contains(what), "{shown}");
    let (outcome, _) = run(folder.path(), "verify FOLDER/nan.safetensors --no-values").unwrap();
    assert_eq!(outcome, Outcome::Ok);

    let mut cut = fs::read(folder.path().join("nan.safetensors")).unwrap();
    cut.pop();
    fs::write(folder.path().join("cut.safetensors"), cut).unwrap();
    let (outcome, shown) = run(folder.path(), "verify FOLDER/cut.safetensors").unwrap();
    assert_eq!(outcome, Outcome::Faults);
    assert!(shown.contains("cut.safetensors: fault: data truncated: 12 bytes announced, 11 left"), "{shown}");
    for command in ["info", "tensors", "dump"] {
        let error = run(folder.path(), &format!("{command} FOLDER/cut.safetensors")).unwrap_err();
        assert!(error.to_string().contains("cut.safetensors: data truncated"), "{error}");
    }
    assert!(run(folder.path(), "verify FOLDER/none.safetensors").is_err());
    let error = run(folder.path(), "info FOLDER/nan.safetensors --lenient").unwrap_err();
    assert_eq!(error.exit_code(), 2);
}

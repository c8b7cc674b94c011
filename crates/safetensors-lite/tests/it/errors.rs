//! The text of every error, as a user reads it.

use crate::make::{ONE, ONE_DATA, frame};
use safetensors_lite::{
    Builder, Dtype, SafeTensors, Tensor,
    fs::{Shards, Stream, read_prefix},
    serialize,
};
use std::fmt::Write;

#[test]
fn format_errors() {
    let huge = [&u64::MAX.to_le_bytes()[..], b"{}"].concat();
    let long = format!(r#"{{"{}":1}}"#, "x\\n".repeat(200));
    let tensor = |fields: &str| frame(format!(r#"{{"a.weight":{{{fields}}}}}"#), &ONE_DATA);
    let files: &[(&str, Vec<u8>)] = &[
        ("short", vec![1, 2, 3]),
        ("large", huge),
        ("lfs", b"version https://git-lfs.github.com/spec/v1\n".to_vec()),
        ("cut", frame(ONE, &ONE_DATA)[..30].to_vec()),
        ("utf-8", frame(b"{\"\xc3\"", &[])),
        ("empty", frame("", &[])),
        ("space", frame(" {}", &[])),
        ("json", frame("{\"a\":}", &[])),
        ("nul", frame("{}\0", &[])),
        ("twice", frame(r#"{"a":{},"a":{}}"#, &[])),
        ("twice inside", tensor(r#""dtype":"F32","dtype":"F32""#)),
        ("metadata", frame(r#"{"__metadata__":{"step":12}}"#, &[])),
        ("no metadata", frame(r#"{"__metadata__":[]}"#, &[])),
        ("no entry", frame(r#"{"a":"F32"}"#, &[])),
        ("long name", frame(long, &[])),
        ("dim", tensor(r#""dtype":"F32","shape":[-1],"data_offsets":[0,8]"#)),
        ("shape", tensor(r#""dtype":"F32","shape":2,"data_offsets":[0,8]"#)),
        ("offset", tensor(r#""dtype":"F32","shape":[2],"data_offsets":[0,8.5]"#)),
        ("offsets", tensor(r#""dtype":"F32","shape":[2],"data_offsets":{"begin":0}"#)),
        ("three", tensor(r#""dtype":"F32","shape":[2],"data_offsets":[0,4,8]"#)),
        ("missing", tensor(r#""dtype":"F32","shape":[2]"#)),
        ("dtype", tensor(r#""dtype":"F128","shape":[2],"data_offsets":[0,8]"#)),
        ("no dtype", tensor(r#""dtype":null,"shape":[2],"data_offsets":[0,8]"#)),
        ("reversed", tensor(r#""dtype":"F32","shape":[2],"data_offsets":[8,0]"#)),
        ("hole", tensor(r#""dtype":"F32","shape":[1],"data_offsets":[4,8]"#)),
        (
            "overlap",
            frame(
                concat!(
                    r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"#,
                    r#""b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}}"#
                ),
                &ONE_DATA,
            ),
        ),
        ("truncated", frame(ONE, &ONE_DATA[..5])),
        ("trailing", frame(ONE, &[0; 30])),
        ("overflow", tensor(r#""dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]"#)),
        ("sub-byte", tensor(r#""dtype":"F4","shape":[3,5],"data_offsets":[0,8]"#)),
        ("size", tensor(r#""dtype":"BF16","shape":[1,1,1,1,1,1,1,1,1,5],"data_offsets":[0,8]"#)),
    ];
    let mut text = String::new();
    for (what, bytes) in files {
        let error = SafeTensors::parse(bytes).expect_err(what).to_string();
        assert!(!error.contains('\n') && error.len() < 300, "{error}");
        writeln!(text, "{what}: {error}").unwrap();
    }
    insta::assert_snapshot!(text);
}

#[test]
fn write_errors() {
    let mut text = String::new();
    let mut builder = Builder::new();
    builder.tensor("a", Dtype::U8, &[1 << 60]).unwrap();
    let mut told =
        |error: Option<safetensors_lite::WriteError>| writeln!(text, "{}", error.unwrap()).unwrap();
    told(builder.tensor("a", Dtype::U8, &[2]).err());
    told(builder.tensor("__metadata__", Dtype::U8, &[2]).err());
    told(builder.tensor("b", Dtype::U64, &[1 << 60]).err());
    told(builder.tensor("b", Dtype::F6E2M3, &[3]).err());
    for name in 0..15 {
        builder.tensor(&name.to_string(), Dtype::U8, &[1 << 60]).unwrap();
    }
    told(builder.layout().err());
    let mut builder = Builder::new();
    builder.metadata("k", &"x".repeat(100_000_000));
    told(builder.layout().err());
    told(serialize(&[Tensor { name: "a", dtype: Dtype::F32, shape: &[2], data: &[0; 7] }], None).err());
    insta::assert_snapshot!(text);
}

#[test]
fn file_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut text = String::new();
    let mut told = |error: safetensors_lite::fs::Error| {
        let error = error.to_string().replace(&*folder.path().to_string_lossy(), "DIR");
        writeln!(text, "{error}").unwrap();
    };
    let index = |map: &str| {
        std::fs::write(path("i.json"), format!(r#"{{"weight_map":{map}}}"#)).unwrap();
        Shards::open(path("i.json")).unwrap_err()
    };
    std::fs::write(path("m1"), frame(ONE, &ONE_DATA)).unwrap();
    std::fs::write(path("m2"), frame(ONE, &ONE_DATA)).unwrap();
    std::fs::write(path("bad"), frame(ONE, &ONE_DATA[1..])).unwrap();

    told(safetensors_lite::fs::load(path("none")).unwrap_err());
    told(safetensors_lite::fs::load(folder.path()).unwrap_err());
    told(safetensors_lite::fs::load(path("bad")).unwrap_err());
    told(index("7"));
    told(index(r#"{"a":7}"#));
    told(index(r#"{"a":"m1","a":"m1"}"#));
    told(index("{"));
    told(index(r#"{"a":"../m1"}"#));
    told(index(r#"{"a":"m3"}"#));
    told(index(r#"{"b":"m1"}"#));
    told(index(r#"{"a":"bad"}"#));
    std::fs::write(path("m3"), frame("{}", &[])).unwrap();
    told(index(r#"{"a":"m1","b":"m2"}"#));
    told(index(r#"{"a":"m3"}"#));
    told(read_prefix(&frame(ONE, &ONE_DATA)[..20]).unwrap_err());

    let mut builder = Builder::new();
    builder.tensor("a", Dtype::U8, &[4]).unwrap();
    let stream = || Stream::new(builder.layout().unwrap(), Vec::new()).unwrap();
    told(stream().write(&[0; 5]).unwrap_err());
    told(stream().finish().unwrap_err());
    told(stream().write_each(|_, sink| sink.write_all(&[0; 5])).unwrap_err());
    told(stream().write_each(|_, sink| sink.write_all(&[0; 3])).unwrap_err());
    told(stream().write_each(|_, _| Err(std::io::Error::other("the disk is tired"))).unwrap_err());
    insta::assert_snapshot!(text);
}

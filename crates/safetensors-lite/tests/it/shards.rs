//! Checkpoints in several files.

use crate::make::frame;
use safetensors_lite::{
    Builder, Dtype,
    fs::{ErrorKind, ShardPlan, Shards, load},
};
use std::{fs, io::Write, path::Path};

/// A file with one-byte tensors of these names.
fn shard(names: &[&str]) -> Vec<u8> {
    let entry = |(i, name): (usize, &&str)| {
        format!(r#""{name}":{{"dtype":"U8","shape":[1],"data_offsets":[{i},{}]}}"#, i + 1)
    };
    let entries: Vec<String> = names.iter().enumerate().map(entry).collect();
    frame(format!("{{{}}}", entries.join(",")), &vec![7; names.len()])
}

fn index(folder: &Path, map: &str) -> std::path::PathBuf {
    let path = folder.join("model.safetensors.index.json");
    fs::write(&path, format!(r#"{{"metadata":{{"total_size":3,"more":[1]}},"weight_map":{map}}}"#)).unwrap();
    path
}

#[test]
fn every_mapped_tensor_is_found() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("m1"), shard(&["a", "b"])).unwrap();
    fs::write(folder.path().join("m2"), shard(&["c", "extra"])).unwrap();
    let shards = Shards::open(index(folder.path(), r#"{"c":"m2","a":"m1","b":"m1"}"#)).unwrap();
    assert_eq!((shards.len(), shards.shards().len(), shards.total_size()), (3, 2, Some(3)));
    assert_eq!(shards.tensors().map(|t| t.info().name()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(shards.unlisted().map(|t| t.info().name()).collect::<Vec<_>>(), ["extra"]);
    assert!(shards.tensor("extra").is_none());
    let c = shards.tensor("c").unwrap();
    assert_eq!((c.shard().name(), c.read().unwrap()), ("m2", vec![7]));
    // A file that shrinks after it was opened is an error when it is read.
    fs::write(folder.path().join("m2"), b"short").unwrap();
    assert!(c.read().is_err());
}

/// huggingface/transformers#47176, huggingface/diffusers#14175: an index must not lead elsewhere.
#[test]
fn hostile_names_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("model");
    fs::create_dir_all(inner.join("x")).unwrap();
    for place in [folder.path().join("m1"), inner.join("m1"), inner.join("x/m1")] {
        fs::write(place, shard(&["a"])).unwrap();
    }
    let absolute = inner.join("m1").to_string_lossy().into_owned();
    for name in
        ["../m1", "x/../../m1", "x/m1", "./m1", "m1/", "..", ".", "", "..\\m1", "x\\m1", "m1\0", &absolute]
    {
        let map = format!(r#"{{"a":{:?}}}"#, name.replace('\0', "NUL")).replace("NUL", "\\u0000");
        let error = Shards::open(index(&inner, &map)).unwrap_err();
        let ErrorKind::ShardName { shard } = error.kind() else { panic!("{name:?}: {error}") };
        assert_eq!(shard, name);
    }
    assert!(Shards::open(index(&inner, r#"{"a":"m1"}"#)).is_ok());
}

/// huggingface/transformers#46913: a download cache keeps the shards elsewhere and links to them.
#[cfg(unix)]
#[test]
fn linked_shards_load() {
    let folder = tempfile::tempdir().unwrap();
    let (blobs, snapshot) = (folder.path().join("blobs"), folder.path().join("snapshots/x"));
    fs::create_dir_all(&blobs).unwrap();
    fs::create_dir_all(&snapshot).unwrap();
    fs::write(blobs.join("deadbeef"), shard(&["w"])).unwrap();
    let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, snapshot.join(name)).unwrap();
    link("../../blobs/deadbeef", "model-00001-of-00001.safetensors");
    let path = index(&blobs, r#"{"w":"model-00001-of-00001.safetensors"}"#);
    fs::rename(path, blobs.join("cafe")).unwrap();
    link("../../blobs/cafe", "model.safetensors.index.json");
    let shards = Shards::open(snapshot.join("model.safetensors.index.json")).unwrap();
    assert_eq!(shards.tensor("w").unwrap().read().unwrap(), [7]);

    // A link to nothing is a shard that is missing.
    fs::remove_file(blobs.join("deadbeef")).unwrap();
    let error = Shards::open(snapshot.join("model.safetensors.index.json")).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::ShardMissing { .. }), "{error}");
}

/// ggml-org/llama.cpp#7215, #12456: what is missing is named before anything is read.
#[test]
fn missing_shards_and_tensors_are_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("m1"), b"not even a file of the format").unwrap();
    let error = Shards::open(index(folder.path(), r#"{"a":"m1","b":"m2"}"#)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::ShardMissing { shard } if shard == "m2"), "{error}");
    fs::write(folder.path().join("m1"), shard(&["a"])).unwrap();
    fs::write(folder.path().join("m2"), shard(&["b"])).unwrap();
    let error = Shards::open(index(folder.path(), r#"{"a":"m1","b":"m2","ghost":"m2"}"#)).unwrap_err();
    let ErrorKind::TensorMissing { tensor, shard } = error.kind() else { panic!("{error}") };
    assert_eq!((&**tensor, &**shard), ("ghost", "m2"));
    // In the wrong shard is missing too.
    let error = Shards::open(index(folder.path(), r#"{"a":"m2","b":"m2"}"#)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::TensorMissing { .. }), "{error}");
}

/// ggml-org/llama.cpp#7486, #10756: which of the two is meant cannot be known.
#[test]
fn a_tensor_in_two_shards_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("m1"), shard(&["a", "w"])).unwrap();
    fs::write(folder.path().join("m2"), shard(&["b", "w"])).unwrap();
    let error = Shards::open(index(folder.path(), r#"{"a":"m1","b":"m2","w":"m2"}"#)).unwrap_err();
    let ErrorKind::TensorTwice { tensor, first, second } = error.kind() else { panic!("{error}") };
    assert_eq!((&**tensor, &**first, &**second), ("w", "m1", "m2"));
}

#[test]
fn an_index_has_the_right_form() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("i.json");
    for text in
        ["[]", "{}", r#"{"weight_map":[]}"#, r#"{"weight_map":{"a":7}}"#, r#"{"weight_map":{"a":null}}"#]
    {
        fs::write(&path, text).unwrap();
        let error = Shards::open(&path).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::IndexSchema { .. }), "{text}: {error}");
    }
    for text in ["", "{", r#"{"weight_map":{},"weight_map":{}}"#, &"[".repeat(100_000)] {
        fs::write(&path, text).unwrap();
        let error = Shards::open(&path).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Format(_)), "{error}");
    }
}

fn builder(count: usize) -> Builder {
    let mut builder = Builder::new();
    builder.metadata("format", "pt");
    for i in 0..count {
        builder.tensor(&format!("t{i:02}"), Dtype::U8, &[10]).unwrap();
    }
    builder
}

#[test]
fn written_shards_are_read() {
    for (count, max, files) in
        [(10, 30, 4), (10, 10, 10), (10, 5, 10), (10, 100, 1), (10, u64::MAX, 1), (0, 9, 1)]
    {
        let folder = tempfile::tempdir().unwrap();
        let plan = ShardPlan::new(&builder(count), "model", max).unwrap();
        assert_eq!(plan.files().len(), files);
        let value = |name: &str| name.bytes().last().unwrap();
        plan.save(folder.path(), |info, sink| sink.write_all(&[value(info.name()); 10])).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), files + 1);
        let shards = Shards::open(folder.path().join("model.safetensors.index.json")).unwrap();
        assert_eq!((shards.len(), shards.unlisted().count()), (count, 0));
        assert_eq!(shards.total_size(), Some(count as u64 * 10));
        for tensor in shards.tensors() {
            assert_eq!(tensor.read().unwrap(), [value(tensor.info().name()); 10]);
        }
        for (name, layout) in plan.files() {
            assert!(layout.header().data_len() <= max.max(10));
            let file = load(folder.path().join(name)).unwrap();
            assert_eq!(file.header().metadata_value("format"), Some("pt"));
        }
    }
}

#[test]
fn a_failed_shard_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let plan = ShardPlan::new(&builder(4), "model", 10).unwrap();
    let fill = |info: safetensors_lite::TensorInfo<'_>, sink: &mut dyn Write| {
        if info.name() == "t03" { Err(std::io::Error::other("no")) } else { sink.write_all(&[0; 10]) }
    };
    assert!(plan.save(folder.path(), fill).is_err());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(ShardPlan::new(&builder(1), "../model", 10).is_err());
}

#[test]
fn the_index_reads_like_hugging_faces() {
    let plan = ShardPlan::new(&builder(2), "model", 10).unwrap();
    insta::assert_snapshot!(plan.index());
}

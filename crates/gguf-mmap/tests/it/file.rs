//! One opened file: directory, data, hand-off, laziness.

use crate::make::{Folder, gguf, le};
use gguf_mmap::{ErrorKind, GgufFile, Mapping, OpenOptions};
use std::error::Error as _;

fn sample() -> Folder {
    Folder::with(&[("m.gguf", &gguf(&[("a", &[1.0, 2.0]), ("b", &[3.0])], |_| {}))])
}

#[test]
fn data_and_directory_are_the_files() {
    let folder = sample();
    for heap in [false, true] {
        let path = folder.path("m.gguf");
        let file = GgufFile::open_with(&path, OpenOptions::default().heap(heap)).unwrap();
        assert_eq!(file.gguf().get("general.architecture").unwrap().as_str(), Some("llama"));
        let names: Vec<_> = file.gguf().tensors().map(|t| t.name().to_string()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(file.tensor_data("a"), Some(&*le(&[1.0, 2.0])));
        assert_eq!(file.tensor_bytes("b").as_deref(), Some(&*le(&[3.0])));
        assert_eq!(file.tensor_data("c"), None);
        assert_eq!(file.mapping().unwrap().is_mapped(), !heap);
        assert_eq!(file.file_len(), path.metadata().unwrap().len());
        assert_eq!(file.path(), Some(&*path));
        let b = file.tensor("b").unwrap();
        file.prefetch(&b);
        file.release(&b);
        assert_eq!(file.data(&b), Some(&*le(&[3.0])));
    }
}

#[test]
fn the_directory_survives_the_hand_off_and_data_is_none() {
    let folder = sample();
    let mut file = GgufFile::open(folder.path("m.gguf")).unwrap();
    let raw = file.gguf().metadata().next().unwrap().raw().to_vec();
    let handle = file.tensor_bytes("a").unwrap();

    let mapping = file.take_mapping().unwrap();
    assert!(file.take_mapping().is_none() && file.mapping().is_none());
    let a = file.tensor("a").unwrap();
    assert_eq!((a.dims(), a.byte_len()), (&[2][..], 8));
    assert_eq!(file.gguf().metadata().next().unwrap().raw(), raw);
    assert!(file.data(&a).is_none() && file.tensor_data("a").is_none());
    assert!(file.bytes(&a).is_none() && file.tensor_bytes("a").is_none());
    assert_eq!(file.gguf().data(&a), None);
    file.prefetch(&a);
    file.release(&a);
    assert_eq!(file.file_len(), mapping.len() as u64);

    // The offsets still fit the mapping, wherever it went.
    let start = a.file_offset();
    let here = mapping.range(start..start + a.byte_len()).unwrap();
    drop(file);
    drop(mapping);
    assert_eq!((&*handle, &*here), (&*le(&[1.0, 2.0]), &*le(&[1.0, 2.0])));
}

#[test]
fn a_file_can_come_from_memory() {
    let file = GgufFile::from_mapping(Mapping::from_vec(gguf(&[("a", &[1.0])], |_| {})), false).unwrap();
    assert_eq!((file.tensor_data("a"), file.path()), (Some(&*le(&[1.0])), None));
    let e = GgufFile::from_mapping(Mapping::from_vec(vec![]), false).unwrap_err();
    assert_eq!((e.to_string().as_str(), e.path()), ("file is empty (0 bytes)", None));
}

/// ggml-org/llama.cpp#2629, ggml-org/llama.cpp#9498: `mmap` refuses length 0 with EINVAL.
#[test]
fn an_empty_file_is_called_empty() {
    let folder = Folder::with(&[("e.gguf", b"")]);
    let e = GgufFile::open(folder.path("e.gguf")).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Format(_)) && e.source().is_some());
    assert_eq!(folder.text(&e), "e.gguf: file is empty (0 bytes)");
}

#[test]
fn broken_files_are_named() {
    let folder = Folder::with(&[("page.gguf", b"<!DOCTYPE html><html>")]);
    let e = GgufFile::open(folder.path("page.gguf")).unwrap_err();
    assert!(folder.text(&e).starts_with("page.gguf: not a GGUF file"), "{e}");
    let e = GgufFile::open(folder.path("none.gguf")).unwrap_err();
    assert!(folder.text(&e).starts_with("none.gguf: cannot open: "), "{e}");
}

#[test]
fn lenient_opens_what_strict_refuses() {
    // A type that ggml never assigned, written over F32's id. Its id stands before the offset.
    let mut bytes = gguf(&[("a", &[1.0])], |_| {});
    let name = bytes.windows(9).position(|w| w == b"\x01\0\0\0\0\0\0\0a").unwrap();
    let ty = name + 9 + 4 + 8;
    assert_eq!(bytes[ty..ty + 4], [0; 4]);
    bytes[ty] = 137;
    let folder = Folder::with(&[("u.gguf", &bytes)]);
    assert!(GgufFile::open(folder.path("u.gguf")).is_err());
    let file = GgufFile::open_with(folder.path("u.gguf"), OpenOptions::default().lenient(true)).unwrap();
    let a = file.tensor("a").unwrap();
    assert_eq!((a.ty().0, a.decodable()), (137, false));
    assert!(file.data(&a).unwrap().starts_with(&le(&[1.0])));
}

/// A tensor of 40 GiB, all of it a hole: opening must leave it alone.
#[cfg(target_os = "linux")]
#[test]
fn opening_a_huge_file_reads_its_header_only() {
    use gguf_format::{Builder, GgmlType};
    use std::io::Write;
    const TENSORS: u64 = 40;
    const EACH: u64 = 1 << 28;

    let mut b = Builder::new();
    b.set("general.architecture", "llama");
    for i in 0..TENSORS {
        b.tensor(&format!("blk.{i}.ffn_up.weight"), &[1 << 14, 1 << 14], GgmlType::F32).unwrap();
    }
    let layout = b.layout().unwrap();
    let mut sparse = tempfile::NamedTempFile::new().unwrap();
    sparse.write_all(layout.header()).unwrap();
    sparse.as_file().set_len(layout.total_len()).unwrap();

    let file = GgufFile::open(sparse.path()).unwrap();
    assert!(file.file_len() > TENSORS * EACH * 4);
    assert_eq!(file.gguf().tensors().len() as u64, TENSORS);
    let kib = crate::residency::resident_kib(sparse.path());
    assert!(kib <= 256, "{kib} KiB resident after opening");

    let last = file.tensor("blk.39.ffn_up.weight").unwrap();
    let data = file.data(&last).unwrap();
    assert_eq!((data.len() as u64, data[data.len() - 1]), (EACH * 4, 0));
}

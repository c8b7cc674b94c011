//! Split sets that are not what they should be: each refused with the part at fault named, or read
//! as the whole file that it is.

use crate::make::{Folder, gguf, part};
use gguf_format::{Builder, ToValue};
use gguf_mmap::{ErrorKind, Model, SplitError};
use std::error::Error as _;

const A: (&str, &[f32]) = ("a.weight", &[1.0, 2.0]);
const B: (&str, &[f32]) = ("b.weight", &[3.0, 4.0]);

fn put(b: &mut Builder, count: impl ToValue) {
    b.set("split.count", count);
}

/// Opens `entry` among `files` and expects the error `text`.
fn refused(files: &[(&str, &[u8])], entry: &str, text: &str) -> SplitError {
    let folder = Folder::with(files);
    let e = Model::open(folder.path(entry)).unwrap_err();
    assert_eq!(folder.text(&e), text);
    match e.into_kind() {
        ErrorKind::Split(e) => e,
        other => panic!("{other:?}"),
    }
}

/// Opens `name` alone with these keys and expects one whole file.
fn whole(name: &str, keys: impl FnOnce(&mut Builder)) {
    let folder = Folder::with(&[(name, &gguf(&[A], keys))]);
    let model = Model::open(folder.path(name)).unwrap();
    assert_eq!((model.is_split(), model.tensors().count()), (false, 1), "{name}");
}

/// ggml-org/llama.cpp#6187, ggml-org/llama.cpp#7215.
#[test]
fn a_missing_part_is_named() {
    let e = refused(
        &[("m-00001-of-00003.gguf", &part(0, 3, 3, &[A])), ("m-00003-of-00003.gguf", &part(2, 3, 3, &[B]))],
        "m-00001-of-00003.gguf",
        "m-00002-of-00003.gguf: part 2 of 3 of a split model is missing: \
         No such file or directory (os error 2)",
    );
    assert!(e.source().is_some());
}

/// EricLBuehler/mistral.rs#2215: the first missing part ends it, however many are announced.
#[test]
fn the_first_missing_part_ends_it() {
    refused(
        &[("m-00001-of-65535.gguf", &part(0, 65535, 65535, &[A]))],
        "m-00001-of-65535.gguf",
        "m-00002-of-65535.gguf: part 2 of 65535 of a split model is missing: \
         No such file or directory (os error 2)",
    );
}

/// ngxson/wllama#135, pie-project/pie#383: never load a part as if it were the model.
#[test]
fn a_set_is_opened_from_its_first_part() {
    refused(
        &[("m-00001-of-00002.gguf", &part(0, 2, 2, &[A])), ("m-00002-of-00002.gguf", &part(1, 2, 2, &[B]))],
        "m-00002-of-00002.gguf",
        "m-00002-of-00002.gguf: part 2 of 2 of a split model, open the first part, m-00001-of-00002.gguf",
    );
}

/// ggml-org/llama.cpp#9613, oobabooga/text-generation-webui#6080: a renamed first part, or parts joined
/// with `cat`.
#[test]
fn a_part_under_another_name_is_refused() {
    let text = "renamed.gguf: split.count is 3, but the file's name is not of the form \
                NAME-00001-of-00003.gguf, so the other parts cannot be found";
    let mut joined = part(0, 3, 3, &[A]);
    refused(&[("renamed.gguf", &joined)], "renamed.gguf", text);
    joined.extend(part(1, 3, 3, &[B]));
    refused(&[("renamed.gguf", &joined)], "renamed.gguf", text);
}

/// FlashML-org/FreeToken#154: names count from 1, `split.no` from 0.
#[test]
fn exchanged_parts_are_refused() {
    refused(
        &[
            ("m-00001-of-00003.gguf", &part(0, 3, 2, &[A])),
            ("m-00002-of-00003.gguf", &part(2, 3, 2, &[])),
            ("m-00003-of-00003.gguf", &part(1, 3, 2, &[B])),
        ],
        "m-00001-of-00003.gguf",
        "m-00002-of-00003.gguf: split.no is 2, the file's name calls for 1",
    );
}

#[test]
fn parts_of_different_sets_are_refused() {
    let first = ("m-00001-of-00002.gguf", &*part(0, 2, 2, &[A]));
    let second = "m-00002-of-00002.gguf";
    refused(
        &[first, (second, &part(1, 3, 2, &[B]))],
        first.0,
        "m-00002-of-00002.gguf: split.count is 3, the file's name calls for 2",
    );
    refused(
        &[first, (second, &gguf(&[B], |b| put(b, 2_u16)))],
        first.0,
        "m-00002-of-00002.gguf: no key split.no in a part of a split model",
    );
    refused(
        &[first, (second, &gguf(&[B], |_| {}))],
        first.0,
        "m-00002-of-00002.gguf: no key split.count in a part of a split model",
    );
    refused(
        &[("m-00001-of-00003.gguf", first.1)],
        "m-00001-of-00003.gguf",
        "m-00001-of-00003.gguf: split.count is 2, the file's name calls for 3",
    );
}

#[test]
fn a_broken_part_is_named() {
    let folder = Folder::with(&[
        ("m-00001-of-00002.gguf", &part(0, 2, 2, &[A])),
        ("m-00002-of-00002.gguf", b"<html>"),
    ]);
    let e = Model::open(folder.path("m-00001-of-00002.gguf")).unwrap_err();
    assert_eq!(e.path(), Some(&*folder.path("m-00002-of-00002.gguf")));
    assert!(matches!(e.kind(), ErrorKind::Format(_)), "{e}");
}

/// ggml-org/llama.cpp#6836.
#[test]
fn a_tensor_in_two_parts_is_refused() {
    refused(
        &[("m-00001-of-00002.gguf", &part(0, 2, 2, &[A])), ("m-00002-of-00002.gguf", &part(1, 2, 2, &[A]))],
        "m-00001-of-00002.gguf",
        "m-00002-of-00002.gguf: duplicate tensor 'a.weight', already in m-00001-of-00002.gguf",
    );
}

#[test]
fn a_wrong_tensor_count_is_refused() {
    refused(
        &[("m-00001-of-00002.gguf", &part(0, 2, 3, &[A])), ("m-00002-of-00002.gguf", &part(1, 2, 3, &[B]))],
        "m-00001-of-00002.gguf",
        "m-00001-of-00002.gguf: split.tensors.count is 3, the parts hold 2 tensors",
    );
}

/// EricLBuehler/mistral.rs#2215.
#[test]
fn keys_that_are_no_counts_are_refused() {
    let name = "m-00001-of-00002.gguf";
    let with = |keys: fn(&mut Builder)| gguf(&[A], keys);
    for (bytes, found) in [
        (with(|b| put(b, "2")), "string"),
        (with(|b| put(b, 2.0_f32)), "f32"),
        (with(|b| put(b, true)), "bool"),
        (with(|b| put(b, -2_i32)), "-2"),
    ] {
        let text = format!("{name}: split.count is {found}, not a count");
        refused(&[(name, &bytes)], name, &text);
    }
}

/// Mesh-LLM/mesh-llm#311, vllm-project/vllm-metal#720: the name alone makes no split set. Counts of 0
/// (what `llama-gguf-split --merge` leaves) and 1 are whole files, and any integer width is read.
#[test]
fn whole_files_are_read_as_such() {
    whole("x-00001-of-00013.gguf", |_| {});
    whole("x-00002-of-00013.gguf", |_| {});
    whole("m-00001-of-00001.gguf", |b| put(b, 1_u16));
    whole("m-00001-of-00001.gguf", |b| put(b, 1_u32));
    whole("y.gguf", |b| put(b, 1_u16));
    whole("y.gguf", |b| put(b, 0_u16));
}

/// vllm-project/vllm-gguf-plugin#54: a tensor is found in whichever part it is.
#[test]
fn a_wide_count_and_tensors_of_later_parts_are_read() {
    let first = gguf(&[A], |b| {
        b.set("split.no", 0_u64);
        b.set("split.count", 2_i64);
        b.set("split.tensors.count", 2_u8);
    });
    let folder = Folder::with(&[
        ("m-00001-of-00002.gguf", &first),
        ("m-00002-of-00002.gguf", &part(1, 2, 2, &[("output.weight", &[1.0])])),
    ]);
    let model = Model::open(folder.path("m-00001-of-00002.gguf")).unwrap();
    assert_eq!(model.tensor("output.weight").unwrap().part, 1);
}

//! Importance reaches every row: each expert its own share, whatever the chunks and the threads.

use std::num::NonZeroUsize;

use export_gguf::imatrix::Imatrix;
use export_gguf::plan::{self, Request};
use export_gguf::source::{GgufSource, Source};
use export_gguf::{Cancel, emit, run};
use ggml_blocks::Format;
use gguf_format::{Builder, GgmlType, Gguf};

use crate::support::Place;

const NAME: &str = "blk.0.ffn_up_exps.weight";
/// Rows of 768: three super-blocks, which no power of two of chunks divides.
const DIMS: [u64; 3] = [768, 5, 2];

fn wave(n: usize, step: f32) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * step).sin() * (1.0 + (i % 7) as f32)).collect()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// A `.dat` matrix with one entry.
fn matrix(name: &str, values: &[f32]) -> Vec<u8> {
    let int = |n: usize| i32::try_from(n).unwrap().to_le_bytes();
    [&int(1)[..], &int(name.len()), name.as_bytes(), &int(2), &int(values.len()), &bytes(values)].concat()
}

fn place(values: &[f32], importance: &[f32]) -> Place {
    let place = Place::new();
    let mut b = Builder::new();
    b.set("general.architecture", "llama");
    b.tensor(NAME, &DIMS, GgmlType::F32).unwrap();
    place.write("in.gguf", &b.layout().unwrap().whole(&[&bytes(values)]).unwrap());
    place.write("im.dat", &matrix(NAME, importance));
    place
}

#[test]
fn each_expert_is_weighed_by_its_own_share() {
    let values = wave(768 * 10, 0.37);
    let importance: Vec<f32> = wave(768 * 2, 1.7).iter().map(|v| v.abs()).collect();
    let place = place(&values, &importance);
    let source = GgufSource::open(place.path("in.gguf"), false).unwrap();
    let imatrix = Imatrix::open(place.path("im.dat")).unwrap();
    // The file's values are divided by its two calls.
    let halves: Vec<f32> = importance.iter().map(|v| v / 2.0).collect();
    for ty in [GgmlType::Q4_K, GgmlType::Q4_0, GgmlType::IQ2_XS, GgmlType::IQ4_NL] {
        let format = Format::of(ty).unwrap();
        let mut expect = Vec::new();
        for (i, row) in values.chunks(768).enumerate() {
            let mut out = vec![0; format.row_bytes(768).unwrap()];
            let weights = &halves[i / 5 * 768..][..768];
            format.encode_rows(row, 768, Some(weights), &mut out).unwrap();
            expect.extend(out);
        }
        let request = Request { dtype: Some(ty), ..Request::default() };
        let plan = plan::plan(source.tensors(), request, Some(&imatrix)).unwrap();
        for (threads, chunk) in [(1, 256), (2, 512), (3, 768), (2, run::CHUNK_ELEMENTS)] {
            let out = place.path("out.gguf");
            let files = emit::lay_out(&plan, &source, &out, None).unwrap();
            let threads = NonZeroUsize::new(threads).unwrap();
            let options = run::Options { threads, chunk, force: true, ..run::Options::default() };
            run::run(&plan, &files, &source, Some(&imatrix), options, &(), &Cancel::default()).unwrap();
            let written = std::fs::read(&out).unwrap();
            let gguf = Gguf::parse(&written).unwrap();
            let data = gguf.data(&gguf.tensor(NAME).unwrap()).unwrap();
            assert!(data == expect, "{ty}, {threads} threads, chunks of {chunk}");
        }
    }
}

#[test]
fn what_does_not_fit_or_is_missing_is_named() {
    let values = wave(768 * 10, 0.37);
    let place = place(&values, &wave(768, 1.7));
    let run = |args: &[&str]| {
        let ran = place.run(&[&["--from-gguf", "in.gguf", "--out", "out.gguf"], args].concat());
        assert_eq!((ran.code, place.names().contains(&"out.gguf".to_owned())), (1, false), "{args:?}");
        ran.err
    };
    let error = run(&["--dtype", "q4_k", "--imatrix", "im.dat"]);
    assert!(error.contains(NAME) && error.contains("768 values for rows of 768 of 2 matrices"), "{error}");
    let error = run(&["--dtype", "iq2_xs"]);
    assert!(error.contains("IQ2_XS needs an importance matrix"), "{error}");
    place.write("other.dat", &matrix("other.weight", &[1.0]));
    let error = run(&["--dtype", "iq2_xs", "--imatrix", "other.dat"]);
    assert!(error.contains(NAME), "{error}");
    let error = run(&["--mix", "iq2_xs", "--imatrix", "other.dat", "--allow-requantize"]);
    assert!(error.contains(NAME) && error.contains("--imatrix-missing"), "{error}");
    place.write("broken.dat", &[1, 0, 0]);
    let error = run(&["--dtype", "q4_k", "--imatrix", "broken.dat"]);
    assert!(error.contains("broken.dat") && error.contains("truncated"), "{error}");
}

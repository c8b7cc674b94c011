//! Type id 42 has two layouts in the wild; sizes and offsets must tell which.

use gguf_format::{Bounds, Builder, Finding, GgmlType, Gguf, ParseOptions, WriteError};

use crate::raw::Raw;
use crate::roundtrip::reemit;

const ID: u32 = GgmlType::Q2_0.0;
const UPSTREAM: (u32, u32, bool) = (64, 18, true);
const FORK: (u32, u32, bool) = (128, 34, false);

/// Block length, block bytes, decodable, and what was found.
fn read(gguf: &Gguf<'_>) -> ((u32, u32, bool), Vec<Finding>) {
    let q = gguf.tensor("q").unwrap();
    ((q.block_len(), q.block_bytes(), q.decodable()), gguf.findings().to_vec())
}

#[test]
fn the_layout_that_fits_is_taken() {
    let ambiguous = || vec![Finding::AmbiguousQ2_0];
    let fork = || vec![Finding::ForkQ2_0];
    let tail = |bytes| vec![Finding::TrailingBytes { at: 192, bytes }];
    // 1024 elements are 288 bytes in ggml's layout and 272 in the fork's; both pad to 288.
    let q = |dims: &[u64], next| Raw::new().info("q", dims, ID, 0).info("f", &[8], 0, next);
    let alone = |dims: &[u64], len| Raw::new().info("q", dims, ID, 0).data(len);
    let cases = [
        ("the next tensor tells: ggml's", q(&[2048], 576).data(608), UPSTREAM, vec![]),
        ("the next tensor tells: the fork's", q(&[2048], 544).data(576), FORK, fork()),
        ("rows of 64 are ggml's alone", alone(&[64, 2], 64), UPSTREAM, vec![]),
        ("padding swallows the difference", q(&[1024], 288).data(320), UPSTREAM, ambiguous()),
        ("the length tells: ggml's", alone(&[2048], 576), UPSTREAM, vec![]),
        ("the length tells: the fork's", alone(&[2048], 544), FORK, fork()),
        ("the length without padding tells", alone(&[1024], 272), FORK, {
            [vec![Finding::ForkQ2_0], vec![Finding::MissingTailPadding { bytes: 16 }]].concat()
        }),
        (
            "no elements, no question",
            alone(&[0], 0),
            UPSTREAM,
            vec![Finding::MissingTailPadding { bytes: 7 }],
        ),
        ("trailing bytes blur the length", alone(&[512], 160 + 40), UPSTREAM, {
            [vec![Finding::AmbiguousQ2_0], tail(40)].concat()
        }),
    ];
    for (what, raw, layout, findings) in cases {
        let file = raw.bytes();
        let gguf = Gguf::parse(&file).unwrap_or_else(|e| panic!("{what}: {e}"));
        let (read_layout, read_findings) = read(&gguf);
        assert_eq!(read_layout, layout, "{what}");
        if !what.starts_with("trailing") {
            assert_eq!(read_findings, findings, "{what}");
        } else {
            assert_eq!(read_findings.len(), findings.len(), "{what}: {read_findings:?}");
        }
    }
}

/// A download cut short could happen to have a length that the smaller layout fits.
#[test]
fn a_cut_file_is_not_taken_for_the_fork() {
    let file = Raw::new().info("q", &[2048], ID, 0).data(576).bytes();
    for lenient in [false, true] {
        let options = ParseOptions { lenient, bounds: Bounds::Whole };
        for cut in (1..=31).chain(33..200) {
            let error = Gguf::parse_with(&file[..file.len() - cut], &options).unwrap_err();
            assert!(error.is_truncated(), "{cut}: {error}");
        }
    }
}

#[test]
fn lenient_mode_decides_by_overlap() {
    let lenient = ParseOptions { lenient: true, bounds: Bounds::Whole };
    // The gap before `f` is 64 bytes more than the fork's layout needs and 32 more than ggml's.
    let file = Raw::new().info("q", &[2048], ID, 0).info("f", &[8], 0, 608).data(640).bytes();
    let gguf = Gguf::parse_with(&file, &lenient).unwrap();
    assert_eq!(read(&gguf).0, UPSTREAM);
    assert_eq!(gguf.findings()[0], Finding::AmbiguousQ2_0);
    let file = Raw::new().info("f", &[8], 0, 544).info("q", &[2048], ID, 0).data(576).bytes();
    let gguf = Gguf::parse_with(&file, &lenient).unwrap();
    assert_eq!(read(&gguf).0, FORK);
    assert_eq!(gguf.findings()[0], Finding::ForkQ2_0);
}

#[test]
fn the_forks_layout_is_copied_only_where_it_reads_back() {
    let raw = Raw::new().info("q", &[2048], ID, 0).info("f", &[8], 0, 544).data(576);
    let file = raw.bytes();
    let gguf = Gguf::parse(&file).unwrap();
    assert_eq!(reemit(&gguf), file);

    let q = gguf.tensor("q").unwrap();
    // An alignment that swallows the difference would change what the file says.
    let mut builder = Builder::new();
    builder.align(4096).copy_tensor(&q).unwrap();
    let error = builder.layout().unwrap_err();
    assert!(matches!(error, WriteError::ForkQ2_0(_)), "{error}");
    // So would a tensor of ggml's layout beside it.
    let mut builder = Builder::new();
    builder.copy_tensor(&q).unwrap().tensor("r", &[64], GgmlType::Q2_0).unwrap();
    assert!(builder.layout().is_err());
}

//! Lenient mode: other placements, and tensors of unknown type.

use std::fmt::Write as _;

use gguf_format::{Bounds, ErrorKind, Gguf, ParseOptions};

use crate::raw::Raw;

const LENIENT: ParseOptions = ParseOptions { lenient: true, bounds: Bounds::Whole };

fn lenient(file: &[u8]) -> Gguf<'_> {
    assert!(Gguf::parse(file).is_err());
    Gguf::parse_with(file, &LENIENT).unwrap()
}

/// The first byte and the number of bytes of each tensor; data counts up from 1.
fn places(gguf: &Gguf<'_>) -> Vec<(u8, usize)> {
    gguf.tensors().map(|t| gguf.data(&t).unwrap()).map(|d| (d[0], d.len())).collect()
}

#[test]
fn every_finding_has_its_text() {
    let long = "x".repeat(64);
    let files = [
        ("gap", Raw::new().info("a", &[8], 0, 0).info("b", &[8], 0, 96).data(128)),
        ("gap before the first", Raw::new().info("a", &[8], 0, 32).data(64)),
        (
            "reordered",
            Raw::new().info("a", &[8], 0, 64).info("b", &[8], 0, 0).info("c", &[8], 0, 32).data(96),
        ),
        ("unpadded", Raw::new().info("a", &[5], 0, 0).info("b", &[5], 0, 20).data(64)),
        ("unknown in the middle", Raw::new().info("a", &[8], 99, 0).info("b", &[8], 0, 64).data(96)),
        ("removed at the end", Raw::new().info("a", &[8], 0, 0).info("b", &[32], 31, 32).data(75)),
        ("unnamed", Raw::new().info("", &[8], 0, 0).data(32)),
        ("all others", {
            let raw = Raw::new().align(4).u32("ä", 1).info(&long, &[3], 0, 0).info("b", &[128], 42, 12);
            raw.info("c", &[1], 0, 48).data(60)
        }),
        ("tail", Raw::new().info("a", &[64], 42, 0).info("b", &[1], 0, 32).data(36)),
    ];
    let mut text = String::new();
    for (what, raw) in files {
        writeln!(text, "{what}").unwrap();
        let file = raw.bytes();
        for finding in Gguf::parse_with(&file, &LENIENT).unwrap().findings() {
            writeln!(text, "    {finding}").unwrap();
        }
    }
    insta::assert_snapshot!("findings", text);
}

/// `ollama/ollama#5422`, `arcee-ai/mergekit#143`.
#[test]
fn data_in_another_order_is_found() {
    let file =
        Raw::new().info("b", &[8], 0, 32).info("a", &[2], 0, 0).info("c", &[8], 0, 64).data(96).bytes();
    assert_eq!(places(&lenient(&file)), [(33, 32), (1, 8), (65, 32)]);
}

/// `ollama/ollama#8456`: no alignment is assumed of the bytes.
#[test]
fn unpadded_data_is_found() {
    let file =
        Raw::new().info("a", &[3], 24, 0).info("b", &[2], 0, 3).info("c", &[1], 0, 11).data(15).bytes();
    assert_eq!(places(&lenient(&file)), [(1, 3), (4, 8), (12, 4)]);
}

/// The extent of an unknown type is what lies up to the next tensor, or to the end.
#[test]
fn unknown_types_have_an_extent_and_no_geometry() {
    let raw = Raw::new().info("a", &[7, 3], 1000, 0).info("b", &[8], 0, 64).info("c", &[1], 5, 96);
    let file = raw.info("z", &[0], 1000, 500).data(133).bytes();
    let gguf = lenient(&file);
    assert_eq!(places_of(&gguf, ["a", "b", "c", "z"]), [64, 32, 37, 0]);
    let a = gguf.tensor("a").unwrap();
    assert_eq!((a.ty().0, a.block_len(), a.block_bytes(), a.decodable()), (1000, 0, 0, false));
    assert_eq!((a.elements(), a.rows(), a.ty().to_string()), (21, 3, "type 1000".to_string()));

    // With the header alone and no length, the last one's extent is unknown.
    let blind = ParseOptions { lenient: true, bounds: Bounds::HeaderOnly { file_len: None } };
    let gguf = Gguf::parse_with(gguf.header_bytes(), &blind).unwrap();
    assert_eq!(gguf.tensor("c").unwrap().byte_len(), 0);
    let text: Vec<String> = gguf.findings().iter().map(ToString::to_string).collect();
    assert!(
        text.contains(&"tensor 'c' has the removed type Q4_3 (id 5), not decodable, size unknown".into())
    );
    assert!(text.contains(&"tensor 'a' has the unknown type 1000, not decodable".into()), "{text:?}");
}

fn places_of<const N: usize>(gguf: &Gguf<'_>, names: [&str; N]) -> [u64; N] {
    names.map(|n| gguf.tensor(n).unwrap().byte_len())
}

#[test]
fn bounds_are_never_lenient() {
    let refused = |raw: Raw| {
        let file = raw.bytes();
        Gguf::parse_with(&file, &LENIENT).unwrap_err().kind().clone()
    };
    let beyond = refused(Raw::new().info("a", &[8], 0, 64).data(95));
    assert!(matches!(beyond, ErrorKind::DataTruncated { len: 32, missing: 1, .. }), "{beyond:?}");
    assert_eq!(beyond.tensor_missing(), Some(1));
    // A tensor of unknown type has a byte at least.
    let unknown = refused(Raw::new().info("a", &[8], 99, 64).data(64));
    assert!(matches!(unknown, ErrorKind::DataTruncated { len: 1, .. }), "{unknown:?}");
    let wrap = refused(Raw::new().info("a", &[8], 99, u64::MAX).data(64));
    assert!(matches!(wrap, ErrorKind::Place { .. }), "{wrap:?}");
    let overlap = refused(Raw::new().info("a", &[8], 99, 0).info("b", &[8], 0, 0).data(64));
    assert!(matches!(overlap, ErrorKind::Overlap { .. }), "{overlap:?}");
    let within = refused(Raw::new().info("a", &[16], 0, 0).info("b", &[1], 0, 8).data(64));
    assert!(matches!(within, ErrorKind::Overlap { offset: 8, end: 64, .. }), "{within:?}");
}

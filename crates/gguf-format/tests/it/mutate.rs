//! Every prefix, every single-byte change, and random bytes: an error or a right answer.

use gguf_format::{Bounds, ErrorKind, Gguf, ParseOptions};
use proptest::prelude::*;

use crate::fuzz_bodies::{parse, roundtrip};
use crate::raw::Raw;
use crate::roundtrip::all_types;

/// Files that between them have every kind of field.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let split = Raw::small().u32("split.no", 1).array("a", 4, 2, &[0; 8]).align(64);
    let fork = Raw::new().info("q", &[128], 42, 0).info("r", &[8], 0, 64).data(96);
    let loose = Raw::new().info("b", &[8], 137, 96).info("a", &[5], 0, 3).data(160);
    let v2 = Raw { version: 2, ..Raw::small() };
    // Found by fuzzing: a row too long for 64 bits of bytes, of which there is none.
    let no_rows = Raw::new().info("z", &[1 << 62, 0], 28, 0).data(32);
    [Raw::new(), Raw::small(), all_types(), split, fork, loose, v2, no_rows].iter().map(Raw::bytes).collect()
}

#[test]
fn seeds_pass_the_fuzz_bodies() {
    for seed in seeds() {
        parse(&seed);
        roundtrip(&seed);
    }
}

#[test]
fn every_prefix_is_refused_unless_only_padding_is_missing() {
    for raw in [Raw::small(), all_types()] {
        let file = raw.bytes();
        let gguf = Gguf::parse(&file).unwrap();
        let end = gguf.tensors().map(|t| t.file_offset() + t.byte_len()).max().unwrap();
        for len in 0..file.len() {
            let prefix = &file[..len];
            parse(prefix);
            match Gguf::parse(prefix) {
                Ok(_) => assert!(len as u64 >= end, "{len} of {} bytes pass", file.len()),
                Err(e) => {
                    let count = matches!(e.kind(), ErrorKind::Count { .. });
                    assert!((len as u64) < end && (e.is_truncated() || count), "{len}: {e}");
                }
            }
        }
    }
}

#[test]
fn every_byte_of_a_header_may_be_any_other() {
    for seed in seeds() {
        // The large file has many fields of a kind: the telling values do.
        let all: Vec<u8> = (0..=255).collect();
        for at in 0..header_len(&seed) {
            let old = seed[at];
            let telling =
                [0, 1, 0x7f, 0x80, 0xfe, 0xff, old.wrapping_add(1), old.wrapping_sub(1), old ^ 0x20];
            let mut changed = seed.clone();
            for new in if seed.len() < 400 { &all[..] } else { &telling } {
                changed[at] = *new;
                parse(&changed);
                roundtrip(&changed);
            }
        }
    }
}

fn header_len(file: &[u8]) -> usize {
    let lenient = ParseOptions { lenient: true, bounds: Bounds::Whole };
    Gguf::parse_with(file, &lenient).unwrap().header_bytes().len()
}

/// Two changes at once reach what the first alone would hide.
#[test]
fn pairs_of_changes_are_survived() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for seed in seeds() {
        for _ in 0..3000 {
            let mut changed = seed.clone();
            for _ in 0..2 + random.below(3) {
                let at = random.below(changed.len());
                changed[at] = [0, 1, 0x7f, 0xff, random.below(256) as u8][random.below(5)];
            }
            if random.below(4) == 0 {
                changed.truncate(random.below(changed.len()));
            }
            parse(&changed);
            roundtrip(&changed);
        }
    }
}

/// A fixed sequence, so that a failure repeats.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn random_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        parse(&bytes);
        // Behind a right beginning, too.
        let mut file = Raw::new().claims(bytes.len() as u64 % 5, bytes.len() as u64 % 3).header();
        file.extend(&bytes);
        parse(&file);
        roundtrip(&file);
    }
}

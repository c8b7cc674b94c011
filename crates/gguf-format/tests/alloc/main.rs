//! How much memory a parse may take. A binary of its own, because the allocator that counts is the
//! whole process's and other tests would count too.

use std::alloc::System;

use gguf_format::{Builder, GgmlType, Gguf};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes allocated by one parse, growth included.
fn allocated(file: &[u8]) -> usize {
    let region = Region::new(ALLOCATOR);
    let parsed = Gguf::parse(file);
    let stats = region.change();
    drop(parsed);
    stats.bytes_allocated
}

fn claims(tensors: u64, keys: u64) -> Vec<u8> {
    [&b"GGUF\x03\0\0\0"[..], &tensors.to_le_bytes(), &keys.to_le_bytes()].concat()
}

#[test]
fn memory_follows_the_bytes_and_not_the_claims() {
    // A refusal costs no more than its text, whatever was claimed.
    for (tensors, keys) in [(u64::MAX, 0), (1 << 40, 1 << 40), (0, u64::MAX), (1 << 20, 1)] {
        let file = [claims(tensors, keys), vec![1; 64]].concat();
        assert!(allocated(&file) < 1000, "{tensors} tensors, {keys} keys");
    }
    let mut array = claims(0, 1);
    array.extend([&1_u64.to_le_bytes()[..], b"a", &9_u32.to_le_bytes(), &8_u32.to_le_bytes()].concat());
    array.extend((1_u64 << 30).to_le_bytes());
    assert!(allocated(&array) < 1000);

    // Strings in arrays cost nothing.
    let mut builder = Builder::new();
    builder.set("tokens", vec!["token"; 100_000]);
    let vocabulary = builder.layout().unwrap().whole(&[]).unwrap();
    assert!(allocated(&vocabulary) < 1000);

    // The worst file has entries as small as they get. Doubling vectors and sorting are in the sum.
    let name = |i: u32| [1, 26, 676, 17_576].map(|n| b'a' + (i / n % 26) as u8);
    let mut small = claims(20_000, 50_000);
    for i in 0..50_000 {
        small.extend([&4_u64.to_le_bytes()[..], &name(i), &[0; 4], &[1]].concat());
    }
    for i in 0..20_000 {
        small.extend([&4_u64.to_le_bytes()[..], &name(i), &1_u32.to_le_bytes(), &[0; 8]].concat());
        small.extend([&GgmlType::F32.0.to_le_bytes()[..], &[0; 8]].concat());
    }
    assert_eq!(Gguf::parse(&small).unwrap().tensors().len(), 20_000);
    let (bytes, file) = (allocated(&small), small.len());
    assert!(bytes < 12 * file, "{bytes} bytes allocated for a file of {file}");
}

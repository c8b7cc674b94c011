use gguf_format::{Builder, GgmlType};
use gguf_mmap::Mapping;

use super::{Imatrix, Problem};

fn open(bytes: Vec<u8>) -> Result<Imatrix, Problem> {
    Imatrix::from_mapping(Mapping::from_vec(bytes))
}

/// One `.dat` entry.
fn entry(name: &[u8], calls: i32, values: &[f32]) -> Vec<u8> {
    let mut bytes = (name.len() as i32).to_le_bytes().to_vec();
    bytes.extend_from_slice(name);
    bytes.extend_from_slice(&calls.to_le_bytes());
    bytes.extend_from_slice(&(values.len() as i32).to_le_bytes());
    bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    bytes
}

fn dat(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = (entries.len() as i32).to_le_bytes().to_vec();
    bytes.extend(entries.concat());
    bytes
}

fn gguf(tensors: &[(&str, &[f32])], keys: bool) -> Vec<u8> {
    let mut b = Builder::new();
    if keys {
        b.set("imatrix.datasets", ["wiki.txt", "code.txt"].as_slice());
        b.set("imatrix.chunk_count", 7u32);
        b.set("imatrix.chunk_size", 512u32);
    }
    let mut data = Vec::new();
    for (name, values) in tensors {
        b.tensor(name, &[values.len() as u64], GgmlType::F32).unwrap();
        data.push(values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>());
    }
    let parts: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    b.layout().unwrap().whole(&parts).unwrap()
}

#[test]
fn the_older_form_divides_by_the_calls() {
    let mut bytes = dat(&[entry(b"a.weight", 4, &[1.0, 3.0]), entry(b"b.weight", 0, &[5.0])]);
    bytes.extend_from_slice(&9i32.to_le_bytes());
    bytes.extend_from_slice(&8i32.to_le_bytes());
    bytes.extend_from_slice(b"wiki.txt");
    let m = open(bytes).unwrap();
    assert_eq!((m.len(), m.chunks(), m.datasets()), (2, 9, ["wiki.txt".to_owned()].as_slice()));
    assert_eq!(m.importance("a.weight", 2, 1).unwrap(), Some(vec![0.25, 0.75]));
    assert_eq!(m.importance("b.weight", 1, 1).unwrap(), Some(vec![5.0]));
    assert_eq!(m.importance("c.weight", 1, 1).unwrap(), None);
}

#[test]
fn the_gguf_form_divides_by_each_experts_count() {
    let m =
        open(gguf(&[("x.weight.in_sum2", &[2.0, 4.0, 6.0, 8.0]), ("x.weight.counts", &[2.0, 0.0])], true))
            .unwrap();
    assert_eq!((m.chunks(), m.datasets().len()), (7, 2));
    // An expert that no token reached counts as uniform.
    assert_eq!(m.importance("x.weight", 2, 2).unwrap(), Some(vec![1.0, 2.0, 1.0, 1.0]));
    assert_eq!(
        m.importance("x.weight", 4, 2).unwrap_err().to_string(),
        "tensor `x.weight`: 4 values for rows of 4 and 2 experts"
    );
}

/// Each kind of damage, and what is said about it.
#[test]
fn damage_is_named() {
    let nan = [1.0, f32::NAN];
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (
            vec![],
            "number of entries needs 4 bytes, 0 left at byte 0x0: truncated, or not an importance matrix",
        ),
        (0i32.to_le_bytes().to_vec(), "number of entries is 0 at byte 0x0"),
        ((-1i32).to_le_bytes().to_vec(), "number of entries is -1 at byte 0x0"),
        (dat(&[entry(b"a", 1, &nan)]), "tensor `a`: value 1 is not finite"),
        (dat(&[entry(b"a", 1, &[1.0]), entry(b"a", 1, &[1.0])]), "duplicate entry for tensor `a`"),
        (dat(&[entry(b"\xff", 1, &[1.0])]), "name at byte 0x8 is not UTF-8"),
        (dat(&[entry(b"a", 1, &[])]), "number of values is 0 at byte 0xd"),
        (
            gguf(&[("a.in_sum2", &[1.0])], false),
            "key `imatrix.datasets` is missing, so this is not an importance matrix",
        ),
        (gguf(&[], true), "no entries"),
        (gguf(&[("a.in_sum2", &[1.0])], true), "tensor `a`: sums without counts"),
        (gguf(&[("a.counts", &[1.0])], true), "tensor `a`: counts without sums"),
        (
            gguf(&[("a.in_sum2", &[1.0, 2.0, 3.0]), ("a.counts", &[1.0, 1.0])], true),
            "tensor `a`: the number of sums is not a multiple of the number of counts",
        ),
        (
            gguf(&[("a.in_sum2", &[1.0]), ("a.counts", &[f32::INFINITY])], true),
            "tensor `a`: value 0 is not finite",
        ),
    ];
    for (bytes, message) in cases {
        assert_eq!(open(bytes).unwrap_err().to_string(), message);
    }
}

/// A count from the file never becomes an allocation, and no cut of a file panics.
#[test]
fn every_prefix_and_huge_counts_are_refused() {
    let whole = dat(&[entry(b"a.weight", 4, &[1.0, 3.0]), entry(b"b", 2, &[5.0])]);
    for end in 0..whole.len() {
        assert!(open(whole[..end].to_vec()).is_err(), "prefix of {end}");
    }
    for at in (0..whole.len() - 4).step_by(1) {
        for value in [i32::MAX, i32::MIN, -1] {
            let mut bytes = whole.clone();
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            let _ = open(bytes);
        }
    }
}

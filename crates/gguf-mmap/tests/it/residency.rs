//! What stays resident: the kernel's own account of a mapping, from `/proc/self/smaps`.

use gguf_mmap::Mapping;
use std::fs;
use std::path::Path;

/// Resident KiB of every mapping of `path` in this process.
pub(crate) fn resident_kib(path: &Path) -> u64 {
    let path = path.canonicalize().unwrap();
    let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
    let mut ours = false;
    let mut found = false;
    let mut sum = 0;
    for line in smaps.lines() {
        if let Some(kib) = line.strip_prefix("Rss:") {
            if ours {
                sum += kib.trim().trim_end_matches(" kB").parse::<u64>().unwrap();
            }
        } else if line.split(' ').next().is_some_and(|word| word.contains('-')) {
            ours = line.ends_with(path.to_str().unwrap());
            found |= ours;
        }
    }
    assert!(found, "{} is not mapped", path.display());
    sum
}

fn touch(bytes: &[u8]) -> u64 {
    bytes.iter().step_by(512).map(|&b| u64::from(b)).sum()
}

#[test]
fn release_takes_pages_out_of_the_resident_set() {
    const LEN: usize = 4 << 20;
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), vec![1; LEN]).unwrap();
    let m = Mapping::open(file.path()).unwrap();
    assert_eq!(touch(m.bytes()), LEN as u64 / 512);
    assert_eq!(resident_kib(file.path()), 4096);

    m.release(0..LEN as u64 / 2);
    let half = resident_kib(file.path());
    assert!((2048..2048 + 128).contains(&half), "{half} KiB");

    // Bytes in the middle of a page stay, and so do those of their neighbours.
    m.range(LEN as u64 / 2 + 1..LEN as u64 / 2 + 100).unwrap().release();
    assert_eq!(resident_kib(file.path()), half);

    assert_eq!(touch(m.bytes()), LEN as u64 / 512);
    m.release(..);
    assert_eq!(resident_kib(file.path()), 0);
    assert_eq!(touch(m.bytes()), LEN as u64 / 512);
}

#[test]
fn the_last_handle_unmaps() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), vec![1; 1 << 20]).unwrap();
    let mapped = |path: &Path| {
        let path = path.canonicalize().unwrap();
        fs::read_to_string("/proc/self/maps").unwrap().contains(path.to_str().unwrap())
    };
    let m = Mapping::open(file.path()).unwrap();
    let handle = m.range(10..20).unwrap();
    let part = handle.slice(1..2).unwrap();
    drop((m, handle));
    assert!(mapped(file.path()));
    drop(part);
    assert!(!mapped(file.path()));
}

//! The format-blind layer: opening, handles, lifetimes.

use gguf_mmap::{Advice, Bytes, ErrorKind, MapOptions, Mapping};
use std::error::Error as _;
use std::fs;
use std::path::Path;

const HEAP: fn() -> MapOptions = || MapOptions::default().heap(true);

fn both(path: &Path) -> [Mapping; 2] {
    [Mapping::open(path).unwrap(), Mapping::open_with(path, HEAP()).unwrap()]
}

#[test]
fn mapped_and_heap_bytes_are_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    fs::write(&path, b"hello").unwrap();
    let [mapped, heap] = both(&path);
    assert!(mapped.is_mapped() && !heap.is_mapped());
    for m in [mapped, heap] {
        assert_eq!(m.bytes(), b"hello");
        assert_eq!((m.len(), m.is_empty()), (5, false));
        assert_eq!(m.path(), Some(&*path));
    }
    assert_eq!(Mapping::from_vec(vec![1, 2]).bytes(), [1, 2]);
    let from_reader = Mapping::from_reader(&b"abc"[..]).unwrap();
    assert_eq!((from_reader.bytes(), from_reader.path()), (&b"abc"[..], None));
}

#[test]
fn an_empty_file_has_no_bytes() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for m in both(file.path()) {
        assert!(m.is_empty());
        assert!(m.range(0..0).is_some_and(|b| b.is_empty()));
        assert!(m.range(0..1).is_none());
        m.release(..);
        m.prefetch(..);
    }
}

#[test]
fn hints_never_fail_and_never_change_a_byte() {
    let content: Vec<u8> = (0..300_000_u32).map(|i| i as u8).collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), &content).unwrap();
    for m in both(file.path()) {
        let bounds = [0, 1, 4095, 4096, 65_537, 299_999, 300_000, 300_001, u64::MAX];
        for start in bounds {
            for end in bounds {
                m.prefetch(start..end);
                m.release(start..end);
                for a in [Advice::Sequential, Advice::Random, Advice::HugePage, Advice::Normal] {
                    m.advise(start..end, a);
                }
                assert!(m.bytes() == content, "{start}..{end}");
            }
        }
    }
}

#[test]
fn ranges_outside_the_bytes_are_none() {
    let m = Mapping::from_vec((0..10).collect());
    let b = m.range(2..8).unwrap();
    assert_eq!((&*b, b.file_offset()), (&[2, 3, 4, 5, 6, 7][..], 2));
    assert_eq!(b.slice(1..3).as_deref(), Some(&[3, 4][..]));
    assert_eq!(b.slice(6..6).as_deref(), Some(&[][..]));
    assert!(b.slice(0..7).is_none() && b.slice(u64::MAX..u64::MAX).is_none());
    assert!(m.range(8..11).is_none() && m.range(11..11).is_none() && m.range(0..u64::MAX).is_none());
    #[expect(clippy::reversed_empty_ranges, reason = "callers can pass one")]
    let reversed = 8..2;
    assert!(m.range(reversed.clone()).is_none() && b.slice(reversed).is_none());
}

#[test]
fn handles_outlive_the_mapping_in_any_drop_order_and_on_other_threads() {
    fn assert_shareable<T: Send + Sync + 'static>() {}
    assert_shareable::<Mapping>();
    assert_shareable::<Bytes>();

    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), vec![7; 200_000]).unwrap();
    for m in both(file.path()) {
        let first = m.range(0..100_000).unwrap();
        let second = m.range(100_000..200_000).unwrap();
        drop(m);
        let clone = first.clone();
        drop(first);
        let threads = [clone, second].map(|bytes| {
            std::thread::spawn(move || {
                bytes.prefetch();
                let before: u64 = bytes.iter().map(|&b| u64::from(b)).sum();
                bytes.release();
                let after: u64 = bytes.iter().map(|&b| u64::from(b)).sum();
                (before, after)
            })
        });
        for t in threads {
            assert_eq!(t.join().unwrap(), (700_000, 700_000));
        }
    }
}

#[test]
fn leaked_bytes_live_on() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), b"forever").unwrap();
    let [mapped, heap] = both(file.path());
    let handle = mapped.range(0..3).unwrap();
    let leaked: [&'static [u8]; 2] = [mapped.leak(), heap.leak()];
    drop(handle);
    assert_eq!(leaked, [b"forever", b"forever"]);
}

#[test]
fn errors_name_the_path_and_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing.gguf");
    let e = Mapping::open(&missing).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Open(_)) && e.source().is_some());
    assert_eq!(e.path(), Some(&*missing));
    assert!(e.to_string().starts_with(&format!("{}: cannot open: ", missing.display())), "{e}");

    let e = Mapping::open(dir.path()).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::NotAFile) && e.source().is_none());
    assert!(e.to_string().ends_with(": neither a regular file nor a pipe"), "{e}");

    struct Broken;
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("cable cut"))
        }
    }
    assert_eq!(Mapping::from_reader(Broken).unwrap_err().to_string(), "cannot read: cable cut");
}

/// A device without end must be refused, not read.
#[cfg(unix)]
#[test]
fn devices_are_refused() {
    let e = Mapping::open("/dev/zero").unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::NotAFile), "{e}");
}

/// A pipe has a path and bytes, but nothing to map.
#[cfg(target_os = "linux")]
#[test]
fn a_pipe_is_read_into_the_heap() {
    use std::os::fd::AsRawFd;
    let (reader, mut writer) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut writer, b"through a pipe").unwrap();
    drop(writer);
    let m = Mapping::open(format!("/proc/self/fd/{}", reader.as_raw_fd())).unwrap();
    assert_eq!((m.bytes(), m.is_mapped()), (&b"through a pipe"[..], false));
}

//! The directory without the file, and over other bytes than it was made from.

use gguf_format::{Bounds, Builder, Error, Gguf, Index, Layout, ParseOptions, Stream, WriteError};

use crate::raw::Raw;
use crate::roundtrip::all_types;

/// Everything that the public functions give, so that a panic in any would show.
fn walk(gguf: &Gguf<'_>) -> usize {
    let mut seen = 0;
    for entry in gguf.metadata() {
        seen += entry.key().len() + entry.raw().len();
        let value = entry.value();
        if let Some(array) = value.as_array() {
            seen += array.iter().count() + array.len();
            seen += array.strings().map_or(0, |s| s.map(|s| s.as_bytes().len()).sum());
            seen += array.to_vec::<u16>().map_or(0, |v| v.len());
            seen += usize::from(array.get(1).is_some());
        }
        seen += usize::from(gguf.get(entry.key()).is_some());
        seen += format!("{value:?}").len();
    }
    for tensor in gguf.tensors() {
        seen += tensor.name().len() + gguf.data(&tensor).map_or(0, <[u8]>::len);
        seen += usize::from(gguf.tensor(tensor.name()).is_some());
    }
    seen
}

#[test]
fn an_index_and_the_header_bytes_are_the_directory() {
    let file = all_types().bytes();
    let gguf = Gguf::parse(&file).unwrap();
    let header = gguf.header_bytes().to_vec();
    let infos: Vec<String> = gguf.tensors().map(|t| format!("{t:?} {}", t.file_offset())).collect();
    let index: Index = gguf.clone().into_index();
    assert_eq!(index.header_len(), header.len() as u64);

    let view = index.view(&header).unwrap();
    assert!(view.tensors().map(|t| format!("{t:?} {}", t.file_offset())).eq(infos));
    assert!(view.metadata().map(|e| e.raw()).eq(gguf.metadata().map(|e| e.raw())));
    assert_eq!(view.get("u64"), gguf.get("u64"));
    let q = view.tensor("q").unwrap();
    assert_eq!(view.data(&q), None);
    assert_eq!(gguf.data(&q), Some(&file[q.file_offset() as usize..][..288]));

    // A key can be copied from it verbatim after the file is gone.
    let mut builder = Builder::new();
    builder.copy_all(&view, |key| key != "latin");
    let copied = builder.layout().unwrap();
    let copied = Gguf::parse(copied.header()).unwrap();
    assert!(
        copied
            .metadata()
            .map(|e| e.raw())
            .eq(gguf.metadata().filter(|e| e.key() != "latin").map(|e| e.raw()))
    );
    drop(file);
    assert_eq!(index.view(&header[..header.len() - 1]).map(|_| ()), None);
    assert_eq!(index.view(b"").map(|_| ()), None);
    let mut other = header.clone();
    other[8] ^= 1;
    assert!(index.view(&other).is_none(), "another tensor count");
}

#[test]
fn other_bytes_never_panic() {
    for raw in [Raw::small().array("n", 4, 2, &[0; 8]), all_types()] {
        let file = raw.bytes();
        let index = Gguf::parse(&file).unwrap().into_index();
        let mut seen = 0;
        for at in 24..file.len() {
            for new in [0, 1, 8, 9, 0x7f, 0xff] {
                let mut other = file.clone();
                other[at] = new;
                let view = index.view(&other).unwrap();
                seen += walk(&view);
                // What is copied from it is an entry, or is refused: never half of one.
                if let Ok(layout) = Builder::from_gguf(&view).layout() {
                    Gguf::parse(layout.header()).unwrap();
                }
            }
        }
        assert!(seen > 0);
        let zeros = [&file[..24], &vec![0; file.len() - 24][..]].concat();
        assert!(index.view(&zeros).is_some_and(|v| walk(&v) > 0));
    }
}

#[test]
fn bytes_that_changed_since_are_not_copied() {
    let mut file = Raw::small().bytes();
    let index = Gguf::parse(&file).unwrap().into_index();
    // The value's length, so that the string no longer ends where the entry does.
    file[24 + 8 + 20 + 4] = 200;
    let view = index.view(&file).unwrap();
    let error = Builder::from_gguf(&view).layout().unwrap_err();
    assert!(matches!(error, WriteError::Copied(_)), "{error}");
}

#[test]
fn the_header_alone_can_be_parsed() {
    let raw = Raw::small().info("b", &[1 << 40], 0, 32);
    let header = raw.header();
    let parse = |bytes, file_len| {
        let bounds = Bounds::HeaderOnly { file_len };
        Gguf::parse_with(bytes, &ParseOptions { bounds, ..ParseOptions::default() })
    };
    let start = (header.len() as u64).next_multiple_of(32);
    let full = start + 32 + (1 << 42);
    assert_eq!(parse(&header, Some(full)).unwrap().findings(), []);
    assert_eq!(parse(&header, None).unwrap().findings(), []);
    let error = parse(&header, Some(full - 1)).unwrap_err();
    assert!(error.is_truncated(), "{error}");
    assert_eq!(error.at(), full - 1);
    // Where the header itself is cut, more bytes are needed: the caller can tell.
    for len in 0..header.len() {
        assert!(parse(&header[..len], Some(full)).unwrap_err().is_truncated(), "{len}");
        assert!(parse(&header[..len], None).unwrap_err().is_truncated(), "{len}");
    }
}

#[test]
fn everything_can_cross_threads() {
    fn check<T: Send + Sync>() {}
    check::<Gguf<'static>>();
    check::<Index>();
    check::<gguf_format::KeyValue<'static>>();
    check::<gguf_format::Value<'static>>();
    check::<gguf_format::Array<'static>>();
    check::<gguf_format::TensorInfo<'static>>();
    check::<gguf_format::Finding>();
    check::<Error>();
    check::<WriteError>();
    check::<Builder>();
    check::<Layout>();
    check::<Stream<'static, Vec<u8>>>();
}

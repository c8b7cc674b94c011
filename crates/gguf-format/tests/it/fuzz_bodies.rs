//! What must hold for any bytes: the bodies of the fuzz targets, run on seeds by the tests.
//!
//! Each panics if the parser gives a wrong answer. This file is also a module of the fuzz crate, so
//! it uses nothing but gguf-format.

use gguf_format::{Bounds, Builder, Finding, GgmlType, Gguf, ParseOptions, TensorInfo, WriteError};

/// Parses bytes in every mode, reads all there is, and checks what the parser promises.
pub(crate) fn parse(bytes: &[u8]) {
    let strict = Gguf::parse(bytes);
    for lenient in [false, true] {
        let file_len = Some(bytes.len() as u64);
        let whole = Gguf::parse_with(bytes, &ParseOptions { lenient, bounds: Bounds::Whole });
        let known = ParseOptions { lenient, bounds: Bounds::HeaderOnly { file_len } };
        match &whole {
            Ok(gguf) => {
                check(gguf, bytes);
                // The same answer from the header alone.
                let header = Gguf::parse_with(gguf.header_bytes(), &known).expect("the header is enough");
                assert_eq!(header.index(), gguf.index());
                let unknown = ParseOptions { lenient, bounds: Bounds::HeaderOnly { file_len: None } };
                let blind = Gguf::parse_with(gguf.header_bytes(), &unknown).expect("the header is enough");
                assert_eq!(blind.tensors().len(), gguf.tensors().len());
            }
            Err(e) => {
                let text = e.to_string();
                assert!(!text.is_empty() && text.len() < 700 && !text.contains(char::is_control), "{text:?}");
                assert!(e.at() <= bytes.len() as u64, "{text}");
                let strict = strict.as_ref().err();
                assert!(!lenient || strict.is_some(), "lenient refuses what strict reads: {text}");
            }
        }
    }
    if let Ok(strict) = &strict {
        assert!(!strict.findings().iter().any(Finding::is_lenient_only));
        let lenient = ParseOptions { lenient: true, bounds: Bounds::Whole };
        let lenient = Gguf::parse_with(bytes, &lenient).expect("strict reads it");
        assert_eq!(strict.index(), lenient.index(), "lenient reads a strict file otherwise");
    }
}

fn check(gguf: &Gguf<'_>, bytes: &[u8]) {
    let mut at = 24;
    for entry in gguf.metadata() {
        assert_eq!(entry.raw(), &bytes[at..at + entry.raw().len()], "entries follow each other");
        at += entry.raw().len();
        let value = entry.value();
        assert_eq!(value.ty(), entry.value_type());
        assert_eq!(gguf.key_value(entry.key()).map(|e| e.raw().as_ptr()), Some(entry.raw().as_ptr()));
        if let Some(array) = value.as_array() {
            assert_eq!(array.iter().count(), array.len());
            assert_eq!(array.iter().len(), array.len());
            assert!(array.iter().all(|v| v.ty() == array.element_type()));
            if let Some(last) = array.len().checked_sub(1) {
                assert_eq!(format!("{:?}", array.get(last)), format!("{:?}", array.iter().last()));
            }
        }
        let _ = (value.as_i64(), value.as_u64(), value.as_f64(), value.as_bool(), value.as_str());
    }
    let mut taken: Vec<(u64, u64)> = Vec::new();
    for tensor in gguf.tensors() {
        let data = gguf.data(&tensor).expect("a tensor within the file");
        assert_eq!(data.len() as u64, tensor.byte_len());
        assert_eq!(tensor.elements(), tensor.dims().iter().product::<u64>());
        assert_eq!(gguf.tensor(tensor.name()), Some(tensor));
        if tensor.byte_len() != 0 {
            taken.push((tensor.file_offset(), tensor.file_offset() + tensor.byte_len()));
        }
        // Where no row has to exist, a row may be too long for any number of bytes.
        if tensor.decodable() && tensor.rows() != 0 {
            assert_eq!(
                tensor.ty().row_bytes(tensor.row_len()).map(|n| n * tensor.rows()),
                Some(tensor.byte_len())
            );
        }
    }
    taken.sort_unstable();
    assert!(taken.windows(2).all(|w| w[0].1 <= w[1].0), "two tensors share bytes");
    assert!(taken.first().is_none_or(|t| t.0 >= gguf.data_offset()));
    for finding in gguf.findings() {
        assert!(!finding.to_string().contains(char::is_control));
    }
}

/// Parses, writes what was read, parses that: the content is the same, and a second writing gives
/// the same bytes.
pub(crate) fn roundtrip(bytes: &[u8]) {
    let options = ParseOptions { lenient: true, bounds: Bounds::Whole };
    let Ok(first) = Gguf::parse_with(bytes, &options) else {
        return;
    };
    // Written again, a small file with a huge alignment is huge.
    if first.alignment() > 1 << 16 {
        return;
    }
    let kept: Vec<TensorInfo<'_>> =
        first.tensors().filter(|t| t.block_len() != 0 && !t.name().is_empty()).collect();
    let Some(written) = write(&first, &kept) else {
        assert!(kept.iter().any(|t| t.ty() == GgmlType::Q2_0 && !t.decodable()));
        return;
    };
    let second = Gguf::parse(&written).expect("what was written reads back strictly");
    assert!(first.metadata().map(|e| e.raw()).eq(second.metadata().map(|e| e.raw())));
    assert_eq!(second.tensors().len(), kept.len());
    for (a, b) in kept.iter().zip(second.tensors()) {
        assert_eq!((a.name(), a.dims(), a.ty()), (b.name(), b.dims(), b.ty()));
        assert_eq!((a.block_len(), first.data(a)), (b.block_len(), second.data(&b)), "{a:?}");
    }
    let again: Vec<TensorInfo<'_>> = second.tensors().collect();
    assert_eq!(write(&second, &again), Some(written));
}

/// The file written again with these tensors, `None` if id 42 would change its meaning.
fn write(gguf: &Gguf<'_>, tensors: &[TensorInfo<'_>]) -> Option<Vec<u8>> {
    let mut builder = Builder::from_gguf(gguf);
    for tensor in tensors {
        builder.copy_tensor(tensor).expect("a tensor that was read");
    }
    let layout = match builder.layout() {
        Err(WriteError::ForkQ2_0(_)) => return None,
        layout => layout.expect("metadata that was read"),
    };
    let data: Vec<&[u8]> = tensors.iter().map(|t| gguf.data(t).expect("a tensor within the file")).collect();
    let whole = layout.whole(&data).expect("data as declared");
    let mut stream = layout.stream(Vec::new());
    for part in &data {
        for chunk in part.chunks(part.len() / 3 + 1) {
            stream.write(chunk).expect("data as declared");
        }
    }
    assert_eq!(stream.finish().expect("complete"), whole);
    assert_eq!(whole.len() as u64, layout.total_len());
    Some(whole)
}

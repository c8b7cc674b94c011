//! The tensors' values: every scale, and every plain float, must be finite. Data is read in windows that
//! are released once looked at.

use std::ops::Range;

use ggml_blocks::Format;
use gguf_format::{Kind, MAX_GGML_NAME, TensorInfo};
use rayon::prelude::*;

use super::structure::Directory;
use super::{File, Log};

/// Bytes in memory at a time, and bytes that one thread takes at once; whole blocks each.
const WINDOW: usize = 64 << 20;
const CHUNK: usize = 1 << 20;

/// As large as any page.
const PAGE: u64 = 64 << 10;

/// Non-finite blocks of a stretch of data: how many, and the first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Bad {
    pub(super) count: u64,
    pub(super) first: Option<usize>,
}

/// Notes names, types and shapes that are odd in a file.
pub(super) fn warn_of_oddities(file: &File, directory: &Directory, log: &mut Log) {
    let (path, Some(gguf)) = (file.path(), directory.gguf(&file.mapping)) else { return };
    for tensor in gguf.tensors() {
        let name = directory.name(&tensor);
        let len = tensor.name().len();
        if len as u64 > MAX_GGML_NAME {
            log.warning(
                path,
                format_args!("tensor name '{name}' has {len} bytes, llama.cpp refuses over {MAX_GGML_NAME}"),
            );
        }
        if tensor.ty().info().is_some_and(|t| t.kind == Kind::Activation) {
            log.warning(
                path,
                format_args!("tensor '{name}' has type {}, meant for activations", tensor.ty()),
            );
        }
        if tensor.elements() == 0 {
            log.warning(path, format_args!("tensor '{name}' has no elements: shape {:?}", tensor.dims()));
        }
    }
}

/// Looks at every value that can be looked at, and tells how many bytes these were.
pub(super) fn check(file: &File, directory: &Directory, log: &mut Log) -> u64 {
    let Some(gguf) = directory.gguf(&file.mapping) else { return 0 };
    let mut checked = 0;
    for tensor in gguf.tensors() {
        let Some(format) = Format::of(tensor.ty()).filter(|_| tensor.decodable()) else { continue };
        let start = tensor.file_offset();
        let range = usize::try_from(start).ok().zip(usize::try_from(tensor.byte_len()).ok());
        let bytes = range.and_then(|(at, len)| file.mapping.bytes().get(at..at.checked_add(len)?));
        let Some(bytes) = bytes.filter(|_| directory.is_sound(&tensor)) else { continue };
        let bad = scan(format, bytes, |read| {
            // The page before could not be released whole with the window before.
            let from = (start + read.start as u64).saturating_sub(PAGE);
            file.mapping.release(from..start + read.end as u64);
        });
        checked += bytes.len() as u64;
        if let Some(first) = bad.first {
            log.fault(file.path(), describe(&directory.name(&tensor), &tensor, format, bytes, &bad, first));
        }
    }
    checked
}

/// Counts non-finite blocks; `release` is told which bytes are done with.
pub(super) fn scan(format: &Format, bytes: &[u8], release: impl Fn(Range<usize>)) -> Bad {
    let size = format.block_bytes();
    let (window, chunk) = (WINDOW / size * size, CHUNK / size * size);
    let mut total = Bad::default();
    for (w, bytes) in bytes.chunks(window).enumerate() {
        let found: Vec<Bad> = bytes.par_chunks(chunk).map(|c| count(format, c)).collect();
        for (c, bad) in found.into_iter().enumerate() {
            total.count += bad.count;
            let before = (w * window + c * chunk) / size;
            total.first = total.first.or(bad.first.map(|block| before + block));
        }
        release(w * window..w * window + bytes.len());
    }
    total
}

fn count(format: &Format, mut bytes: &[u8]) -> Bad {
    let mut bad = Bad::default();
    while let Err(e) = format.check_finite(bytes) {
        bad.count += 1;
        bad.first = bad.first.or(Some(e.block));
        bytes = &bytes[(e.block + 1) * format.block_bytes()..];
    }
    bad
}

fn describe(
    name: &str,
    tensor: &TensorInfo<'_>,
    format: &Format,
    bytes: &[u8],
    bad: &Bad,
    first: usize,
) -> String {
    let row = first as u64 * format.block_len() as u64 / tensor.row_len().max(1);
    if format.block_len() > 1 {
        let total = bytes.len() / format.block_bytes();
        return format!(
            "tensor '{name}' ({}) has a non-finite scale in {} of {total} blocks, first in block {first} \
             (row {row})",
            tensor.ty(),
            bad.count
        );
    }
    let mut value = [0.0];
    // The range is that of one block that `check_finite` has just looked at.
    let shown = match format.decode_range(bytes, first..first + 1, &mut value) {
        Ok(()) => value[0].to_string(),
        Err(e) => e.to_string(),
    };
    format!(
        "tensor '{name}' ({}) has {} non-finite values of {}, first {shown} at element {first} (row {row})",
        tensor.ty(),
        bad.count,
        tensor.elements()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use gguf_format::GgmlType;

    #[test]
    fn every_bad_block_is_counted_across_chunks() {
        let format = Format::of(GgmlType::F16).unwrap();
        let mut bytes = vec![0; (CHUNK * 2 + 100) / 2 * 2];
        for at in [CHUNK - 2, CHUNK, CHUNK * 2 + 98] {
            bytes[at..at + 2].copy_from_slice(&0x7e00_u16.to_le_bytes());
        }
        assert_eq!(scan(format, &bytes, |_| {}), Bad { count: 3, first: Some(CHUNK / 2 - 1) });
        assert_eq!(scan(format, &bytes[..100], |_| {}), Bad::default());
        assert_eq!(scan(format, &[], |_| {}), Bad::default());
    }
}

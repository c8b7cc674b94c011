//! Small GGUF files for the tests.

use gguf_format::{Builder, GgmlType};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The bytes of F32 values in a file.
pub(crate) fn le(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// A GGUF file with these one-dimensional F32 tensors; `keys` adds what else its metadata has.
pub(crate) fn gguf(tensors: &[(&str, &[f32])], keys: impl FnOnce(&mut Builder)) -> Vec<u8> {
    let mut b = Builder::new();
    b.set("general.architecture", "llama");
    keys(&mut b);
    for (name, values) in tensors {
        b.tensor(name, &[values.len() as u64], GgmlType::F32).unwrap();
    }
    let data: Vec<Vec<u8>> = tensors.iter().map(|(_, values)| le(values)).collect();
    let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    b.layout().unwrap().whole(&data).unwrap()
}

/// A part as `llama-gguf-split` writes it: `no` from 0, `total` tensors in the whole set.
pub(crate) fn part(no: u16, count: u16, total: i32, tensors: &[(&str, &[f32])]) -> Vec<u8> {
    gguf(tensors, |b| {
        b.set("split.no", no);
        b.set("split.count", count);
        b.set("split.tensors.count", total);
    })
}

/// A folder of files, deleted at the end.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn with(files: &[(&str, &[u8])]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (name, bytes) in files {
            std::fs::write(folder.path(name), bytes).unwrap();
        }
        folder
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    /// An error's text with the folder's own path taken out, so that it is the same at each run.
    pub(crate) fn text(&self, error: &gguf_mmap::Error) -> String {
        let folder = format!("{}{}", self.0.path().display(), std::path::MAIN_SEPARATOR);
        error.to_string().replace(&folder, "")
    }
}

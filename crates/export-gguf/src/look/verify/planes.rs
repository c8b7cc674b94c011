//! Sets of trit-planes: each is whole, of one shape and type, and made by rules that are known.

use gguf_format::{Gguf, TensorInfo};

use super::super::planes::entry;
use super::{File, Log};
use crate::ptqtp::Sets;

/// Checks the sets of a model, whose metadata stands in the first file.
pub(super) fn check(files: &[File], log: &mut Log) {
    let Some(first) = files[0].gguf() else { return };
    let all: Vec<Gguf<'_>> = files.iter().filter_map(File::gguf).collect();
    let infos: Vec<TensorInfo<'_>> = all.iter().flat_map(Gguf::tensors).collect();
    for fault in Sets::find(&first, infos.iter().map(entry)).faults {
        log.fault(files[0].path(), fault);
    }
}

//! Safetensors checkpoints, as far as the toolbox needs them: opened and mapped, with values for the dtypes
//! that are ggml types too. The format itself is the business of `safetensors-lite`.

mod checkpoint;
mod dtype;

use std::path::Path;

pub use checkpoint::{Checkpoint, Part, StTensor};
pub use dtype::{UnsupportedDtype, dtype_of, format_of};

/// Whether a path is that of a safetensors file or of the index of a sharded checkpoint, by its name.
#[must_use]
pub fn is_checkpoint(path: &Path) -> bool {
    let name = path.file_name().map(|n| n.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    name.ends_with(".safetensors") || is_index(path)
}

/// Whether a path is that of the index of a sharded checkpoint, by its name.
fn is_index(path: &Path) -> bool {
    let name = path.file_name().map(|n| n.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    name.ends_with(".safetensors.index.json")
}

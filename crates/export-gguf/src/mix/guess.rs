//! The file type of a model that is only copied.

use gguf_format::{GgmlType, Gguf, TYPES};

use super::file_type::FileType;
use super::policy::Subject;
use crate::plan::FILE_TYPE;

/// llama.cpp's mark for a file type that it guessed from the tensors.
const GUESSED: u32 = 1024;

/// `general.file_type` as it stands; without the key what llama.cpp guesses from the most frequent type.
pub(super) fn guessed_file_type(gguf: &Gguf<'_>, subjects: &[Subject<'_>]) -> u32 {
    if let Some(stated) = gguf.get(FILE_TYPE).and_then(|v| v.as_u64()).and_then(|n| u32::try_from(n).ok()) {
        return stated;
    }
    let mut counts = [0_usize; TYPES.len()];
    let mut most = (0, GgmlType::F32);
    for s in subjects {
        let Some(count) = counts.get_mut(s.ty.0 as usize) else { continue };
        *count += 1;
        if *count > most.0 {
            most = (*count, s.ty);
        }
    }
    let file_type = match most.1 {
        GgmlType::Q3_K => FileType::Q3_K_M,
        GgmlType::Q4_K => FileType::Q4_K_M,
        GgmlType::Q5_K => FileType::Q5_K_M,
        GgmlType::MXFP4 => FileType::MXFP4_MOE,
        ty => ty.name().and_then(FileType::from_name).unwrap_or(FileType::F32),
    };
    file_type.id() | GUESSED
}

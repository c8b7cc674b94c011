//! What is odd about a file that could be read all the same.

use core::fmt;

use crate::{GgmlType, MAX_GGML_NAME, Name};

/// Something odd about a readable file, worth a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// The last tensor is complete, but the padding after it is not.
    MissingTailPadding {
        /// How many bytes are missing.
        bytes: u64,
    },
    /// There are bytes after the data and its padding.
    TrailingBytes {
        /// The file offset where they start.
        at: u64,
        /// How many there are.
        bytes: u64,
    },
    /// `general.alignment` is below 8, which the GGUF specification does not allow.
    SmallAlignment(u32),
    /// Keys have characters beyond ASCII, which the GGUF specification does not allow.
    KeysNotAscii {
        /// The first of them.
        first: Name,
        /// How many they are.
        count: u64,
    },
    /// Tensor names have 64 bytes or more, which llama.cpp refuses.
    LongTensorNames {
        /// The first of them.
        first: Name,
        /// How many they are.
        count: u64,
    },
    /// A tensor has an empty name (lenient mode); its position is given, counted from 0.
    EmptyTensorName(u64),
    /// Tensors of type id 42 fit ggml's layout (64 elements) and that of the `PrismML` fork
    /// (128 elements); they are read as ggml's.
    AmbiguousQ2_0,
    /// Tensors of type id 42 fit only the layout of the `PrismML` fork (128 elements); they cannot be
    /// decoded.
    ForkQ2_0,
    /// A tensor of unknown or removed type (lenient mode). Its extent is known unless it is the
    /// last and the file's length is unknown.
    Undecodable {
        /// The tensor.
        name: Name,
        /// Its type.
        ty: GgmlType,
        /// False if the number of bytes is unknown and given as 0.
        extent_known: bool,
    },
    /// A tensor's offset is not a multiple of the alignment (lenient mode).
    Unaligned {
        /// The tensor.
        name: Name,
        /// The offset, counted from the start of the data.
        offset: u64,
        /// The alignment.
        alignment: u32,
    },
    /// There are bytes beyond padding before a tensor that belong to none (lenient mode).
    Gap {
        /// The tensor after the gap.
        name: Name,
        /// How many bytes, padding included.
        bytes: u64,
    },
    /// The tensors' data is not in the order of their infos (lenient mode); the tensor is the first
    /// that lies before the one listed ahead of it.
    Reordered(Name),
}

impl Finding {
    /// True for what strict mode refuses: only lenient mode reports it.
    #[must_use]
    pub const fn is_lenient_only(&self) -> bool {
        matches!(
            self,
            Self::EmptyTensorName(_)
                | Self::Undecodable { .. }
                | Self::Unaligned { .. }
                | Self::Gap { .. }
                | Self::Reordered(_)
        )
    }

    /// The tensor it is about, if it is about one and that has a name.
    #[must_use]
    pub const fn tensor(&self) -> Option<&Name> {
        match self {
            Self::Undecodable { name, .. }
            | Self::Unaligned { name, .. }
            | Self::Gap { name, .. }
            | Self::Reordered(name) => Some(name),
            _ => None,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingTailPadding { bytes } => {
                write!(f, "{bytes} bytes of padding are missing after the last tensor")
            }
            Self::TrailingBytes { at, bytes } => {
                write!(f, "{bytes} trailing bytes after the data at byte {at:#x}")
            }
            Self::SmallAlignment(value) => write!(f, "general.alignment {value} is not a multiple of 8"),
            Self::KeysNotAscii { first, count } => write!(f, "keys beyond ASCII: {count}, first {first}"),
            Self::LongTensorNames { first, count } => {
                write!(
                    f,
                    "tensor names over {MAX_GGML_NAME} bytes, which llama.cpp refuses: {count}, first {first}"
                )
            }
            Self::EmptyTensorName(index) => write!(f, "tensor {index} has an empty name"),
            Self::AmbiguousQ2_0 => {
                f.write_str("type Q2_0 (id 42) fits 64-element and 128-element blocks: read as ggml's 64")
            }
            Self::ForkQ2_0 => {
                f.write_str("type Q2_0 (id 42) fits 128-element blocks only: a fork's layout, not decodable")
            }
            Self::Undecodable { name, ty, extent_known } => {
                match ty.name() {
                    Some(ty_name) => write!(f, "tensor {name} has the removed type {ty_name} (id {})", ty.0)?,
                    None => write!(f, "tensor {name} has the unknown type {}", ty.0)?,
                }
                f.write_str(", not decodable")?;
                if !extent_known {
                    f.write_str(", size unknown")?;
                }
                Ok(())
            }
            Self::Unaligned { name, offset, alignment } => {
                write!(f, "tensor {name} has offset {offset}, not a multiple of the alignment {alignment}")
            }
            Self::Gap { name, bytes } => write!(f, "{bytes} unused bytes before tensor {name}"),
            Self::Reordered(name) => {
                write!(f, "tensor {name} lies before the one listed ahead of it: data is out of order")
            }
        }
    }
}

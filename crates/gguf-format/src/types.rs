//! The type table: every ggml type id, its name, and how many elements stand in how many bytes.
//!
//! This is the only place where a type's geometry is written down; the parser, the codecs, the CLI
//! names and the docs all iterate over [`TYPES`]. Ids, names and sizes are ggml's `enum ggml_type`
//! and its `type_traits` table (ggml 0.26.0).

use core::fmt;

/// What a type is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// One floating-point number per element.
    Float,
    /// One integer per element.
    Int,
    /// Quantized weights in blocks.
    Block,
    /// Quantized activations in blocks; the id exists, files do not normally carry it.
    Activation,
    /// The id was withdrawn by ggml; its geometry is not known to this table.
    Removed,
}

/// What an encoder does with an importance matrix (`imatrix`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Importance {
    /// The format has no use for one.
    Ignored,
    /// Encodes with or without one; the bytes differ.
    Optional,
    /// ggml cannot encode the format without one.
    Required,
}

/// One row of the type table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TypeInfo {
    /// The id stored in a tensor info.
    pub id: GgmlType,
    /// ggml's name in its usual upper-case spelling, such as `Q4_K`.
    pub name: &'static str,
    /// Elements per block: 1 for plain numbers, 0 for a removed type.
    pub block_len: u32,
    /// Bytes per block, 0 for a removed type.
    pub block_bytes: u32,
    /// What the type is for.
    pub kind: Kind,
    /// What its encoder does with an importance matrix.
    pub importance: Importance,
}

/// A ggml type id as it stands in a file: any `u32`, known or not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GgmlType(pub u32);

macro_rules! ggml_types {
    ($($id:literal $name:ident $len:literal / $bytes:literal $kind:ident $importance:ident;)+) => {
        impl GgmlType {
            $(
                #[doc = concat!("`", stringify!($name), "`, id ", $id, ".")]
                pub const $name: Self = Self($id);
            )+
        }

        /// Every id that ggml has ever assigned, in ascending order without gaps.
        pub static TYPES: [TypeInfo; [$($id),+].len()] = [$(TypeInfo {
            id: GgmlType($id),
            name: stringify!($name),
            block_len: $len,
            block_bytes: $bytes,
            kind: Kind::$kind,
            importance: Importance::$importance,
        }),+];
    };
}

ggml_types! {
    // id name      elements / bytes kind       importance
     0 F32          1 /   4 Float      Ignored;
     1 F16          1 /   2 Float      Ignored;
     2 Q4_0        32 /  18 Block      Optional;
     3 Q4_1        32 /  20 Block      Optional;
     4 Q4_2         0 /   0 Removed    Ignored;
     5 Q4_3         0 /   0 Removed    Ignored;
     6 Q5_0        32 /  22 Block      Optional;
     7 Q5_1        32 /  24 Block      Optional;
     8 Q8_0        32 /  34 Block      Ignored;
     9 Q8_1        32 /  36 Activation Ignored;
    10 Q2_K       256 /  84 Block      Optional;
    11 Q3_K       256 / 110 Block      Optional;
    12 Q4_K       256 / 144 Block      Optional;
    13 Q5_K       256 / 176 Block      Optional;
    14 Q6_K       256 / 210 Block      Optional;
    15 Q8_K       256 / 292 Activation Ignored;
    16 IQ2_XXS    256 /  66 Block      Required;
    17 IQ2_XS     256 /  74 Block      Required;
    18 IQ3_XXS    256 /  98 Block      Optional;
    19 IQ1_S      256 /  50 Block      Required;
    20 IQ4_NL      32 /  18 Block      Optional;
    21 IQ3_S      256 / 110 Block      Optional;
    22 IQ2_S      256 /  82 Block      Optional;
    23 IQ4_XS     256 / 136 Block      Optional;
    24 I8           1 /   1 Int        Ignored;
    25 I16          1 /   2 Int        Ignored;
    26 I32          1 /   4 Int        Ignored;
    27 I64          1 /   8 Int        Ignored;
    28 F64          1 /   8 Float      Ignored;
    29 IQ1_M      256 /  56 Block      Optional;
    30 BF16         1 /   2 Float      Ignored;
    31 Q4_0_4_4     0 /   0 Removed    Ignored;
    32 Q4_0_4_8     0 /   0 Removed    Ignored;
    33 Q4_0_8_8     0 /   0 Removed    Ignored;
    34 TQ1_0      256 /  54 Block      Ignored;
    35 TQ2_0      256 /  66 Block      Ignored;
    36 IQ4_NL_4_4   0 /   0 Removed    Ignored;
    37 IQ4_NL_4_8   0 /   0 Removed    Ignored;
    38 IQ4_NL_8_8   0 /   0 Removed    Ignored;
    39 MXFP4       32 /  17 Block      Ignored;
    40 NVFP4       64 /  36 Block      Ignored;
    41 Q1_0       128 /  18 Block      Ignored;
    42 Q2_0        64 /  18 Block      Ignored;
}

impl GgmlType {
    /// The table row of this id, `None` for an id that ggml never assigned.
    #[must_use]
    pub fn info(self) -> Option<&'static TypeInfo> {
        TYPES.get(usize::try_from(self.0).ok()?)
    }

    /// The type of this name, in any letter case (`q4_k`, `Q4_K`).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        TYPES.iter().find(|t| t.name.eq_ignore_ascii_case(name)).map(|t| t.id)
    }

    /// ggml's name in upper case, `None` for an unknown id.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        self.info().map(|t| t.name)
    }

    /// Bytes of a row of `elements` elements: `None` for an unknown or removed type, for a length
    /// that the block does not divide, and on overflow.
    #[must_use]
    pub fn row_bytes(self, elements: u64) -> Option<u64> {
        let info = self.info()?;
        let len = u64::from(info.block_len);
        if elements.checked_rem(len)? != 0 {
            return None;
        }
        elements.checked_div(len)?.checked_mul(u64::from(info.block_bytes))
    }
}

impl fmt::Debug for GgmlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The name, or `type 137` for an unknown id.
impl fmt::Display for GgmlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "type {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_indexed_by_id() {
        assert_eq!(TYPES.len(), 43);
        for (i, t) in TYPES.iter().enumerate() {
            assert_eq!(t.id.0 as usize, i, "{}", t.name);
            assert_eq!(t.block_len == 0, t.kind == Kind::Removed);
            assert_eq!(GgmlType::from_name(&t.name.to_lowercase()), Some(t.id));
        }
    }

    #[test]
    fn row_bytes_follow_the_block() {
        assert_eq!(GgmlType::Q4_K.row_bytes(512), Some(288));
        assert_eq!(GgmlType::Q4_K.row_bytes(100), None);
        assert_eq!(GgmlType::Q4_2.row_bytes(32), None);
        assert_eq!(GgmlType(137).row_bytes(32), None);
        assert_eq!(GgmlType::F64.row_bytes(u64::MAX), None);
    }
}

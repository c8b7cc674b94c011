//! The file types of llama.cpp (`enum llama_ftype`): what `Q4_K_M` and its siblings are called, their
//! number in `general.file_type`, and the type that most of their tensors get.

use std::fmt;

use gguf_format::GgmlType;

macro_rules! file_types {
    ($($id:literal $name:ident $default:ident;)+) => {
        /// A file type by llama.cpp's number: one type for all tensors, or a mix of several.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[expect(non_camel_case_types, reason = "llama.cpp's own names")]
        #[non_exhaustive]
        pub enum FileType {
            $(
                #[doc = concat!("Most tensors are `", stringify!($default), "`.")]
                $name = $id,
            )+
        }

        impl FileType {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The name that llama-quantize knows.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),+ }
            }

            /// The type that a tensor gets when no rule says otherwise.
            #[must_use]
            pub const fn default_type(self) -> GgmlType {
                match self { $(Self::$name => GgmlType::$default),+ }
            }
        }
    };
}

file_types! {
    0  F32       F32;
    1  F16       F16;
    2  Q4_0      Q4_0;
    3  Q4_1      Q4_1;
    7  Q8_0      Q8_0;
    8  Q5_0      Q5_0;
    9  Q5_1      Q5_1;
    10 Q2_K      Q2_K;
    11 Q3_K_S    Q3_K;
    12 Q3_K_M    Q3_K;
    13 Q3_K_L    Q3_K;
    14 Q4_K_S    Q4_K;
    15 Q4_K_M    Q4_K;
    16 Q5_K_S    Q5_K;
    17 Q5_K_M    Q5_K;
    18 Q6_K      Q6_K;
    19 IQ2_XXS   IQ2_XXS;
    20 IQ2_XS    IQ2_XS;
    21 Q2_K_S    Q2_K;
    22 IQ3_XS    IQ3_S;
    23 IQ3_XXS   IQ3_XXS;
    24 IQ1_S     IQ1_S;
    25 IQ4_NL    IQ4_NL;
    26 IQ3_S     IQ3_S;
    27 IQ3_M     IQ3_S;
    28 IQ2_S     IQ2_XS;
    29 IQ2_M     IQ2_S;
    30 IQ4_XS    IQ4_XS;
    31 IQ1_M     IQ1_M;
    32 BF16      BF16;
    36 TQ1_0     TQ1_0;
    37 TQ2_0     TQ2_0;
    38 MXFP4_MOE MXFP4;
    40 Q1_0      Q1_0;
    41 Q2_0      Q2_0;
}

/// Names that llama-quantize also takes.
const ALIASES: &[(&str, FileType)] =
    &[("Q3_K", FileType::Q3_K_M), ("Q4_K", FileType::Q4_K_M), ("Q5_K", FileType::Q5_K_M)];

impl FileType {
    /// The file type of this name or alias, in any letter case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let alias = ALIASES.iter().find(|(a, _)| a.eq_ignore_ascii_case(name)).map(|&(_, t)| t);
        alias.or_else(|| Self::ALL.iter().copied().find(|t| t.name().eq_ignore_ascii_case(name)))
    }

    /// The number in `general.file_type`.
    #[must_use]
    pub const fn id(self) -> u32 {
        self as u32
    }

    /// Whether its default type has blocks; only then do mix rules, overrides and fallbacks apply.
    #[must_use]
    pub fn is_quantized(self) -> bool {
        !matches!(self, Self::F32 | Self::F16 | Self::BF16)
    }
}

impl fmt::Display for FileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_aliases_resolve() {
        assert_eq!(FileType::ALL.len(), 35);
        for t in FileType::ALL {
            let expect = match t.name() {
                "Q3_K" | "Q4_K" | "Q5_K" => unreachable!("aliases are not file types"),
                _ => *t,
            };
            assert_eq!(FileType::from_name(&t.name().to_lowercase()), Some(expect));
        }
        assert_eq!(FileType::from_name("q4_k"), Some(FileType::Q4_K_M));
        assert_eq!(FileType::from_name("nvfp4"), None);
    }
}

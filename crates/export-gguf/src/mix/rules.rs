//! The mix rules as data: which tensors of which file type get which type, and when.
//!
//! The first row whose file type and conditions hold decides; without one the tensor gets the file
//! type's default. The rows are those of `llama_tensor_get_type_impl` in llama.cpp's
//! `src/llama-quant.cpp`, in its order.

use gguf_format::GgmlType as T;

use super::file_type::FileType::{self, *};
use super::names::Part;

/// A condition of a rule. `n` is the number of layers; divisions are integer divisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum When {
    /// At least four query heads share one key-value head.
    Gqa4,
    /// [`When::Gqa4`], or at least four experts.
    Gqa4OrExperts4,
    /// Exactly eight experts.
    Experts8,
    /// Not exactly eight experts.
    NotExperts8,
    /// The architecture is `falcon`.
    Falcon,
    /// The architecture is not `falcon`.
    NotFalcon,
    /// An importance matrix was given.
    Importance,
    /// No importance matrix was given.
    NoImportance,
    /// One of the first so many tensors of this part.
    First(u32),
    /// Layer below `n/8`.
    FirstEighth,
    /// Layer below `n/16`.
    FirstSixteenth,
    /// Neither in the first `n/8` layers nor from `7n/8` on.
    Middle,
    /// In the first `n/8` layers, from `7n/8` on, or every third in between.
    MoreBits,
}

/// One row: for these file types, when all conditions hold, this type.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub(super) struct Rule {
    /// The part of the network the rule is about.
    pub(super) part: Part,
    /// The file types it is about; empty means all of them.
    pub(super) file_types: &'static [FileType],
    /// All of these must hold.
    pub(super) when: &'static [When],
    /// The type it gives.
    pub(super) to: T,
}

macro_rules! rules {
    ($($part:ident { $($([$($ft:ident)*])? $($when:ident $(($n:literal))?)* => $to:ident;)* })*) => {
        &[$($(Rule {
            part: Part::$part,
            file_types: &[$($($ft),*)?],
            when: &[$(When::$when $(($n))?),*],
            to: T::$to,
        }),*),*]
    };
}

/// File types of two bits a weight and fewer, which have rules of their own.
pub(super) const VERY_LOW: &[FileType] = &[IQ2_XXS, IQ2_XS, IQ1_S, IQ2_S, IQ2_M, IQ1_M];

/// The rules for [`VERY_LOW`] file types.
pub(super) const VERY_LOW_RULES: &[Rule] = rules! {
    AttentionV {
        Gqa4OrExperts4 => Q4_K;
        [IQ2_S IQ2_M] => IQ3_S;
        => Q2_K;
    }
    AttentionK {
        Experts8 => Q4_K;
    }
    FfnDown {
        [IQ2_S IQ2_M] FirstEighth => IQ3_S;
        FirstEighth => Q2_K;
    }
    AttentionOutput {
        Experts8 => Q5_K;
        [IQ1_S IQ1_M] => IQ2_XXS;
        [IQ2_S IQ2_M] => IQ3_S;
    }
};

/// The rules for all other file types.
pub(super) const RULES: &[Rule] = rules! {
    AttentionV {
        [Q2_K] Gqa4 => Q4_K;
        [Q2_K] => Q3_K;
        [Q2_K_S] Gqa4 => Q4_K;
        [IQ3_XXS] Gqa4 => Q4_K;
        [IQ3_XXS] NoImportance => IQ3_S;
        [IQ3_XXS] => IQ3_XXS;
        [IQ3_XS IQ3_S] Gqa4 => Q4_K;
        [IQ3_M] => Q4_K;
        [Q3_K_M] First(2) => Q5_K;
        [Q3_K_M] => Q4_K;
        [Q3_K_L] => Q5_K;
        [IQ4_NL IQ4_XS] Gqa4 => Q5_K;
        [Q4_K_M Q5_K_M] MoreBits => Q6_K;
        [Q4_K_S] First(4) => Q5_K;
    }
    AttentionK {
        Experts8 => Q8_0;
        [IQ3_XS] => IQ3_XXS;
        [IQ3_XXS] => IQ2_S;
    }
    AttentionQ {
        [IQ3_XS] => IQ3_XXS;
        [IQ3_XXS] => IQ2_S;
    }
    FfnDown {
        [Q2_K] => Q3_K;
        [Q2_K_S] FirstEighth => Q4_K;
        [IQ3_XXS] NoImportance FirstEighth => Q4_K;
        [IQ3_XXS] NoImportance => Q3_K;
        [Q3_K_M] FirstSixteenth => Q5_K;
        [Q3_K_M] NotFalcon => Q4_K;
        [Q3_K_M] MoreBits => Q4_K;
        [Q3_K_M] => Q3_K;
        [IQ3_M] FirstEighth => Q4_K;
        [IQ3_M] Experts8 MoreBits => Q4_K;
        [Q3_K_L] Falcon => Q4_K;
        [Q3_K_L] => Q5_K;
        [Q4_K_M] Falcon FirstSixteenth => Q6_K;
        [Q4_K_M] Falcon MoreBits => Q5_K;
        [Q4_K_M] Falcon => Q4_K;
        [Q4_K_M] MoreBits => Q6_K;
        [IQ4_NL IQ4_XS] NoImportance FirstEighth => Q5_K;
        [Q5_K_M] MoreBits => Q6_K;
        [Q4_K_S] NotFalcon FirstEighth => Q5_K;
        [Q4_0] Importance FirstEighth => Q4_1;
        [Q5_0] Importance FirstEighth => Q5_1;
    }
    AttentionOutput {
        [Q3_K_L] Falcon => Q4_K;
        [Q2_K IQ3_XS IQ3_XXS Q3_K_S Q3_K_M IQ4_NL Q4_K_S Q4_K_M IQ3_S IQ3_M IQ4_XS] NotFalcon Experts8 => Q5_K;
        [Q2_K] NotFalcon NotExperts8 => Q3_K;
        [IQ3_XXS] NotFalcon NotExperts8 => IQ3_S;
        [Q3_K_M IQ3_M] NotFalcon NotExperts8 => Q4_K;
        [Q3_K_L] NotFalcon NotExperts8 => Q5_K;
    }
    FfnGate {
        [IQ3_XS] Middle => IQ3_XXS;
    }
    FfnUp {
        [IQ3_XS] Middle => IQ3_XXS;
    }
};

/// The type of the output matrix (and of a token embedding that serves as one) where it isn't `Q6_K`.
pub(super) const OUTPUT_Q5_K: &[FileType] = &[IQ2_XXS, IQ2_XS, IQ3_XXS, IQ1_S, IQ2_S, IQ2_M, IQ1_M];

/// The type of a token embedding that is not the output matrix too.
pub(super) const TOKEN_EMBEDDING: &[(&[FileType], T)] = &[
    (&[IQ2_XXS, IQ2_XS, IQ1_S, IQ1_M], T::Q2_K),
    (&[IQ2_S, IQ2_M, IQ3_XXS], T::IQ3_S),
    (&[TQ1_0, TQ2_0, Q2_0], T::Q4_K),
];

/// The type that takes over where the row length is not a multiple of the block.
pub(super) const FALLBACK: &[(&[T], T)] = &[
    (&[T::IQ1_S, T::IQ1_M, T::IQ2_XXS, T::IQ2_XS, T::IQ2_S, T::IQ3_XXS, T::IQ3_S, T::IQ4_XS], T::IQ4_NL),
    (&[T::Q2_0, T::Q2_K, T::Q3_K, T::TQ1_0, T::TQ2_0], T::Q4_0),
    (&[T::Q4_K], T::Q5_0),
    (&[T::Q5_K], T::Q5_1),
    (&[T::Q6_K], T::Q8_0),
];

/// Types that are useless without an importance matrix, so that a tensor bound for one must have it.
pub(super) const NEEDS_IMPORTANCE: &[T] = &[T::IQ3_XXS, T::IQ2_XXS, T::IQ2_XS, T::IQ2_S, T::IQ1_M, T::IQ1_S];

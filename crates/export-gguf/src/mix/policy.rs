//! From names and shapes to a type and a reason per tensor: a pure function, no file access.
//!
//! The decisions are those of llama-quantize (llama.cpp's `src/llama-quant.cpp`), including the order
//! in which it visits tensors: its rules count the tensors they have seen, so an override that takes a
//! tensor out of their hands shifts the layers after it.

use std::fmt;

use gguf_format::{GgmlType, Kind};

use super::file_type::FileType;
use super::names::{Part, kept_reason, layer_of, part_of};
use super::rules::{
    FALLBACK, NEEDS_IMPORTANCE, OUTPUT_Q5_K, RULES, Rule, TOKEN_EMBEDDING, VERY_LOW, VERY_LOW_RULES, When,
};

/// A tensor as the policy sees it.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its dimensions in ne order.
    pub dims: &'a [u64],
    /// Its present type.
    pub ty: GgmlType,
}

/// What the rules need to know of the model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HyperParameters {
    /// `general.architecture`.
    pub architecture: String,
    /// `{arch}.block_count`, next-token layers included.
    pub layers: u32,
    /// `{arch}.expert_count`, 0 for a dense model.
    pub experts: u32,
    /// `{arch}.attention.head_count` of layer 0.
    pub heads: u32,
    /// `{arch}.attention.head_count_kv` of layer 0.
    pub heads_kv: u32,
}

impl HyperParameters {
    /// Query heads per key-value head; 0 where there are no key-value heads.
    fn gqa(&self) -> u32 {
        self.heads.checked_div(self.heads_kv).unwrap_or(0)
    }

    /// Whether llama.cpp files the model under its 70B type, which raises `attn_v`.
    fn is_70b(&self) -> bool {
        match self.architecture.as_str() {
            "llama" => self.layers == 80 && self.heads != self.heads_kv,
            "deci" | "olmo" | "qwen2" => self.layers == 80,
            "jais2" => self.layers == 68,
            _ => false,
        }
    }
}

/// A type for every tensor whose name a pattern matches.
#[derive(Debug, Clone)]
pub struct Override {
    /// Searched for anywhere in the name.
    pub pattern: fancy_regex::Regex,
    /// What a match gets.
    pub ty: GgmlType,
}

/// llama-quantize's options, as far as they decide types.
#[derive(Debug, Clone)]
pub struct Options {
    /// The file type asked for.
    pub file_type: FileType,
    /// `--pure`: no mix rules, the default type everywhere.
    pub pure: bool,
    /// `--leave-output-tensor`: `output.weight` keeps its type.
    pub leave_output: bool,
    /// `--output-tensor-type`.
    pub output_type: Option<GgmlType>,
    /// `--token-embedding-type`.
    pub token_embedding_type: Option<GgmlType>,
    /// `--tensor-type`, first match wins.
    pub overrides: Vec<Override>,
    /// Whether an importance matrix was given at all.
    pub importance: bool,
}

impl Options {
    /// Nothing but the file type.
    #[must_use]
    pub const fn new(file_type: FileType) -> Self {
        Self {
            file_type,
            pure: false,
            leave_output: false,
            output_type: None,
            token_embedding_type: None,
            overrides: Vec::new(),
            importance: false,
        }
    }
}

/// Why a tensor gets its type.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Fewer than two dimensions: kept.
    Vector,
    /// Kept for its name; the part of it that decided.
    Kept(&'static str),
    /// `--leave-output-tensor`.
    OutputLeft,
    /// `--output-tensor-type`.
    OutputOption,
    /// `--token-embedding-type`.
    TokenEmbeddingOption,
    /// `--tensor-type`, with the pattern that matched.
    Override(String),
    /// The file type's default.
    Default,
    /// The rule for the output matrix.
    Output,
    /// No output matrix in the file, so the token embedding follows its rule.
    TiedEmbedding,
    /// The rule for token embeddings.
    TokenEmbedding,
    /// Expert matrices of a mixture file type.
    Experts,
    /// A tensor of one architecture that never goes below `Q8_0`.
    Floor,
    /// A row of the rule table.
    Rule(Part, &'static [When]),
    /// llama.cpp's 70B class: shared value heads get more bits.
    Large,
    /// Eight experts: the small attention matrices stay at eight bits.
    EightExperts,
    /// Only copied.
    Copy,
    /// `--imatrix-missing type=T`.
    ImportanceMissing,
}

/// The decision about one tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The type to write.
    pub ty: GgmlType,
    /// Why.
    pub reason: Reason,
    /// The type that the rules wanted, where the row length did not fit its block.
    pub instead_of: Option<GgmlType>,
    /// llama-quantize refuses to write this tensor without importance.
    pub needs_importance: bool,
}

/// Why no decision could be made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// The row length does not fit, and the type has no smaller relative to fall back to.
    NoFallback {
        /// The tensor.
        name: String,
        /// Its row length.
        row_len: u64,
        /// The type.
        ty: GgmlType,
    },
    /// A pattern gave up (its backtracking limit).
    Pattern {
        /// The pattern.
        pattern: String,
        /// The tensor it was tried on.
        name: String,
    },
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFallback { name, row_len, ty } => write!(
                f,
                "tensor `{name}`: rows of {row_len} do not divide into blocks of {ty}, which has no fallback type; \
                 give it another with --tensor-type"
            ),
            Self::Pattern { pattern, name } => {
                write!(f, "the pattern `{pattern}` takes too long on tensor `{name}`")
            }
        }
    }
}

impl std::error::Error for PolicyError {}

/// The order in which llama-quantize visits and writes tensors: by layer, those outside the blocks
/// first, then by name.
#[must_use]
pub fn processing_order(names: &[&str]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by_key(|&i| (layer_of(names[i]), names[i].as_bytes()));
    order
}

/// Decides for every tensor. `subjects` must stand in processing order (see [`processing_order`]; with
/// kept splits, in file order), because some rules count.
///
/// # Errors
/// [`PolicyError`] where llama-quantize would stop for want of a fallback, or a pattern explodes.
pub fn assign(
    subjects: &[Subject<'_>],
    model: &HyperParameters,
    options: &Options,
) -> Result<Vec<Choice>, PolicyError> {
    let mut state = State::new(subjects, model, options);
    subjects.iter().map(|s| state.choose(s)).collect()
}

/// The counters, and what does not change from tensor to tensor.
struct State<'a> {
    model: &'a HyperParameters,
    options: &'a Options,
    tied: bool,
    value_tensors: i64,
    seen: [i64; 4],
}

/// A position among the layers: of this tensor, and how many there are.
#[derive(Clone, Copy)]
struct Place {
    at: i64,
    of: i64,
    nth: i64,
}

impl<'a> State<'a> {
    fn new(subjects: &[Subject<'_>], model: &'a HyperParameters, options: &'a Options) -> Self {
        Self {
            model,
            options,
            tied: !subjects.iter().any(|s| part_of(s.name) == Part::Output),
            value_tensors: subjects.iter().filter(|s| part_of(s.name) == Part::AttentionV).map(|_| 1).sum(),
            seen: [0; 4],
        }
    }

    fn choose(&mut self, s: &Subject<'_>) -> Result<Choice, PolicyError> {
        let (options, part) = (self.options, part_of(s.name));
        let fixed = |ty, reason| Ok(self.finish(s, ty, reason, None));
        if s.dims.iter().rposition(|&d| d > 1).unwrap_or(0) < 1 {
            return fixed(s.ty, Reason::Vector);
        }
        if options.leave_output && part == Part::Output {
            return fixed(s.ty, Reason::OutputLeft);
        }
        if let Some(why) = kept_reason(s.name, &self.model.architecture) {
            return fixed(s.ty, Reason::Kept(why));
        }
        let matched = self.matching(s.name)?;
        if let (Some(ty), Part::TokenEmbedding) = (options.token_embedding_type, part) {
            // The per-layer table is large and separate, so a pattern that names it goes first.
            if !(s.name == "per_layer_token_embd.weight" && matched.is_some()) {
                return fixed(ty, Reason::TokenEmbeddingOption);
            }
        }
        if let (Some(ty), Part::Output) = (options.output_type, part) {
            return fixed(ty, Reason::OutputOption);
        }
        let default = options.file_type.default_type();
        if !options.file_type.is_quantized() {
            return fixed(default, Reason::Default);
        }
        let (wanted, reason) = match matched {
            Some(o) => (o.ty, Reason::Override(o.pattern.as_str().to_owned())),
            None if options.pure => (default, Reason::Default),
            None => self.by_rule(s, part, default),
        };
        let ty = fitting(s, wanted)?;
        Ok(self.finish(s, ty, reason, (ty != wanted).then_some(wanted)))
    }

    fn finish(&self, s: &Subject<'_>, ty: GgmlType, reason: Reason, instead_of: Option<GgmlType>) -> Choice {
        let exempt = matches!(part_of(s.name), Part::Output | Part::TokenEmbedding);
        let low = NEEDS_IMPORTANCE.contains(&ty)
            || (ty == GgmlType::Q2_K && self.options.file_type == FileType::Q2_K_S);
        Choice { ty, reason, instead_of, needs_importance: low && !exempt }
    }

    fn matching(&self, name: &str) -> Result<Option<&'a Override>, PolicyError> {
        for o in &self.options.overrides {
            match o.pattern.is_match(name) {
                Ok(true) => return Ok(Some(o)),
                Ok(false) => {}
                Err(_) => {
                    return Err(PolicyError::Pattern {
                        pattern: o.pattern.as_str().into(),
                        name: name.into(),
                    });
                }
            }
        }
        Ok(None)
    }

    /// The mix rules proper.
    fn by_rule(&mut self, s: &Subject<'_>, part: Part, default: GgmlType) -> (GgmlType, Reason) {
        let file_type = self.options.file_type;
        let plain = matches!(default, GgmlType::F32 | GgmlType::F16 | GgmlType::BF16);
        let floored = ["attn_q_a", "attn_q_b", "nextn.eh_proj"].iter().any(|p| s.name.contains(p));
        if self.model.architecture == "glm5-next" && floored && !plain {
            return (GgmlType::Q8_0, Reason::Floor);
        }
        if part == Part::Output || (self.tied && part == Part::TokenEmbedding) {
            let reason = if part == Part::Output { Reason::Output } else { Reason::TiedEmbedding };
            return (self.output(s, default), reason);
        }
        if file_type == FileType::MXFP4_MOE {
            let expert_role = matches!(part, Part::FfnUp | Part::FfnGate | Part::FfnDown);
            let stack = s.dims.get(2).is_some_and(|&n| n > 1);
            let expert = stack && (self.model.architecture != "bailingmoe3" || expert_role);
            let ty = if expert { GgmlType::MXFP4 } else { GgmlType::Q8_0 };
            return (ty, if expert { Reason::Experts } else { Reason::Default });
        }
        if part == Part::TokenEmbedding {
            let row = TOKEN_EMBEDDING.iter().find(|(types, _)| types.contains(&file_type));
            return row.map_or((default, Reason::Default), |&(_, ty)| (ty, Reason::TokenEmbedding));
        }
        if VERY_LOW.contains(&file_type) {
            let rules = VERY_LOW_RULES;
            // These rules go by the count alone, and only two parts are counted.
            let place = match part {
                Part::AttentionV | Part::FfnDown => self.count(part, None),
                _ => self.place(part, None),
            };
            return self.first_rule(rules, part, place, default);
        }
        let layer = (self.model.experts > 1).then(|| layer_of(s.name));
        let place = self.count(part, layer);
        let (ty, reason) = self.first_rule(RULES, part, place, default);
        if part != Part::AttentionV {
            return (ty, reason);
        }
        if self.model.experts == 8 {
            (GgmlType::Q8_0, Reason::EightExperts)
        } else if self.model.is_70b() && matches!(ty, GgmlType::Q3_K | GgmlType::Q4_K) {
            (GgmlType::Q5_K, Reason::Large)
        } else {
            (ty, reason)
        }
    }

    fn output(&self, s: &Subject<'_>, default: GgmlType) -> GgmlType {
        let file_type = self.options.file_type;
        let divides = default.row_bytes(s.dims.first().copied().unwrap_or(1)).is_some();
        if let Some(ty) = self.options.output_type {
            ty
        } else if file_type == FileType::MXFP4_MOE || self.model.architecture == "falcon" || !divides {
            GgmlType::Q8_0
        } else if OUTPUT_Q5_K.contains(&file_type) {
            GgmlType::Q5_K
        } else if default == GgmlType::Q8_0 {
            default
        } else {
            GgmlType::Q6_K
        }
    }

    fn counter(part: Part) -> Option<usize> {
        match part {
            Part::AttentionV => Some(0),
            Part::FfnDown => Some(1),
            Part::FfnGate => Some(2),
            Part::FfnUp => Some(3),
            _ => None,
        }
    }

    fn place(&self, part: Part, layer: Option<i64>) -> Place {
        let nth = Self::counter(part).map_or(0, |c| self.seen[c]);
        match part {
            Part::AttentionV => Place { at: nth, of: self.value_tensors, nth },
            _ => Place { at: layer.unwrap_or(nth), of: i64::from(self.model.layers), nth },
        }
    }

    fn count(&mut self, part: Part, layer: Option<i64>) -> Place {
        let place = self.place(part, layer);
        if let Some(c) = Self::counter(part) {
            self.seen[c] += 1;
        }
        place
    }

    fn first_rule(
        &self,
        rules: &'static [Rule],
        part: Part,
        place: Place,
        default: GgmlType,
    ) -> (GgmlType, Reason) {
        let file_type = self.options.file_type;
        rules
            .iter()
            .filter(|r| r.part == part && (r.file_types.is_empty() || r.file_types.contains(&file_type)))
            .find(|r| r.when.iter().all(|&w| self.holds(w, place)))
            .map_or((default, Reason::Default), |r| (r.to, Reason::Rule(part, r.when)))
    }

    fn holds(&self, when: When, Place { at, of, nth }: Place) -> bool {
        let m = self.model;
        match when {
            When::Gqa4 => m.gqa() >= 4,
            When::Gqa4OrExperts4 => m.gqa() >= 4 || m.experts >= 4,
            When::Experts8 => m.experts == 8,
            When::NotExperts8 => m.experts != 8,
            When::Falcon => m.architecture == "falcon",
            When::NotFalcon => m.architecture != "falcon",
            When::Importance => self.options.importance,
            When::NoImportance => !self.options.importance,
            When::First(n) => nth < i64::from(n),
            When::FirstEighth => at < of / 8,
            When::FirstSixteenth => at < of / 16,
            When::Middle => at >= of / 8 && at < 7 * of / 8,
            When::MoreBits => at < of / 8 || at >= 7 * of / 8 || (at - of / 8) % 3 == 2,
        }
    }
}

/// `wanted`, or its relative with a smaller block where the row length does not divide.
fn fitting(s: &Subject<'_>, wanted: GgmlType) -> Result<GgmlType, PolicyError> {
    let row_len = s.dims.first().copied().unwrap_or(1);
    if wanted.row_bytes(row_len).is_some() {
        return Ok(wanted);
    }
    let smaller = match FALLBACK.iter().find(|(types, _)| types.contains(&wanted)) {
        Some(&(_, ty)) => ty,
        None if wanted.info().is_some_and(|t| t.kind != Kind::Removed && t.block_len <= 32) => wanted,
        None => return Err(PolicyError::NoFallback { name: s.name.into(), row_len, ty: wanted }),
    };
    Ok(if smaller.row_bytes(row_len).is_some() { smaller } else { GgmlType::F16 })
}

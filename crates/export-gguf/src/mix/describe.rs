//! The rules in words, for `--dry-run` and the documentation.

use std::fmt;

use gguf_format::GgmlType;

use super::file_type::FileType;
use super::names::Part;
use super::policy::{Choice, Reason};
use super::rules::{OUTPUT_Q5_K, RULES, Rule, TOKEN_EMBEDDING, VERY_LOW, VERY_LOW_RULES, When};

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Output => "output",
            Self::TokenEmbedding => "token_embd",
            Self::AttentionV => "attn_v",
            Self::AttentionK => "attn_k",
            Self::AttentionQ => "attn_q",
            Self::AttentionOutput => "attn_output",
            Self::FfnUp => "ffn_up",
            Self::FfnGate => "ffn_gate",
            Self::FfnDown => "ffn_down",
            Self::Other => "other",
        })
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gqa4 => f.write_str("4 or more heads share a key-value head"),
            Self::Gqa4OrExperts4 => {
                f.write_str("4 or more heads share a key-value head, or 4 or more experts")
            }
            Self::Experts8 => f.write_str("8 experts"),
            Self::NotExperts8 => f.write_str("not 8 experts"),
            Self::Falcon => f.write_str("falcon"),
            Self::NotFalcon => f.write_str("not falcon"),
            Self::Importance => f.write_str("with importance"),
            Self::NoImportance => f.write_str("without importance"),
            Self::First(n) => write!(f, "the first {n}"),
            Self::FirstEighth => f.write_str("the first eighth of the layers"),
            Self::FirstSixteenth => f.write_str("the first sixteenth of the layers"),
            Self::Middle => f.write_str("the middle three quarters of the layers"),
            Self::MoreBits => f.write_str("the first and last eighth of the layers and every third between"),
        }
    }
}

/// Conditions joined by commas.
fn conditions(when: &[When]) -> String {
    when.iter().map(When::to_string).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vector => f.write_str("kept: one dimension"),
            Self::Kept(part) => write!(f, "kept: {part}"),
            Self::OutputLeft => f.write_str("--leave-output-tensor"),
            Self::OutputOption => f.write_str("--output-tensor-type"),
            Self::TokenEmbeddingOption => f.write_str("--token-embedding-type"),
            Self::Override(pattern) => write!(f, "--tensor-type {pattern}"),
            Self::Default => f.write_str("default"),
            Self::Output => f.write_str("output matrix"),
            Self::TiedEmbedding => f.write_str("token embedding that is the output matrix"),
            Self::TokenEmbedding => f.write_str("token embedding"),
            Self::Experts => f.write_str("experts"),
            Self::Floor => f.write_str("never below Q8_0"),
            Self::Rule(part, []) => write!(f, "{part}"),
            Self::Rule(part, when) => write!(f, "{part}: {}", conditions(when)),
            Self::Large => f.write_str("attn_v: 70B class"),
            Self::EightExperts => f.write_str("attn_v: 8 experts"),
            Self::Copy => f.write_str("copied"),
            Self::ImportanceMissing => f.write_str("--imatrix-missing"),
        }
    }
}

/// The reason, and what the rules wanted where the row length forbade it.
impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.reason)?;
        match self.instead_of {
            Some(wanted) => write!(f, "; rows do not fit {wanted}"),
            None => Ok(()),
        }
    }
}

/// A Markdown table of what each file type gives to which tensors, made from the rules themselves.
#[must_use]
pub fn markdown_table() -> String {
    let mut table =
        String::from("| file type | most tensors | output matrix | others |\n| --- | --- | --- | --- |\n");
    for &file_type in FileType::ALL {
        let default = file_type.default_type();
        let output = match file_type {
            _ if !file_type.is_quantized() => default,
            FileType::MXFP4_MOE => GgmlType::Q8_0,
            _ if OUTPUT_Q5_K.contains(&file_type) => GgmlType::Q5_K,
            _ if default == GgmlType::Q8_0 => default,
            _ => GgmlType::Q6_K,
        };
        let most = match file_type {
            FileType::MXFP4_MOE => "Q8_0".to_owned(),
            _ => default.to_string(),
        };
        table += &format!("| {file_type} | {most} | {output} | {} |\n", others(file_type).join("; "));
    }
    table
}

fn others(file_type: FileType) -> Vec<String> {
    if !file_type.is_quantized() {
        return Vec::new();
    }
    if file_type == FileType::MXFP4_MOE {
        return vec!["MXFP4: experts".into()];
    }
    let mut lines = Vec::new();
    if let Some((_, ty)) = TOKEN_EMBEDDING.iter().find(|(types, _)| types.contains(&file_type)) {
        lines.push(format!("{ty}: token_embd"));
    }
    let rules = if VERY_LOW.contains(&file_type) { VERY_LOW_RULES } else { RULES };
    // Rules for all file types (eight experts) stand in the text, once.
    let about =
        |types: &[FileType]| types.contains(&file_type) || (types.is_empty() && rules.len() < RULES.len());
    let rows: Vec<_> = rules.iter().filter(|r| about(r.file_types)).collect();
    for (i, rule) in rows.iter().enumerate() {
        let hides = |r: &Rule| r.part == rule.part && r.when.iter().all(|w| rule.when.contains(w));
        if rows[..i].iter().any(|r| hides(r)) {
            continue;
        }
        let when = if rule.when.is_empty() { String::new() } else { format!(" ({})", conditions(rule.when)) };
        lines.push(format!("{}: {}{when}", rule.to, rule.part));
    }
    lines
}

//! What a tensor's name says: the part of the network it belongs to, and whether it may be quantized.

/// The part of the network a tensor belongs to, as far as the mixes care.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Part {
    /// `output.weight`.
    Output,
    /// `token_embd.weight` or `per_layer_token_embd.weight`.
    TokenEmbedding,
    /// `attn_v`, `attn_qkv` or `attn_kv_b`: all follow the rules of the value projection.
    AttentionV,
    /// `attn_k`.
    AttentionK,
    /// `attn_q`.
    AttentionQ,
    /// `attn_output`.
    AttentionOutput,
    /// `ffn_up`, experts included.
    FfnUp,
    /// `ffn_gate`, experts included.
    FfnGate,
    /// `ffn_down`, experts included.
    FfnDown,
    /// Anything else.
    Other,
}

/// Substrings in the order in which llama.cpp looks for them.
const PARTS: &[(&str, Part)] = &[
    ("attn_qkv.weight", Part::AttentionV),
    ("attn_kv_b.weight", Part::AttentionV),
    ("attn_v.weight", Part::AttentionV),
    ("attn_k.weight", Part::AttentionK),
    ("attn_q.weight", Part::AttentionQ),
    ("attn_output.weight", Part::AttentionOutput),
    ("ffn_up", Part::FfnUp),
    ("ffn_gate", Part::FfnGate),
    ("ffn_down", Part::FfnDown),
];

/// Tensors that keep their type: small, sensitive, or not a matrix product.
const KEPT_PARTS: &[&str] = &[
    "_norm.weight",
    "ffn_gate_inp.weight",
    "ffn_gate_tid2eid.weight",
    "altup",
    "laurel",
    "per_layer_model_proj",
    "ssm_conv1d",
    "shortconv.conv.weight",
    "indexer.k_proj.weight",
    "indexer.q_proj.weight",
    "time_mix_first.weight",
    "time_mix_w0.weight",
    "time_mix_w1.weight",
    "time_mix_w2.weight",
    "time_mix_v0.weight",
    "time_mix_v1.weight",
    "time_mix_v2.weight",
    "time_mix_a0.weight",
    "time_mix_a1.weight",
    "time_mix_a2.weight",
    "time_mix_g1.weight",
    "time_mix_g2.weight",
    "time_mix_decay_w1.weight",
    "time_mix_decay_w2.weight",
    "time_mix_lerp_fused.weight",
    "attn_rel_b.weight",
    ".position_embd",
    "sam.pos_embd",
    "sam.neck.",
    "sam.net_",
    ".rel_pos",
    ".patch_embd",
    ".patch_merger",
    "a.rvq.codebook",
    "mm.a.code_embd",
];

/// Whole names that keep their type.
const KEPT_NAMES: &[&str] = &["position_embd.weight", "token_types.weight"];

/// Further parts that keep their type in one architecture.
const KEPT_BY_ARCHITECTURE: &[(&str, &[&str])] = &[(
    "glm5-next",
    &[
        "hc_",
        "indexer.attn_q_b",
        "indexer.attn_k",
        "indexer.proj",
        "indexer_compressor_gate",
        "indexer_compressor_ape",
        "ssm_f_a.weight",
        "ssm_f_b.weight",
        "ssm_g_a.weight",
        "ssm_g_b.weight",
        "ssm_beta.weight",
        "attn_kv_a_mqa.weight",
        "attn_k_b.weight",
        "attn_v_b.weight",
    ],
)];

/// The part of the network that `name` belongs to.
#[must_use]
pub fn part_of(name: &str) -> Part {
    match name {
        "output.weight" => Part::Output,
        "token_embd.weight" | "per_layer_token_embd.weight" => Part::TokenEmbedding,
        _ => PARTS.iter().find(|(s, _)| name.contains(s)).map_or(Part::Other, |&(_, p)| p),
    }
}

/// Why a tensor keeps its type whatever the mix, `None` where it may be quantized.
pub(super) fn kept_reason(name: &str, architecture: &str) -> Option<&'static str> {
    if !name.ends_with("weight") {
        return Some("not a weight");
    }
    let by_architecture =
        KEPT_BY_ARCHITECTURE.iter().filter(|(a, _)| *a == architecture).flat_map(|(_, p)| *p);
    KEPT_NAMES
        .iter()
        .find(|n| **n == name)
        .or_else(|| KEPT_PARTS.iter().chain(by_architecture).find(|p| name.contains(**p)))
        .copied()
}

/// The layer number in `blk.N.`, in the manner of C's `sscanf("blk.%d.")`: -1 where there is none.
pub(super) fn layer_of(name: &str) -> i64 {
    let Some(rest) = name.strip_prefix("blk.") else { return -1 };
    let rest = rest.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let Ok(n) = digits[..end].parse::<i64>() else { return -1 };
    if rest.starts_with('-') { -n } else { n }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_the_first_substring() {
        assert_eq!(part_of("blk.3.attn_qkv.weight"), Part::AttentionV);
        assert_eq!(part_of("blk.3.attn_qkv.bias"), Part::Other);
        assert_eq!(part_of("blk.3.ffn_down_exps.weight"), Part::FfnDown);
        assert_eq!(part_of("blk.0.ffn_gate_up_exps.weight"), Part::FfnGate);
        assert_eq!(part_of("v.blk.0.attn_q.weight"), Part::AttentionQ);
    }

    #[test]
    fn layers_parse_as_sscanf_does() {
        for (name, layer) in [
            ("blk.12.ffn_up.weight", 12),
            ("blk.12x", 12),
            ("output.weight", -1),
            ("blk.x", -1),
            ("blk.-2.", -2),
        ] {
            assert_eq!(layer_of(name), layer, "{name}");
        }
    }
}

//! The tables. They say what llama.cpp's converter does with the names and rows of each model.

use super::{Architecture, Row, Share, Slot, row};

/// Decoders with a gated feed-forward network and separate Q, K and V.
const DECODER: &[Row] = &[
    row("embed_tokens", "token_embd"),
    row("lm_head", "output"),
    row("norm", "output_norm"),
    row("layers.{b}.input_layernorm", "blk.{b}.attn_norm"),
    Row { hf: "layers.{b}.self_attn.q_proj", gguf: "blk.{b}.attn_q", slot: Slot::Q },
    Row { hf: "layers.{b}.self_attn.k_proj", gguf: "blk.{b}.attn_k", slot: Slot::K },
    row("layers.{b}.self_attn.v_proj", "blk.{b}.attn_v"),
    row("layers.{b}.self_attn.o_proj", "blk.{b}.attn_output"),
];

const GATED: &[Row] = &[
    row("layers.{b}.mlp.gate_proj", "blk.{b}.ffn_gate"),
    row("layers.{b}.mlp.up_proj", "blk.{b}.ffn_up"),
    row("layers.{b}.mlp.down_proj", "blk.{b}.ffn_down"),
];

/// The second norm of a block, where there are two.
const TWO_NORMS: &[Row] = &[row("layers.{b}.post_attention_layernorm", "blk.{b}.ffn_norm")];

/// The norms after the first, where there are four.
const FOUR_NORMS: &[Row] = &[
    row("layers.{b}.post_attention_layernorm", "blk.{b}.post_attention_norm"),
    row("layers.{b}.pre_feedforward_layernorm", "blk.{b}.ffn_norm"),
    row("layers.{b}.post_feedforward_layernorm", "blk.{b}.post_ffw_norm"),
];

const HEAD_NORMS: &[Row] = &[
    row("layers.{b}.self_attn.q_norm", "blk.{b}.attn_q_norm"),
    row("layers.{b}.self_attn.k_norm", "blk.{b}.attn_k_norm"),
];

const MIXTRAL: &[Row] = &[
    row("layers.{b}.block_sparse_moe.gate", "blk.{b}.ffn_gate_inp"),
    row("layers.{b}.block_sparse_moe.experts.{x}.w1", "blk.{b}.ffn_gate_exps"),
    row("layers.{b}.block_sparse_moe.experts.{x}.w2", "blk.{b}.ffn_down_exps"),
    row("layers.{b}.block_sparse_moe.experts.{x}.w3", "blk.{b}.ffn_up_exps"),
];

const QWEN_MOE: &[Row] = &[
    row("layers.{b}.mlp.gate", "blk.{b}.ffn_gate_inp"),
    row("layers.{b}.mlp.experts.{x}.gate_proj", "blk.{b}.ffn_gate_exps"),
    row("layers.{b}.mlp.experts.{x}.up_proj", "blk.{b}.ffn_up_exps"),
    row("layers.{b}.mlp.experts.{x}.down_proj", "blk.{b}.ffn_down_exps"),
];

const SHARED_EXPERT: &[Row] = &[
    row("layers.{b}.mlp.shared_expert_gate", "blk.{b}.ffn_gate_inp_shexp"),
    row("layers.{b}.mlp.shared_expert.gate_proj", "blk.{b}.ffn_gate_shexp"),
    row("layers.{b}.mlp.shared_expert.up_proj", "blk.{b}.ffn_up_shexp"),
    row("layers.{b}.mlp.shared_expert.down_proj", "blk.{b}.ffn_down_shexp"),
];

/// `ffn_up` holds gate and up, one above the other.
const PHI3: &[Row] = &[
    row("layers.{b}.self_attn.qkv_proj", "blk.{b}.attn_qkv"),
    row("layers.{b}.mlp.gate_up_proj", "blk.{b}.ffn_up"),
    Row { hf: "layers.{b}.mlp.gate_proj", gguf: "blk.{b}.ffn_up", slot: Slot::FirstHalf },
    Row { hf: "layers.{b}.mlp.up_proj", gguf: "blk.{b}.ffn_up", slot: Slot::SecondHalf },
    row("layers.{b}.mlp.down_proj", "blk.{b}.ffn_down"),
];

const BERT: &[Row] = &[
    row("embeddings.word_embeddings", "token_embd"),
    row("embeddings.position_embeddings", "position_embd"),
    row("embeddings.token_type_embeddings", "token_types"),
    row("embeddings.LayerNorm", "token_embd_norm"),
    row("encoder.layer.{b}.attention.self.query", "blk.{b}.attn_q"),
    row("encoder.layer.{b}.attention.self.key", "blk.{b}.attn_k"),
    row("encoder.layer.{b}.attention.self.value", "blk.{b}.attn_v"),
    row("encoder.layer.{b}.attention.output.dense", "blk.{b}.attn_output"),
    row("encoder.layer.{b}.attention.output.LayerNorm", "blk.{b}.attn_output_norm"),
    row("encoder.layer.{b}.intermediate.dense", "blk.{b}.ffn_up"),
    row("encoder.layer.{b}.output.dense", "blk.{b}.ffn_down"),
    row("encoder.layer.{b}.output.LayerNorm", "blk.{b}.layer_output_norm"),
];

/// Its matrices are saved transposed (`Conv1D`), which the converter undoes: an adapter's product has the shape of
/// the tensor as it is here.
const GPT2: &[Row] = &[
    row("wte", "token_embd"),
    row("wpe", "position_embd"),
    row("lm_head", "output"),
    row("ln_f", "output_norm"),
    row("h.{b}.ln_1", "blk.{b}.attn_norm"),
    row("h.{b}.attn.c_attn", "blk.{b}.attn_qkv"),
    row("h.{b}.attn.c_proj", "blk.{b}.attn_output"),
    row("h.{b}.ln_2", "blk.{b}.ffn_norm"),
    row("h.{b}.mlp.c_fc", "blk.{b}.ffn_up"),
    row("h.{b}.mlp.c_proj", "blk.{b}.ffn_down"),
];

/// The modules of a block stand in numbered layers, whose numbers say which they are.
const T5: &[Row] = &[
    row("shared", "token_embd"),
    row("lm_head", "output"),
    row("encoder.final_layer_norm", "enc.output_norm"),
    row("encoder.block.{b}.layer.0.layer_norm", "enc.blk.{b}.attn_norm"),
    row("encoder.block.{b}.layer.0.SelfAttention.q", "enc.blk.{b}.attn_q"),
    row("encoder.block.{b}.layer.0.SelfAttention.k", "enc.blk.{b}.attn_k"),
    row("encoder.block.{b}.layer.0.SelfAttention.v", "enc.blk.{b}.attn_v"),
    row("encoder.block.{b}.layer.0.SelfAttention.o", "enc.blk.{b}.attn_o"),
    row("encoder.block.{b}.layer.0.SelfAttention.relative_attention_bias", "enc.blk.{b}.attn_rel_b"),
    row("encoder.block.{b}.layer.1.layer_norm", "enc.blk.{b}.ffn_norm"),
    row("encoder.block.{b}.layer.1.DenseReluDense.wi", "enc.blk.{b}.ffn_up"),
    row("encoder.block.{b}.layer.1.DenseReluDense.wi_0", "enc.blk.{b}.ffn_gate"),
    row("encoder.block.{b}.layer.1.DenseReluDense.wi_1", "enc.blk.{b}.ffn_up"),
    row("encoder.block.{b}.layer.1.DenseReluDense.wo", "enc.blk.{b}.ffn_down"),
    row("decoder.final_layer_norm", "dec.output_norm"),
    row("decoder.block.{b}.layer.0.layer_norm", "dec.blk.{b}.attn_norm"),
    row("decoder.block.{b}.layer.0.SelfAttention.q", "dec.blk.{b}.attn_q"),
    row("decoder.block.{b}.layer.0.SelfAttention.k", "dec.blk.{b}.attn_k"),
    row("decoder.block.{b}.layer.0.SelfAttention.v", "dec.blk.{b}.attn_v"),
    row("decoder.block.{b}.layer.0.SelfAttention.o", "dec.blk.{b}.attn_o"),
    row("decoder.block.{b}.layer.0.SelfAttention.relative_attention_bias", "dec.blk.{b}.attn_rel_b"),
    row("decoder.block.{b}.layer.1.layer_norm", "dec.blk.{b}.cross_attn_norm"),
    row("decoder.block.{b}.layer.1.EncDecAttention.q", "dec.blk.{b}.cross_attn_q"),
    row("decoder.block.{b}.layer.1.EncDecAttention.k", "dec.blk.{b}.cross_attn_k"),
    row("decoder.block.{b}.layer.1.EncDecAttention.v", "dec.blk.{b}.cross_attn_v"),
    row("decoder.block.{b}.layer.1.EncDecAttention.o", "dec.blk.{b}.cross_attn_o"),
    row("decoder.block.{b}.layer.2.layer_norm", "dec.blk.{b}.ffn_norm"),
    row("decoder.block.{b}.layer.2.DenseReluDense.wi", "dec.blk.{b}.ffn_up"),
    row("decoder.block.{b}.layer.2.DenseReluDense.wi_0", "dec.blk.{b}.ffn_gate"),
    row("decoder.block.{b}.layer.2.DenseReluDense.wi_1", "dec.blk.{b}.ffn_up"),
    row("decoder.block.{b}.layer.2.DenseReluDense.wo", "dec.blk.{b}.ffn_down"),
];

/// Prefixes of language models, alone and inside a model that also sees.
const MODEL: &[&str] = &["model.language_model.", "language_model.model.", "language_model.", "model."];

const fn decoder(name: &'static str, rows: &'static [&'static [Row]]) -> Architecture {
    Architecture { name, prefixes: MODEL, rows, paired_heads: false, norm_plus: 0.0, tied_head: true }
}

pub(super) const ARCHITECTURES: &[Architecture] = &[
    // Llama, Mistral, Mixtral and whatever has their layout.
    Architecture { paired_heads: true, ..decoder("llama", &[DECODER, GATED, TWO_NORMS, MIXTRAL]) },
    Architecture { paired_heads: true, ..decoder("mistral3", &[DECODER, GATED, TWO_NORMS]) },
    decoder("qwen2", &[DECODER, GATED, TWO_NORMS]),
    decoder("qwen2moe", &[DECODER, TWO_NORMS, QWEN_MOE, SHARED_EXPERT]),
    decoder("qwen3", &[DECODER, GATED, TWO_NORMS, HEAD_NORMS]),
    decoder("qwen3moe", &[DECODER, TWO_NORMS, HEAD_NORMS, QWEN_MOE]),
    Architecture { norm_plus: 1.0, ..decoder("gemma", &[DECODER, GATED, TWO_NORMS]) },
    Architecture { norm_plus: 1.0, ..decoder("gemma2", &[DECODER, GATED, FOUR_NORMS]) },
    Architecture { norm_plus: 1.0, ..decoder("gemma3", &[DECODER, GATED, FOUR_NORMS, HEAD_NORMS]) },
    decoder("phi3", &[DECODER, PHI3, TWO_NORMS]),
    Architecture { prefixes: &["bert."], tied_head: false, ..decoder("bert", &[BERT]) },
    Architecture { prefixes: &["transformer."], ..decoder("gpt2", &[GPT2]) },
    Architecture { prefixes: &[], ..decoder("t5", &[T5]) },
];

/// Parts, the tensors in which converters fuse them, and where in these they are.
pub(super) const FUSED: &[(&str, &str, Share)] = &[
    ("attn_q", "attn_qkv", Share::Q),
    ("attn_k", "attn_qkv", Share::K),
    ("attn_v", "attn_qkv", Share::V),
    ("ffn_gate_exps", "ffn_gate_up_exps", Share::FirstHalf),
    ("ffn_up_exps", "ffn_gate_up_exps", Share::SecondHalf),
];

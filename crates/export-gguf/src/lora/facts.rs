//! What the base says of its attention heads.

use gguf_format::{Gguf, Value};

/// The metadata of the base, under the keys of its architecture.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    gguf: &'a Gguf<'a>,
    pub(super) architecture: Option<&'a str>,
}

/// Sizes of a block's attention, in rows of its matrices.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heads {
    pub(super) q: u64,
    pub(super) kv: u64,
    /// Rows per head of Q and K.
    key: Option<u64>,
    /// Rows per head of V.
    value: Option<u64>,
}

impl<'a> Facts<'a> {
    pub(super) fn new(gguf: &'a Gguf<'a>) -> Self {
        Self { gguf, architecture: gguf.get("general.architecture").and_then(|v| v.as_str()) }
    }

    fn number(&self, key: &str, block: u32) -> Option<u64> {
        match self.gguf.get(&format!("{}.{key}", self.architecture?))? {
            Value::Array(array) => array.get(usize::try_from(block).ok()?)?.as_u64(),
            value => value.as_u64(),
        }
    }

    /// The heads of a block; `None` when the metadata does not say how many.
    pub(super) fn heads(&self, block: u32) -> Option<Heads> {
        let q = self.number("attention.head_count", block).filter(|&n| n > 0)?;
        let kv = self.number("attention.head_count_kv", block).filter(|&n| n > 0).unwrap_or(q);
        let even = self.number("embedding_length", block).filter(|n| n.is_multiple_of(q)).map(|n| n / q);
        let key = self.number("attention.key_length", block).or(even);
        let value = self.number("attention.value_length", block).or(even);
        Some(Heads { q, kv, key, value })
    }
}

impl Heads {
    /// The rows of Q, K and V, one behind the other.
    pub(super) fn rows(self) -> Option<[u64; 3]> {
        let (key, value) = (self.key?, self.value?);
        Some([self.q.checked_mul(key)?, self.kv.checked_mul(key)?, self.kv.checked_mul(value)?])
    }
}

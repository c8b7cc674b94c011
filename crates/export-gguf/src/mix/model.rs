//! The hyper-parameters that the rules ask for, read from a file's metadata.

use gguf_format::{Gguf, Value};

use super::policy::HyperParameters;

impl HyperParameters {
    /// Reads them from a model's keys, with llama.cpp's defaults for what is absent: no experts, and as
    /// many key-value heads as heads. Where a key holds one number per layer, layer 0 counts.
    ///
    /// `None` without `general.architecture`, which names the other keys.
    #[must_use]
    pub fn from_metadata(gguf: &Gguf<'_>) -> Option<Self> {
        let architecture = gguf.get("general.architecture")?.as_str()?.to_owned();
        let number = |key: &str| first(gguf.get(&format!("{architecture}.{key}"))?);
        let heads = number("attention.head_count").unwrap_or(0);
        Some(Self {
            layers: number("block_count").unwrap_or(0),
            experts: number("expert_count").unwrap_or(0),
            heads,
            heads_kv: number("attention.head_count_kv").unwrap_or(heads),
            architecture,
        })
    }
}

/// The number itself, or the first of an array of numbers.
fn first(value: Value<'_>) -> Option<u32> {
    let value = match value {
        Value::Array(array) => array.get(0)?,
        value => value,
    };
    u32::try_from(value.as_u64()?).ok()
}

#[cfg(test)]
mod tests {
    use gguf_format::Builder;

    use super::*;

    fn read(build: impl FnOnce(&mut Builder)) -> Option<HyperParameters> {
        let mut b = Builder::new();
        build(&mut b);
        let bytes = b.layout().unwrap().whole(&[]).unwrap();
        HyperParameters::from_metadata(&Gguf::parse(&bytes).unwrap())
    }

    #[test]
    fn keys_are_those_of_the_architecture() {
        let got = read(|b| {
            b.set("general.architecture", "qwen2moe");
            b.set("qwen2moe.block_count", 28u32);
            b.set("qwen2moe.expert_count", 60u32);
            b.set("qwen2moe.attention.head_count", [16u32, 8].as_slice());
            b.set("llama.block_count", 99u32);
        });
        let expect = HyperParameters {
            architecture: "qwen2moe".into(),
            layers: 28,
            experts: 60,
            heads: 16,
            heads_kv: 16,
        };
        assert_eq!(got, Some(expect));
        assert_eq!(read(|_| {}), None);
    }
}

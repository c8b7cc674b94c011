//! `adapter_config.json`: what changes the meaning of the tensors is understood or refused by name.

use std::fmt;
use std::fs;
use std::path::Path;

use fancy_regex::Regex;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;

use crate::Error;
use crate::lora::problems::Problems;

/// The keys that matter. PEFT writes many more, which change how an adapter is trained.
#[derive(Debug, Deserialize)]
pub(super) struct Config {
    peft_type: Option<String>,
    r: Option<u64>,
    lora_alpha: Option<f64>,
    bias: Option<String>,
    #[serde(default)]
    pub(super) use_rslora: Flag,
    #[serde(default)]
    pub(super) use_dora: Flag,
    #[serde(default)]
    pub(super) lora_bias: Flag,
    #[serde(default)]
    rank_pattern: Pattern,
    #[serde(default)]
    alpha_pattern: Pattern,
    pub(super) modules_to_save: Option<Vec<String>>,
    #[serde(default)]
    init_lora_weights: Value,
    #[serde(default)]
    use_qalora: Value,
    #[serde(default)]
    alora_invocation_tokens: Value,
    #[serde(default)]
    layer_replication: Value,
    #[serde(default)]
    target_parameters: Value,
    #[serde(default)]
    trainable_token_indices: Value,
    #[serde(default)]
    arrow_config: Value,
}

/// `true`, `false` or `null`.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(transparent)]
pub(super) struct Flag(Option<bool>);

impl Flag {
    pub(super) fn is_set(self) -> bool {
        self.0 == Some(true)
    }
}

/// Module names, as regular expressions, with a number each; the first that fits counts, so their order is
/// kept.
#[derive(Debug, Default)]
struct Pattern(Vec<(String, f64)>);

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Pattern;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of numbers")
            }

            fn visit_unit<E>(self) -> Result<Pattern, E> {
                Ok(Pattern::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pattern, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pattern(pairs))
            }
        }
        deserializer.deserialize_any(Pairs)
    }
}

/// Keys that are fine while they are absent, `null`, `false` or empty, and why they cannot be merged else.
type Refused<'a> = (&'static str, &'a Value, &'static str);

/// Ways of initialising that leave the base as it is. The others subtract the initial product from it, so that
/// the adapter belongs to a base that is not this one.
const HARMLESS_INIT: [&str; 3] = ["gaussian", "eva", "orthogonal"];

impl Config {
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let text = fs::read(path).map_err(Error::io("read", path))?;
        serde_json::from_slice(&text).map_err(Error::file(path))
    }

    /// Names everything that cannot be merged.
    pub(super) fn check(&self, path: &Path, problems: &mut Problems) {
        if self.peft_type.as_deref() != Some("LORA") {
            let found = self.peft_type.as_deref().unwrap_or("missing").escape_debug().to_string();
            problems.add(path, "peft_type", format_args!("{found}: only LORA can be merged"));
        }
        if self.lora_alpha.is_none() {
            problems.add(path, "lora_alpha", "missing, and no scale is assumed");
        }
        if !matches!(self.bias.as_deref(), None | Some("none" | "all" | "lora_only")) {
            let found = self.bias.as_deref().unwrap_or_default().escape_debug().to_string();
            problems.add(path, "bias", format_args!("{found}: only none, all and lora_only are known"));
        }
        if self.use_dora.is_set() && self.lora_bias.is_set() {
            problems.add(path, "lora_bias", "a bias of lora_B beside use_dora has no defined meaning");
        }
        match &self.init_lora_weights {
            Value::Null | Value::Bool(_) => {}
            Value::String(way) if HARMLESS_INIT.contains(&way.as_str()) => {}
            other => problems.add(
                path,
                "init_lora_weights",
                format_args!(
                    "{}: this way of initialising changes the base, and the adapter belongs to the changed \
                     one; save it converted (path_initial_model_for_weight_conversion)",
                    other.to_string().escape_debug()
                ),
            ),
        }
        let refused: [Refused<'_>; 6] = [
            ("use_qalora", &self.use_qalora, "QALoRA pools the inputs, which a merged matrix cannot do"),
            (
                "alora_invocation_tokens",
                &self.alora_invocation_tokens,
                "an activated LoRA works only after certain tokens, which a merged model cannot do",
            ),
            ("layer_replication", &self.layer_replication, "the model has other layers than the base"),
            ("target_parameters", &self.target_parameters, "adapters of whole parameters are not supported"),
            (
                "trainable_token_indices",
                &self.trainable_token_indices,
                "tokens trained beside the adapter are not supported",
            ),
            ("arrow_config", &self.arrow_config, "routing between adapters is not supported"),
        ];
        for (key, value, why) in refused {
            let unset = match value {
                Value::Null | Value::Bool(false) => true,
                Value::Array(list) => list.is_empty(),
                Value::Object(map) => map.is_empty(),
                _ => false,
            };
            if !unset {
                problems.add(path, key, why);
            }
        }
    }

    /// The rank and alpha of a module.
    pub(super) fn of(&self, module: &str) -> Result<(Option<u64>, f64), String> {
        let rank = match self.rank_pattern.of(module)? {
            Some(r) if r >= 1.0 && r.fract() == 0.0 && r < 1e9 => Some(r as u64),
            Some(r) => return Err(format!("{r} in rank_pattern is no rank")),
            None => self.r,
        };
        let alpha = self.alpha_pattern.of(module)?.or(self.lora_alpha).unwrap_or(1.0);
        Ok((rank, alpha))
    }
}

impl Pattern {
    /// The number of the first pattern that a module's name ends with, at a dot.
    fn of(&self, module: &str) -> Result<Option<f64>, String> {
        for (pattern, number) in &self.0 {
            let matches = if pattern.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.".contains(&b)) {
                ends_with(module, pattern)
            } else {
                let shown = pattern.escape_debug();
                let regex = Regex::new(&format!(r"^(?:.*\.)?(?:{pattern})$"));
                let regex = regex.map_err(|_| format!("the pattern {shown} is no regular expression"))?;
                regex.is_match(module).map_err(|_| format!("the pattern {shown} is too complicated"))?
            };
            if matches {
                return Ok(Some(*number));
            }
        }
        Ok(None)
    }
}

/// The same for a pattern in which only the dot, for any character, is special. Adapters may have one for each
/// module, too many to compile each for each.
fn ends_with(module: &str, pattern: &str) -> bool {
    let Some(start) = module.len().checked_sub(pattern.len()) else { return false };
    let (before, end) = module.as_bytes().split_at(start);
    let same = |(m, p): (&u8, &u8)| m == p || *p == b'.';
    before.last().is_none_or(|&b| b == b'.') && end.iter().zip(pattern.as_bytes()).all(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn patterns_match_ends_of_names_in_their_order() {
        let c = config(
            r#"{"r": 2, "lora_alpha": 4, "rank_pattern": {"v_proj": 8, "layers.0.*": 16, "^model": 3},
                "alpha_pattern": {"layers.1.self_attn.v_proj": 1.5}}"#,
        );
        assert_eq!(c.of("model.layers.0.self_attn.v_proj").unwrap(), (Some(8), 4.0));
        assert_eq!(c.of("model.layers.0.self_attn.q_proj").unwrap(), (Some(16), 4.0));
        assert_eq!(c.of("model.layers.1.self_attn.v_proj").unwrap(), (Some(8), 1.5));
        // Not at a dot: `xv_proj` ends with the letters of the pattern.
        assert_eq!(c.of("model.layers.1.self_attn.xv_proj").unwrap(), (Some(2), 4.0));
        assert!(config(r#"{"rank_pattern": {"(": 8}}"#).of("x").unwrap_err().contains("regular"));
        assert!(config(r#"{"rank_pattern": {"x": 0.5}}"#).of("x").unwrap_err().contains("no rank"));
    }

    #[test]
    fn plain_patterns_are_compared_as_their_expressions_match() {
        let modules = ["a.b_proj", "b_proj", "x.a.b_proj", "xa.b_proj", "axb_proj", "", "a.b_projx"];
        for pattern in ["a.b_proj", "b_proj", ".", "a..*", "b", ""] {
            let regex = Regex::new(&format!(r"^(?:.*\.)?(?:{pattern})$")).unwrap();
            for module in modules {
                let got = Pattern(vec![(pattern.to_owned(), 1.0)]).of(module).unwrap().is_some();
                assert_eq!(got, regex.is_match(module).unwrap(), "{pattern:?} on {module:?}");
            }
        }
    }

    #[test]
    fn null_is_as_good_as_absent() {
        let c = config(r#"{"rank_pattern": null, "use_rslora": null, "modules_to_save": null}"#);
        assert!(!c.use_rslora.is_set() && c.modules_to_save.is_none());
        assert_eq!(c.of("x").unwrap(), (None, 1.0));
        assert!(serde_json::from_str::<Config>(r#"{"r": 1, "r": 2}"#).is_err(), "a key twice");
    }
}

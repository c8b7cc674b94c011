//! Which tensor of a GGUF holds which module of the Hugging Face model: one table per architecture.

mod tables;

use std::fmt::Write;

use tables::{ARCHITECTURES, FUSED};

/// What converters do to the tensors of an architecture, as far as adapters must follow.
#[derive(Debug)]
pub(super) struct Architecture {
    /// The value of `general.architecture`.
    pub(super) name: &'static str,
    /// What may stand before the names, longest first.
    prefixes: &'static [&'static str],
    /// The table, in pieces that architectures share.
    rows: &'static [&'static [Row]],
    /// Rows of Q and K are reordered so that each pair that is rotated stands together.
    pub(super) paired_heads: bool,
    /// What is added to the weights of norms.
    pub(super) norm_plus: f32,
    /// Whether a base without `output.weight` uses `token_embd.weight` in its place.
    pub(super) tied_head: bool,
}

/// One line: `{b}` stands for the number of a block, `{x}` for that of an expert.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// The module.
    hf: &'static str,
    /// The tensor, without `.weight` or `.bias`.
    gguf: &'static str,
    /// Which of its rows.
    slot: Slot,
}

const fn row(hf: &'static str, gguf: &'static str) -> Row {
    Row { hf, gguf, slot: Slot::Whole }
}

/// Which rows of a tensor hold a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// All of them.
    Whole,
    /// All of them, which are those of the query heads.
    Q,
    /// All of them, which are those of the key heads.
    K,
    /// All rows of one of the stacked matrices.
    Expert(u64),
    /// The first half of them.
    FirstHalf,
    /// The second half of them.
    SecondHalf,
}

/// Where a module is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// The tensor, without `.weight` or `.bias`.
    pub(super) tensor: String,
    pub(super) slot: Slot,
    /// The number of its block.
    pub(super) block: Option<u32>,
}

/// The table of an architecture.
pub(super) fn architecture(name: &str) -> Option<&'static Architecture> {
    ARCHITECTURES.iter().find(|a| a.name == name)
}

/// The values of `general.architecture` that have a table.
pub fn architectures() -> impl Iterator<Item = &'static str> {
    ARCHITECTURES.iter().map(|a| a.name)
}

impl Architecture {
    /// Where a module of this architecture is, `None` for an unknown one.
    pub(super) fn find(&self, module: &str) -> Option<Found> {
        let plain = self.prefixes.iter().find_map(|p| module.strip_prefix(p)).unwrap_or(module);
        self.rows.iter().copied().flatten().find_map(|row| row.find(plain))
    }
}

impl Row {
    fn find(&self, module: &str) -> Option<Found> {
        let (mut block, mut expert) = (None, None);
        let mut given = module.split('.');
        for want in self.hf.split('.') {
            let segment = given.next()?;
            match want {
                "{b}" => block = Some(number(segment)?),
                "{x}" => expert = Some(number(segment)?),
                _ if want == segment => {}
                _ => return None,
            }
        }
        if given.next().is_some() {
            return None;
        }
        let tensor = block.map_or_else(|| self.gguf.to_owned(), |b| self.gguf.replace("{b}", &b.to_string()));
        let slot = expert.map_or(self.slot, |x| Slot::Expert(x.into()));
        Some(Found { tensor, slot, block })
    }
}

/// A number as it is written in names: no sign, no leading zeros.
fn number(segment: &str) -> Option<u32> {
    segment.parse().ok().filter(|n: &u32| n.to_string() == segment)
}

/// Which rows of a fused tensor hold one of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    Q,
    K,
    V,
    FirstHalf,
    SecondHalf,
}

/// The fused tensor that may stand in place of `tensor` (with `.weight` or `.bias`), and the part's share of it.
pub(super) fn fused(tensor: &str) -> Option<(String, Share)> {
    let (stem, parameter) = tensor.rsplit_once('.')?;
    let (block, part) = stem.rsplit_once('.')?;
    let (_, whole, share) = FUSED.iter().find(|(p, ..)| *p == part)?;
    Some((format!("{block}.{whole}.{parameter}"), *share))
}

/// The tables in Markdown, for the documentation.
#[must_use]
pub fn markdown_tables() -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    for a in ARCHITECTURES {
        let _ = write!(text, "### {}\n\n", a.name);
        let prefixes: Vec<String> = a.prefixes.iter().map(|p| format!("`{p}`")).collect();
        match prefixes.as_slice() {
            [] => text.push_str("The names stand alone."),
            some => {
                let _ = write!(text, "Before the names may stand {}.", some.join(", "));
            }
        }
        if a.paired_heads {
            let _ = write!(text, " Rows of Q and K are reordered.");
        }
        if a.norm_plus != 0.0 {
            let _ = write!(text, " Norms are stored with {} added.", a.norm_plus);
        }
        let _ = write!(text, "\n\n| Hugging Face | GGUF |\n| --- | --- |\n");
        for row in a.rows.iter().copied().flatten() {
            let note = match row.slot {
                Slot::FirstHalf => ", first half of the rows",
                Slot::SecondHalf => ", second half of the rows",
                _ if row.hf.contains("{x}") => ", matrix `{x}`",
                _ => "",
            };
            let _ = writeln!(text, "| `{}` | `{}`{note} |", row.hf, row.gguf);
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(architecture_: &str, module: &str) -> Option<(String, Slot)> {
        architecture(architecture_).unwrap().find(module).map(|f| (f.tensor, f.slot))
    }

    #[test]
    fn names_are_matched_whole() {
        let q = Some(("blk.12.attn_q".to_owned(), Slot::Q));
        assert_eq!(find("llama", "model.layers.12.self_attn.q_proj"), q);
        assert_eq!(find("llama", "layers.12.self_attn.q_proj"), q);
        assert_eq!(find("gemma3", "model.language_model.layers.12.self_attn.q_proj"), q);
        for bad in [
            "layers.012.self_attn.q_proj",
            "layers.-1.self_attn.q_proj",
            "layers.1.self_attn",
            "layers.1.self_attn.q_proj.x",
        ] {
            assert_eq!(find("llama", bad), None, "{bad}");
        }
    }

    #[test]
    fn experts_are_slots() {
        let got = find("qwen3moe", "model.layers.3.mlp.experts.7.down_proj");
        assert_eq!(got, Some(("blk.3.ffn_down_exps".to_owned(), Slot::Expert(7))));
        let got = find("llama", "model.layers.3.block_sparse_moe.experts.1.w3");
        assert_eq!(got, Some(("blk.3.ffn_up_exps".to_owned(), Slot::Expert(1))));
    }

    #[test]
    fn parts_know_their_fused_tensor() {
        assert_eq!(fused("blk.0.attn_k.bias"), Some(("blk.0.attn_qkv.bias".to_owned(), Share::K)));
        assert_eq!(fused("blk.0.ffn_down.weight"), None);
        assert_eq!(fused("output.weight"), None);
    }

    #[test]
    fn no_table_names_a_module_twice() {
        for a in ARCHITECTURES {
            let mut names: Vec<&str> = a.rows.iter().copied().flatten().map(|r| r.hf).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all, "{}", a.name);
        }
    }
}

//! PEFT folders: `adapter_config.json` and `adapter_model.safetensors`, names as in the Hugging Face model.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::config::Config;
use super::matrix::Found;
use super::{Adapter, Change, Kind, LowRank, Matrix, Part, Piece, Target};
use crate::Error;
use crate::lora::problems::Problems;

/// What stands before the model's own names.
const PREFIX: &str = "base_model.model.";

/// What a tensor is to its module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    A,
    B,
    EmbeddingA,
    EmbeddingB,
    Magnitude,
    BiasOfB,
    Saved(Part),
}

impl Role {
    /// The role's word in names.
    fn word(self) -> &'static str {
        match self {
            Self::A => "lora_A",
            Self::B => "lora_B",
            Self::EmbeddingA => "lora_embedding_A",
            Self::EmbeddingB => "lora_embedding_B",
            Self::Magnitude => "lora_magnitude_vector",
            Self::BiasOfB => "lora_B.bias",
            Self::Saved(part) => part.name(),
        }
    }
}

type Module = BTreeMap<Role, Matrix>;

pub(super) fn open(
    path: &Path,
    file: PathBuf,
    config_path: &Path,
    tensors: Vec<Found>,
    problems: &mut Problems,
) -> Result<Adapter, Error> {
    let config = Config::read(config_path)?;
    config.check(path, problems);
    if tensors.iter().any(|t| t.more) {
        problems.whole(path, format_args!("{} goes on after its tensors", file.display()));
    }
    let mut modules: BTreeMap<String, Module> = BTreeMap::new();
    for found in tensors {
        match (role(&found.name), found.matrix) {
            (None, _) => problems.add(path, &found.name, "no tensor of a LoRA, and no weight or bias"),
            (_, Err(e)) => problems.add(path, &found.name, e),
            (Some((module, role)), Ok(matrix)) => {
                if let Some(other) = modules.entry(module).or_default().insert(role, matrix) {
                    problems.add(
                        path,
                        &found.name,
                        format_args!("a second {}: {} is one too", role.word(), other.name()),
                    );
                }
            }
        }
    }
    for saved in config.modules_to_save.iter().flatten() {
        let is_it = |name: &String| name == saved || name.ends_with(&format!(".{saved}"));
        let has = |m: &Module| m.keys().any(|r| matches!(r, Role::Saved(_)));
        if !modules.iter().any(|(name, m)| is_it(name) && has(m)) {
            problems.add(
                path,
                "modules_to_save",
                format_args!("no tensor of {} is here", saved.escape_debug()),
            );
        }
    }
    let mut pieces = Vec::new();
    for (name, module) in modules {
        pieces_of(path, &name, module, &config, problems, &mut pieces);
    }
    Ok(Adapter {
        path: path.to_path_buf(),
        files: vec![file, config_path.to_path_buf()],
        kind: Kind::Peft,
        scale: 1.0,
        architecture: None,
        pieces,
    })
}

/// The module that a tensor is for, and what it is there.
fn role(name: &str) -> Option<(String, Role)> {
    let name = name.strip_prefix(PREFIX).unwrap_or(name);
    let segments: Vec<&str> = name.split('.').collect();
    let words = [
        "lora_A",
        "lora_B",
        "lora_embedding_A",
        "lora_embedding_B",
        "lora_magnitude_vector",
        "modules_to_save",
    ];
    let Some(at) = segments.iter().position(|s| words.contains(s)) else {
        let (module, parameter) = name.rsplit_once('.')?;
        let module = module.strip_suffix(".base_layer").unwrap_or(module);
        return Some((module.to_owned(), Role::Saved(part(parameter)?)));
    };
    let module = segments[..at].join(".");
    // The adapter's own name, such as `default`, may stand in between.
    let rest = match segments[at + 1..] {
        [] | [_] => segments.get(at + 1).copied(),
        [_, last] => Some(last),
        _ => return None,
    };
    let role = match (segments[at], rest) {
        ("lora_A", Some("weight")) => Role::A,
        ("lora_B", Some("weight")) => Role::B,
        ("lora_B", Some("bias")) => Role::BiasOfB,
        ("lora_embedding_A", _) => Role::EmbeddingA,
        ("lora_embedding_B", _) => Role::EmbeddingB,
        ("lora_magnitude_vector", _) => Role::Magnitude,
        ("modules_to_save", Some(parameter)) => Role::Saved(part(parameter)?),
        _ => return None,
    };
    (!module.is_empty()).then_some((module, role))
}

fn part(parameter: &str) -> Option<Part> {
    [Part::Weight, Part::Bias].into_iter().find(|p| p.name() == parameter)
}

/// What the tensors of one module change.
fn pieces_of(
    path: &Path,
    name: &str,
    mut module: Module,
    config: &Config,
    problems: &mut Problems,
    pieces: &mut Vec<Piece>,
) {
    let (promised, alpha) = match config.of(name) {
        Ok(found) => found,
        Err(e) => return problems.add(path, name, e),
    };
    let target = |part| Target::Module(name.to_owned(), part);
    for part in [Part::Weight, Part::Bias] {
        if let Some(matrix) = module.remove(&Role::Saved(part)) {
            pieces.push(Piece { target: target(part), change: Change::Replace(matrix) });
        }
    }
    let magnitude = module.remove(&Role::Magnitude);
    let bias = module.remove(&Role::BiasOfB);
    let mut lone = |m: &Matrix, lacks: Role| {
        problems.add(path, m.name(), format_args!("its {} is missing", lacks.word()));
    };
    let plain = match (module.remove(&Role::A), module.remove(&Role::B)) {
        (Some(a), Some(b)) => Some((a, b)),
        (None, None) => None,
        (Some(a), None) => return lone(&a, Role::B),
        (None, Some(b)) => return lone(&b, Role::A),
    };
    let embedding = match (module.remove(&Role::EmbeddingA), module.remove(&Role::EmbeddingB)) {
        (Some(a), Some(b)) => Some((a, b)),
        (None, None) => None,
        (Some(a), None) => return lone(&a, Role::EmbeddingB),
        (None, Some(b)) => return lone(&b, Role::EmbeddingA),
    };
    let mut low = match (plain, embedding) {
        (Some((a, b)), None) => LowRank::new(b, a, alpha),
        // The product of an embedding is transposed: tokens are rows, and A has a column for each.
        (None, Some((a, b))) => {
            if magnitude.is_some() {
                return problems.add(
                    path,
                    name,
                    "DoRA of an embedding (lora_magnitude_vector) is not supported",
                );
            }
            LowRank::new(a.transposed(), b.transposed(), alpha)
        }
        (Some((a, _)), Some(_)) => {
            return problems.add(path, a.name(), "beside lora_embedding_A of the same module");
        }
        (None, None) => {
            for alone in magnitude.iter().chain(&bias) {
                lone(alone, Role::A);
            }
            return;
        }
    };
    match (&magnitude, config.use_dora.is_set()) {
        (Some(m), false) => problems.add(path, m.name(), "DoRA's magnitude, but use_dora is not set"),
        (None, true) => problems.add(path, name, "use_dora is set, but lora_magnitude_vector is missing"),
        _ => {}
    }
    match (&bias, config.lora_bias.is_set()) {
        (Some(b), false) => problems.add(path, b.name(), "a bias of lora_B, but lora_bias is not set"),
        (None, true) => problems.add(path, name, "lora_bias is set, but lora_B.bias is missing"),
        _ => {}
    }
    (low.root, low.promised, low.magnitude) = (config.use_rslora.is_set(), promised, magnitude);
    let rank = low.right.sides().map_or(1, |(rank, _)| rank.max(1));
    if let Some(vector) = bias {
        // The bias of lora_B is scaled as its product is.
        let factor = low.factor(rank);
        pieces.push(Piece { target: target(Part::Bias), change: Change::Add { vector, factor } });
    }
    pieces.push(Piece { target: target(Part::Weight), change: Change::LowRank(low) });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_module_and_role() {
        let module = "model.layers.0.self_attn.v_proj";
        for (tail, role_) in [
            ("lora_A.weight", Role::A),
            ("lora_A.default.weight", Role::A),
            ("lora_B.weight", Role::B),
            ("lora_B.bias", Role::BiasOfB),
            ("lora_embedding_A", Role::EmbeddingA),
            ("lora_embedding_B.default", Role::EmbeddingB),
            ("lora_magnitude_vector", Role::Magnitude),
            ("lora_magnitude_vector.default.weight", Role::Magnitude),
            ("modules_to_save.default.weight", Role::Saved(Part::Weight)),
            ("base_layer.weight", Role::Saved(Part::Weight)),
            ("bias", Role::Saved(Part::Bias)),
        ] {
            for prefix in ["", PREFIX] {
                let got = role(&format!("{prefix}{module}.{tail}"));
                assert_eq!(got, Some((module.to_owned(), role_)), "{tail}");
            }
        }
        for none in
            ["lora_A.weight", "x.lora_A.a.b.weight", "x.lora_A.scale", "x.trainable_tokens_delta", "weight"]
        {
            assert_eq!(role(none), None, "{none}");
        }
    }
}

//! Safetensors files with names like `layers.0.q.lora_a`, as trainers over a GGUF write them. Rows are in
//! the order of the GGUF, and nothing says what alpha is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::matrix::Found;
use super::{Adapter, Change, Kind, LowRank, Matrix, Piece, Target};
use crate::Error;
use crate::lora::problems::Problems;

/// The projections, and the tensors that hold them.
pub(in super::super) const PROJECTIONS: [(&str, &str); 7] = [
    ("q", "attn_q"),
    ("k", "attn_k"),
    ("v", "attn_v"),
    ("o", "attn_output"),
    ("gate", "ffn_gate"),
    ("up", "ffn_up"),
    ("down", "ffn_down"),
];

/// Which half of a pair.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Half {
    A,
    B,
}

/// Whether the names are those of this kind rather than PEFT's.
pub(super) fn is_plain(tensors: &[Found]) -> bool {
    tensors.iter().any(|t| t.name.ends_with(".lora_a") || t.name.ends_with(".lora_b"))
}

pub(super) fn open(
    path: &Path,
    file: PathBuf,
    tensors: Vec<Found>,
    alpha: Option<f64>,
    problems: &mut Problems,
) -> Result<Adapter, Error> {
    let Some(alpha) = alpha else {
        return Err(Error::Refused(format!(
            "{}: the file does not say alpha, and no scale is assumed; give the one it was trained with (--alpha)",
            path.display()
        )));
    };
    let mut pairs: BTreeMap<String, (Option<Matrix>, Option<Matrix>)> = BTreeMap::new();
    for found in tensors {
        let name = found.name;
        match (target(&name), found.matrix) {
            (None, _) => problems.add(path, &name, unknown(&name)),
            (_, Err(e)) => problems.add(path, &name, e),
            (Some((target, half)), Ok(matrix)) => {
                let pair = pairs.entry(target).or_default();
                // Names are unique in a file, so are halves.
                *if half == Half::A { &mut pair.0 } else { &mut pair.1 } = Some(matrix);
            }
        }
    }
    let mut pieces = Vec::new();
    for (target, pair) in pairs {
        match pair {
            (Some(a), Some(b)) => pieces.push(Piece {
                target: Target::Tensor(target),
                change: Change::LowRank(LowRank::new(b, a, alpha)),
            }),
            (Some(a), None) => problems.add(path, a.name(), "its lora_b is missing"),
            (None, Some(b)) => problems.add(path, b.name(), "its lora_a is missing"),
            (None, None) => {}
        }
    }
    let path = path.to_path_buf();
    Ok(Adapter { path, files: vec![file], kind: Kind::Plain, scale: 1.0, architecture: None, pieces })
}

/// `blk.0.attn_q.weight` and which half, for `layers.0.q.lora_a`.
fn target(name: &str) -> Option<(String, Half)> {
    let (layer, rest) = name.strip_prefix("layers.")?.split_once('.')?;
    let (projection, half) = rest.split_once('.')?;
    let layer: u32 = layer.parse().ok().filter(|n: &u32| n.to_string() == layer)?;
    let (_, tensor) = PROJECTIONS.iter().find(|(p, _)| *p == projection)?;
    let half = match half {
        "lora_a" => Half::A,
        "lora_b" => Half::B,
        _ => return None,
    };
    Some((format!("blk.{layer}.{tensor}.weight"), half))
}

fn unknown(name: &str) -> &'static str {
    if name.contains("self_attn.") || name.contains("mlp.") {
        "no name of this kind of adapter; MLX names its tensors so, and saves them transposed: convert the \
         adapter to PEFT first"
    } else {
        "no name of this kind of adapter, which are layers.N.(q|k|v|o|gate|up|down).lora_(a|b)"
    }
}

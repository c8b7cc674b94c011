//! Adapters, whatever they were saved as.

mod config;
mod gguf;
mod matrix;
mod peft;
mod plain;

use std::fmt;
use std::path::{Path, PathBuf};

use super::problems::Problems;
use crate::Error;

pub use matrix::Matrix;

/// What an adapter was saved as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A folder of Hugging Face PEFT: `adapter_config.json` and `adapter_model.safetensors`.
    Peft,
    /// A GGUF file with `general.type = adapter`.
    Gguf,
    /// A safetensors file with names like `layers.0.q.lora_a`, which says nothing of alpha.
    Plain,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Peft => "PEFT",
            Self::Gguf => "GGUF",
            Self::Plain => "plain safetensors",
        })
    }
}

/// One adapter: what it changes and how much.
#[derive(Debug)]
pub struct Adapter {
    pub(super) path: PathBuf,
    pub(super) files: Vec<PathBuf>,
    pub(super) kind: Kind,
    /// The caller's factor.
    pub(super) scale: f64,
    /// The architecture of its base, where it says so.
    pub(super) architecture: Option<String>,
    pub(super) pieces: Vec<Piece>,
}

/// One change that an adapter makes.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) target: Target,
    pub(super) change: Change,
}

/// Which tensor a piece is for, in the words of whoever named it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    /// A module of the Hugging Face model, such as `model.layers.0.self_attn.q_proj`.
    Module(String, Part),
    /// A tensor of the GGUF.
    Tensor(String),
}

/// Which parameter of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Weight,
    Bias,
}

impl Part {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Weight => "weight",
            Self::Bias => "bias",
        }
    }
}

/// What happens to the tensor.
#[derive(Debug)]
pub(super) enum Change {
    /// A product is added.
    LowRank(LowRank),
    /// A vector is added, times a factor.
    Add { vector: Matrix, factor: f64 },
    /// Other values stand in its place.
    Replace(Matrix),
}

/// A product that is added: for each row of the tensor a row of `left`, times `right`.
#[derive(Debug)]
pub(super) struct LowRank {
    pub(super) left: Factor,
    pub(super) right: Factor,
    /// What is not yet divided by the rank.
    pub(super) alpha: f64,
    /// Divided by the root of the rank instead of the rank.
    pub(super) root: bool,
    /// The rank that the configuration promises.
    pub(super) promised: Option<u64>,
    /// The lengths that the rows get (`DoRA`).
    pub(super) magnitude: Option<Matrix>,
}

/// A factor of a product, saved as it is or transposed.
#[derive(Debug)]
pub(super) struct Factor {
    pub(super) matrix: Matrix,
    pub(super) transposed: bool,
}

impl Factor {
    /// Rows and row length as they take part in the product, for a tensor of two dimensions.
    pub(super) fn sides(&self) -> Option<(u64, u64)> {
        let (rows, row) = self.matrix.sides()?;
        Some(if self.transposed { (row, rows) } else { (rows, row) })
    }
}

impl From<Matrix> for Factor {
    fn from(matrix: Matrix) -> Self {
        Self { matrix, transposed: false }
    }
}

impl Matrix {
    /// The factor whose transpose this is.
    pub(super) fn transposed(self) -> Factor {
        Factor { matrix: self, transposed: true }
    }
}

impl LowRank {
    /// A product without anything special to it.
    pub(super) fn new(left: impl Into<Factor>, right: impl Into<Factor>, alpha: f64) -> Self {
        Self { left: left.into(), right: right.into(), alpha, root: false, promised: None, magnitude: None }
    }

    /// What the product of rank `rank` is multiplied with.
    pub(super) fn factor(&self, rank: u64) -> f64 {
        let rank = rank as f64;
        self.alpha / if self.root { rank.sqrt() } else { rank }
    }
}

impl Adapter {
    /// Opens an adapter: a folder or a file. `scale` multiplies all that it changes.
    ///
    /// `alpha` is for files that do not say theirs; others go by their own.
    ///
    /// # Errors
    /// When it is no adapter, or one with a feature that cannot be merged: all such features are named at once.
    pub fn open(path: impl AsRef<Path>, scale: f64, alpha: Option<f64>) -> Result<Self, Error> {
        let path = path.as_ref();
        let mut problems = Problems::default();
        let mut adapter = match Place::of(path)? {
            Place::Gguf => gguf::open(path, &mut problems)?,
            Place::Safetensors { file, config } => {
                let tensors = matrix::open_safetensors(&file)?;
                if plain::is_plain(&tensors) && config.is_none() {
                    plain::open(path, file, tensors, alpha, &mut problems)?
                } else {
                    let Some(config) = config else { return Err(without_config(path)) };
                    peft::open(path, file, &config, tensors, &mut problems)?
                }
            }
        };
        adapter.scale = scale;
        if adapter.pieces.is_empty() && problems.is_empty() {
            problems.whole(path, "the adapter is empty: no tensor of it changes anything");
        }
        for matrix in adapter.matrices() {
            matrix.check_finite(path, &mut problems)?;
        }
        problems.check()?;
        Ok(adapter)
    }

    /// Where it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it was saved as.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The caller's factor.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// The files that were read.
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    fn matrices(&self) -> impl Iterator<Item = &Matrix> {
        self.pieces.iter().flat_map(|p| p.change.matrices())
    }
}

impl Change {
    /// The adapter's tensors in it.
    pub(super) fn matrices(&self) -> impl Iterator<Item = &Matrix> {
        let list = match self {
            Self::LowRank(l) => [Some(&l.right.matrix), Some(&l.left.matrix), l.magnitude.as_ref()],
            Self::Add { vector: one, .. } | Self::Replace(one) => [Some(one), None, None],
        };
        list.into_iter().flatten()
    }
}

fn without_config(path: &Path) -> Error {
    Error::Refused(format!(
        "{}: no adapter_config.json beside the tensors, so the scale is unknown (lora_alpha, use_rslora, \
         patterns); give the whole PEFT folder",
        path.display()
    ))
}

/// Where the tensors of an adapter are.
enum Place {
    Gguf,
    Safetensors { file: PathBuf, config: Option<PathBuf> },
}

impl Place {
    fn of(path: &Path) -> Result<Self, Error> {
        let is_dir = path.metadata().map_err(Error::io("open", path))?.is_dir();
        if !is_dir {
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
            if !name.ends_with(".safetensors") {
                return Ok(Self::Gguf);
            }
            let config = path.with_file_name(CONFIG);
            let beside = name != PLAIN && config.is_file();
            return Ok(Self::Safetensors { file: path.to_path_buf(), config: beside.then_some(config) });
        }
        let (config, peft, plain) = (path.join(CONFIG), path.join(PEFT), path.join(PLAIN));
        let config = config.is_file().then_some(config);
        match (peft.is_file(), plain.is_file()) {
            (true, true) => Err(Error::Refused(format!(
                "{}: holds {PEFT} and {PLAIN}; name the file that is meant",
                path.display()
            ))),
            (true, false) => Ok(Self::Safetensors { file: peft, config }),
            (false, true) => Ok(Self::Safetensors { file: plain, config: None }),
            (false, false) if path.join("adapter_model.bin").is_file() => Err(Error::Refused(format!(
                "{}: adapter_model.bin is a pickle, which is not read; save the adapter as safetensors",
                path.display()
            ))),
            (false, false) => Err(Error::Refused(format!(
                "{}: no adapter in this folder: neither {PEFT} (PEFT) nor {PLAIN}",
                path.display()
            ))),
        }
    }
}

const CONFIG: &str = "adapter_config.json";
const PEFT: &str = "adapter_model.safetensors";
const PLAIN: &str = "adapters.safetensors";

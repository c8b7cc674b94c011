//! The commands that look at files and change nothing.
//!
//! One file per command: its arguments and a `run` that writes to the stream it is given. Names and
//! strings of a file reach that stream only through `text` and `json`, which escape them.

pub mod dump;
pub mod extract;
pub mod info;
mod json;
pub mod kv;
mod planes;
pub mod sample;
pub mod selftest;
mod table;
pub mod tensors;
mod text;

pub(crate) use text::plural;
pub mod verify;

use std::path::PathBuf;

use gguf_mmap::{Model, OpenOptions};

use crate::Error;
use crate::st::Checkpoint;

/// What every command that reads one model takes.
#[derive(Debug, clap::Args)]
pub struct Input {
    /// The model: a GGUF file, part 1 of a split set, or a safetensors file or index
    ///
    /// Example: `export-gguf info model-00001-of-00003.gguf`
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Also read files with gaps, reordered or unpadded tensors, or types nobody knows
    ///
    /// Bounds are never lenient. Example: `export-gguf tensors old.gguf --lenient`
    #[arg(long)]
    pub lenient: bool,

    /// Print JSON instead of text
    ///
    /// Example: `export-gguf info model.gguf --json`
    #[arg(long)]
    pub json: bool,
}

impl Input {
    fn open(&self) -> Result<Model, Error> {
        Ok(Model::open_with(&self.file, OpenOptions::default().lenient(self.lenient))?)
    }

    /// The same of a path that names a safetensors checkpoint.
    fn open_checkpoint(&self) -> Result<Checkpoint, Error> {
        if self.lenient {
            return Err(Error::Usage("--lenient is for GGUF: of safetensors there is one reading".into()));
        }
        Checkpoint::open(&self.file)
    }
}

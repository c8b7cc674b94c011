//! One logical model: a single file, or a split set read as one.

use crate::split::{PartName, SplitError, check_set};
use crate::{Bytes, Error, ErrorKind, GgufFile, Mapping, OpenOptions};
use gguf_format::{Gguf, TensorInfo};
use std::path::Path;

/// A model: one GGUF file, or every part of a split set, with one directory over all.
///
/// Metadata is that of the first part; tensors keep the order of the parts and of the files.
#[derive(Debug)]
pub struct Model {
    // Never empty.
    parts: Vec<GgufFile>,
}

/// A tensor of a [`Model`]: its info, and the part it is in.
#[derive(Debug, Clone)]
pub struct ModelTensor<'a> {
    /// Index into [`Model::parts`].
    pub part: usize,
    /// Name, shape, type; offsets are those in the part's file.
    pub info: TensorInfo<'a>,
}

impl Model {
    /// Opens a model from its only file or from the first part of its split set, strictly.
    ///
    /// # Errors
    ///
    /// If a file cannot be opened or is no valid GGUF file; if a part is missing, misnumbered, or
    /// repeats a tensor of another; if `path` is a part other than the first, or a part whose name
    /// does not tell the others'. The error's path is the file at fault.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, OpenOptions::default())
    }

    /// Opens a model as `options` say.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self, Error> {
        let path = path.as_ref();
        let first = GgufFile::open_with(path, options)?;
        let fault = |e| Error::new(Some(path), ErrorKind::Split(e));
        let Some(name) = PartName::of(path, &first.gguf()).map_err(fault)? else {
            return Ok(Self { parts: vec![first] });
        };
        check_part(&first, &name).map_err(fault)?;
        if name.no() != 1 {
            let first = name.part(1).path();
            return Err(fault(SplitError::NotFirst { no: name.no(), count: name.count(), first }));
        }
        let mut parts = vec![first];
        for no in 2..=name.count() {
            parts.push(open_part(&name.part(no), options)?);
        }
        let directories: Vec<_> = parts.iter().map(|p| (p.path().unwrap_or(path), p.gguf())).collect();
        if let Some((i, e)) = check_set(&directories).into_iter().next() {
            return Err(Error::new(Some(directories[i].0), ErrorKind::Split(e)));
        }
        Ok(Self { parts })
    }

    /// A model of one file that is open already. Its `split.*` keys are not looked at.
    #[must_use]
    pub fn from_file(file: GgufFile) -> Self {
        Self { parts: vec![file] }
    }

    /// The files, in order; at least one.
    #[must_use]
    pub fn parts(&self) -> &[GgufFile] {
        &self.parts
    }

    /// Whether there is more than one file.
    #[must_use]
    pub fn is_split(&self) -> bool {
        self.parts.len() > 1
    }

    /// The directory of the first part, whose metadata is the model's.
    #[must_use]
    pub fn gguf(&self) -> Gguf<'_> {
        self.parts[0].gguf()
    }

    /// All tensors, part by part in file order.
    pub fn tensors(&self) -> impl Iterator<Item = ModelTensor<'_>> {
        self.parts.iter().enumerate().flat_map(|(part, file)| {
            let gguf = file.gguf();
            let infos: Vec<TensorInfo<'_>> = gguf.tensors().collect();
            infos.into_iter().map(move |info| ModelTensor { part, info })
        })
    }

    /// The tensor of this name, in whichever part it is.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<ModelTensor<'_>> {
        self.parts
            .iter()
            .enumerate()
            .find_map(|(part, file)| Some(ModelTensor { part, info: file.tensor(name)? }))
    }

    /// The bytes of a tensor; `None` once the mappings were taken.
    #[must_use]
    pub fn data(&self, tensor: &ModelTensor<'_>) -> Option<&[u8]> {
        self.parts.get(tensor.part)?.data(&tensor.info)
    }

    /// An owned handle to the bytes of a tensor. It keeps the mapping of just its part alive. `None`
    /// once the mappings were taken.
    #[must_use]
    pub fn bytes(&self, tensor: &ModelTensor<'_>) -> Option<Bytes> {
        self.parts.get(tensor.part)?.bytes(&tensor.info)
    }

    /// An owned handle to the bytes of the tensor of this name; see [`bytes`](Self::bytes).
    #[must_use]
    pub fn tensor_bytes(&self, name: &str) -> Option<Bytes> {
        self.bytes(&self.tensor(name)?)
    }

    /// Asks the system to read a tensor ahead.
    pub fn prefetch(&self, tensor: &ModelTensor<'_>) {
        if let Some(file) = self.parts.get(tensor.part) {
            file.prefetch(&tensor.info);
        }
    }

    /// Drops the pages wholly inside a tensor from memory; see [`Mapping::release`].
    pub fn release(&self, tensor: &ModelTensor<'_>) {
        if let Some(file) = self.parts.get(tensor.part) {
            file.release(&tensor.info);
        }
    }

    /// Takes the mappings out, one per part in order; see [`GgufFile::take_mapping`]. The directory
    /// stays usable, data is `None`. Empty at the second call.
    pub fn take_mappings(&mut self) -> Vec<Mapping> {
        self.parts.iter_mut().filter_map(GgufFile::take_mapping).collect()
    }
}

fn open_part(name: &PartName, options: OpenOptions) -> Result<GgufFile, Error> {
    let path = name.path();
    let fault = |e| Error::new(Some(&path), ErrorKind::Split(e));
    let file = GgufFile::open_with(&path, options).map_err(|e| match e.into_kind() {
        ErrorKind::Open(source) => {
            fault(SplitError::MissingPart { no: name.no(), count: name.count(), source })
        }
        kind => Error::new(Some(&path), kind),
    })?;
    check_part(&file, name).map_err(fault)?;
    Ok(file)
}

/// The first contradiction between a part's keys and its name.
fn check_part(file: &GgufFile, name: &PartName) -> Result<(), SplitError> {
    name.check(&file.gguf()).into_iter().next().map_or(Ok(()), Err)
}

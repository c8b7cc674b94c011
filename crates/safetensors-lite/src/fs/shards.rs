//! A checkpoint in several files with an index, `*.safetensors.index.json`: opened as one, every name verified.

use super::{
    error::{Error, ErrorKind},
    read::{load_header, open},
};
use crate::{Header, MAX_HEADER_LEN, TensorInfo, json::check_strict};
use serde::Deserialize;
use std::{
    collections::{BTreeMap, HashMap},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Component, Path, PathBuf},
};

/// A sharded checkpoint: the headers of all its files. Data is read when asked for.
#[derive(Debug)]
pub struct Shards {
    shards: Vec<Shard>,
    /// For each mapped tensor, its shard.
    placed: HashMap<String, usize>,
    total_size: Option<u64>,
}

/// One file of a sharded checkpoint.
#[derive(Debug)]
pub struct Shard {
    name: String,
    path: PathBuf,
    header: Header,
}

impl Shard {
    /// Its name in the index.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it lies: its name in the folder of the index.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its header, with tensors that the index does not list too.
    pub fn header(&self) -> &Header {
        &self.header
    }
}

/// The index as it is written.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
    metadata: Option<BTreeMap<String, serde_json::Value>>,
}

impl Shards {
    /// Opens an index and the header of every shard it names, and finds every tensor it maps. Shards lie in the
    /// folder of the index, as plain names; they may be symlinks.
    ///
    /// # Errors
    ///
    /// The index is no index, with keys that stand twice refused too; a shard name is more than a plain file name;
    /// a shard is missing, or is not a whole file of the format; a mapped tensor is not in its shard; a tensor is
    /// in two shards. A missing shard is reported before any shard is read.
    pub fn open(index: impl AsRef<Path>) -> Result<Self, Error> {
        let path = index.as_ref();
        let Index { weight_map, metadata } = read_index(path)?;
        let mut names: Vec<&str> = weight_map.values().map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        let folder = path.parent().unwrap_or(Path::new(""));
        if let Some(shard) = names.iter().find(|name| !is_plain(name)) {
            return Err(Error::at(path, ErrorKind::ShardName { shard: (*shard).into() }));
        }
        if let Some(shard) = names.iter().find(|name| !folder.join(name).exists()) {
            return Err(Error::at(path, ErrorKind::ShardMissing { shard: (*shard).into() }));
        }
        let open = |&name: &&str| {
            let path = folder.join(name);
            Ok(Shard { name: name.into(), header: load_header(&path)?, path })
        };
        let shards: Vec<Shard> = names.iter().map(open).collect::<Result<_, Error>>()?;
        let placed = place(&shards, &weight_map).map_err(|kind| Error::at(path, kind))?;
        let total_size = metadata.and_then(|m| m.get("total_size")?.as_u64());
        Ok(Self { shards, placed, total_size })
    }

    /// The files, in the order of their names.
    pub fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// `metadata.total_size` of the index as it stands there, where it is an integer; it is not checked.
    pub fn total_size(&self) -> Option<u64> {
        self.total_size
    }

    /// Number of tensors that the index maps.
    pub fn len(&self) -> usize {
        self.placed.len()
    }

    /// Whether the index maps no tensor.
    pub fn is_empty(&self) -> bool {
        self.placed.is_empty()
    }

    /// The mapped tensors, file by file, in the order of their data.
    pub fn tensors(&self) -> impl Iterator<Item = ShardTensor<'_>> {
        self.all()
            .filter(|(tensor, number)| self.placed.get(tensor.info.name()) == Some(number))
            .map(|(t, _)| t)
    }

    /// The mapped tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<ShardTensor<'_>> {
        let shard = self.shards.get(*self.placed.get(name)?)?;
        Some(ShardTensor { shard, info: shard.header.tensor(name)? })
    }

    /// Tensors that lie in a shard without being in the index. Nothing else here returns them.
    pub fn unlisted(&self) -> impl Iterator<Item = ShardTensor<'_>> {
        self.all()
            .filter(|(tensor, _)| !self.placed.contains_key(tensor.info.name()))
            .map(|(tensor, _)| tensor)
    }

    fn all(&self) -> impl Iterator<Item = (ShardTensor<'_>, usize)> {
        let of = |(number, shard): (usize, _)| {
            let shard: &Shard = shard;
            shard.header.tensors().map(move |info| (ShardTensor { shard, info }, number))
        };
        self.shards.iter().enumerate().flat_map(of)
    }
}

/// Finds each mapped tensor in its shard, and none in two.
fn place(shards: &[Shard], map: &BTreeMap<String, String>) -> Result<HashMap<String, usize>, ErrorKind> {
    let mut found: HashMap<&str, usize> = HashMap::new();
    for (number, shard) in shards.iter().enumerate() {
        for info in shard.header.tensors() {
            if let Some(first) = found.insert(info.name(), number).and_then(|first| shards.get(first)) {
                let (first, second) = (first.name.clone(), shard.name.clone());
                return Err(ErrorKind::TensorTwice { tensor: info.name().into(), first, second });
            }
        }
    }
    let mut placed = HashMap::with_capacity(map.len());
    for (tensor, shard) in map {
        match found.get(tensor.as_str()) {
            Some(&number) if shards.get(number).is_some_and(|found| found.name == *shard) => {
                placed.insert(tensor.clone(), number);
            }
            _ => return Err(ErrorKind::TensorMissing { tensor: tensor.clone(), shard: shard.clone() }),
        }
    }
    Ok(placed)
}

fn read_index(path: &Path) -> Result<Index, Error> {
    let (file, len) = open(path)?;
    if len > MAX_HEADER_LEN {
        return Err(Error::at(path, ErrorKind::IndexTooLarge { len }));
    }
    let mut text = String::new();
    file.take(MAX_HEADER_LEN).read_to_string(&mut text).map_err(|source| Error::io(path, "read", source))?;
    check_strict(&text, 0).map_err(|error| Error::at(path, error))?;
    serde_json::from_str(&text)
        .map_err(|error| Error::at(path, ErrorKind::IndexSchema { message: error.to_string().into() }))
}

/// Whether a name is one file in its folder, on every system.
pub(super) fn is_plain(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    let one = matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name);
    one && !name.contains(['/', '\\', '\0'])
}

/// A tensor of a sharded checkpoint.
#[derive(Debug, Clone, Copy)]
pub struct ShardTensor<'s> {
    shard: &'s Shard,
    info: TensorInfo<'s>,
}

impl<'s> ShardTensor<'s> {
    /// The file it lies in.
    pub fn shard(&self) -> &'s Shard {
        self.shard
    }

    /// What the header of that file says of it.
    pub fn info(&self) -> TensorInfo<'s> {
        self.info
    }

    /// Reads its data.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has become shorter.
    pub fn read(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        self.copy_to(&mut bytes)?;
        Ok(bytes)
    }

    /// Copies its data, in pieces.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has become shorter; the sink's.
    pub fn copy_to(&self, sink: &mut (impl Write + ?Sized)) -> Result<(), Error> {
        let path = &self.shard.path;
        let (mut file, _) = open(path)?;
        let copy = |source| Error::io(path, "read", source);
        file.seek(SeekFrom::Start(self.info.file_range().start)).map_err(copy)?;
        let need = self.info.byte_len();
        match io::copy(&mut file.take(need), sink).map_err(copy)? {
            have if have == need => Ok(()),
            _ => Err(copy(io::ErrorKind::UnexpectedEof.into())),
        }
    }
}

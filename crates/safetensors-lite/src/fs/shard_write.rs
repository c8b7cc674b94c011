//! Writing a checkpoint in several files with an index, under the names that Hugging Face's libraries use.

use super::{
    atomic::{Staged, stage_bytes, sync_folder},
    error::{Error, ErrorKind},
    shards::is_plain,
    stream::Stream,
};
use crate::{Builder, Layout, TensorInfo};
use std::{
    collections::BTreeMap,
    io::{self, Write},
    path::Path,
};

/// Which tensor goes into which file.
#[derive(Debug, Clone)]
pub struct ShardPlan {
    stem: String,
    files: Vec<(String, Layout)>,
}

impl ShardPlan {
    /// Fills files in the order of declaration: a tensor that would take the data of a file above `max_bytes`
    /// begins the next; one that is larger by itself gets a file of its own. Every file carries the metadata.
    /// Files are called `STEM-00001-of-00002.safetensors`, the index `STEM.safetensors.index.json`; there is one
    /// even for a single file.
    ///
    /// # Errors
    ///
    /// The stem is not a plain file name, or a header is too large.
    pub fn new(tensors: &Builder, stem: &str, max_bytes: u64) -> Result<Self, Error> {
        if !is_plain(stem) {
            return Err(ErrorKind::ShardName { shard: stem.into() }.into());
        }
        let parts = tensors.split(max_bytes);
        let count = parts.len();
        let mut files = Vec::with_capacity(count);
        for (part, number) in parts.iter().zip(1u64..) {
            let name = format!("{stem}-{number:05}-of-{count:05}.safetensors");
            files.push((name, part.layout().map_err(ErrorKind::Write)?));
        }
        Ok(Self { stem: stem.into(), files })
    }

    /// The files: name and layout.
    pub fn files(&self) -> impl ExactSizeIterator<Item = (&str, &Layout)> {
        self.files.iter().map(|(name, layout)| (name.as_str(), layout))
    }

    /// Name of the index.
    pub fn index_name(&self) -> String {
        format!("{}.safetensors.index.json", self.stem)
    }

    /// Text of the index.
    pub fn index(&self) -> String {
        let sizes = self.files.iter().map(|(_, layout)| layout.header().data_len());
        let total = sizes.fold(0, u64::saturating_add);
        let placed = |(name, layout): &'_ (String, Layout)| {
            let name = name.clone();
            layout.tensors().map(|info| (info.name().to_owned(), name.clone())).collect::<Vec<_>>()
        };
        let map: BTreeMap<String, String> = self.files.iter().flat_map(placed).collect();
        let index = serde_json::json!({ "metadata": { "total_size": total }, "weight_map": map });
        format!("{index:#}\n")
    }

    /// Writes all files into a folder. `fill` is called once per tensor, in the order of
    /// [`files`](Self::files) and their layouts, and writes that tensor's data.
    ///
    /// Every file is complete and synced under a temporary name before the first is renamed; the index comes last.
    /// A failure before that changes nothing. Between the renames a reader can see some new files: the set as a
    /// whole is not replaced in one step, so write a new checkpoint into a new folder.
    ///
    /// # Errors
    ///
    /// What `fill` returns; data of another length than the tensor's; anything the system refuses.
    pub fn save(
        &self,
        folder: impl AsRef<Path>,
        mut fill: impl FnMut(TensorInfo<'_>, &mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Error> {
        let folder = folder.as_ref();
        let mut staged = Vec::with_capacity(self.files.len());
        for (name, layout) in &self.files {
            staged.push(Staged::write(&folder.join(name), layout.total_len(), |sink| {
                let mut stream = Stream::new(layout.clone(), sink)?;
                stream.write_each(&mut fill)?;
                stream.finish().map(drop)
            })?);
        }
        let index = folder.join(self.index_name());
        staged.push(stage_bytes(&index, self.index().as_bytes())?);
        staged.into_iter().try_for_each(Staged::publish)?;
        sync_folder(&index)
    }
}

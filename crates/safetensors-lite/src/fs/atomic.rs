//! Files that appear whole or not at all: written beside the target, synced, renamed over it. A reader that maps
//! the old file keeps it; a failure at any point leaves it where it was.

use super::{
    error::{Error, ErrorKind},
    stream::Stream,
};
use crate::{Layout, Tensor, TensorInfo, write::lay_out};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

/// Writes tensors in memory to a file, whole or not at all; see [`save_atomic`].
///
/// # Errors
///
/// The tensors cannot be written, as of [`serialize`](crate::serialize), or the file cannot.
pub fn save(
    path: impl AsRef<Path>,
    tensors: &[Tensor<'_>],
    metadata: Option<&[(&str, &str)]>,
) -> Result<(), Error> {
    let path = path.as_ref();
    let (layout, sorted) = lay_out(tensors, metadata).map_err(|error| Error::at(path, error))?;
    let mut sorted = sorted.into_iter();
    save_atomic(path, &layout, |_, sink| sorted.next().map_or(Ok(()), |tensor| sink.write_all(tensor.data)))
}

/// Writes a file whose data comes from `fill`, which is called once per tensor in the order of the layout and
/// writes that tensor's data: in pieces, so that the file may be larger than memory.
///
/// The bytes go to a temporary file in the folder of `path`, which gets its full length first; it is synced,
/// given the permissions of the file it replaces, renamed over `path`, and the folder is synced. A symlink at
/// `path` is replaced, not followed. On any failure the temporary is removed and what was at `path` is as it was,
/// except that a failing sync of the folder is reported after the rename.
///
/// # Errors
///
/// What `fill` returns; data of another length than the tensor's; anything the system refuses.
pub fn save_atomic(
    path: impl AsRef<Path>,
    layout: &Layout,
    fill: impl FnMut(TensorInfo<'_>, &mut dyn Write) -> io::Result<()>,
) -> Result<(), Error> {
    let path = path.as_ref();
    let staged = Staged::write(path, layout.total_len(), |sink| {
        let mut stream = Stream::new(layout.clone(), sink)?;
        stream.write_each(fill)?;
        stream.finish().map(drop)
    })?;
    staged.publish()?;
    sync_folder(path)
}

/// A complete, synced file under a temporary name. Dropped unpublished, it is removed.
pub(super) struct Staged {
    temporary: PathBuf,
    target: PathBuf,
    published: bool,
}

impl Staged {
    /// Creates the temporary beside `target`, and lets `content` write its `len` bytes.
    pub(super) fn write(
        target: &Path,
        len: u64,
        content: impl FnOnce(&mut dyn Write) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let create = |source| Error::io(target, "create", source);
        let (file, temporary) = create_beside(target).map_err(create)?;
        let staged = Self { temporary, target: target.into(), published: false };
        file.set_len(len).map_err(create)?;
        let mut sink = BufWriter::with_capacity(1 << 20, &file);
        content(&mut sink).map_err(|error| error.or_path(target))?;
        sink.flush().map_err(|source| Error::io(target, "write", source))?;
        drop(sink);
        if let Ok(old) = fs::metadata(target) {
            file.set_permissions(old.permissions()).map_err(create)?;
        }
        file.sync_all().map_err(|source| Error::io(target, "sync", source))?;
        Ok(staged)
    }

    /// Renames it over the target.
    pub(super) fn publish(mut self) -> Result<(), Error> {
        let renamed = fs::rename(&self.temporary, &self.target);
        renamed.map_err(|source| Error::io(&self.target, "rename the finished file", source))?;
        self.published = true;
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.published {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// A new file with a name of its own in the folder of `target`.
fn create_beside(target: &Path) -> io::Result<(File, PathBuf)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    const TRIES: u32 = 1000;
    if target.file_name().is_none() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no file name"));
    }
    for _ in 0..TRIES {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = folder(target).join(format!(".safetensors-{}-{count}.tmp", process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => return result.map(|file| (file, path)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn folder(target: &Path) -> &Path {
    target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes a rename in the folder of `target` last.
#[cfg(unix)]
pub(super) fn sync_folder(target: &Path) -> Result<(), Error> {
    let folder = folder(target);
    match File::open(folder).and_then(|file| file.sync_all()) {
        // Some file systems cannot sync a folder; there is nothing better to do on them.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        result => result.map_err(|source| Error::io(folder, "sync", source)),
    }
}

/// Makes a rename in the folder of `target` last; elsewhere folders cannot be opened, and renames are journaled.
#[cfg(not(unix))]
pub(super) fn sync_folder(_: &Path) -> Result<(), Error> {
    Ok(())
}

/// Writes small content known in full.
pub(super) fn stage_bytes(target: &Path, bytes: &[u8]) -> Result<Staged, Error> {
    Staged::write(target, bytes.len() as u64, |sink| {
        Ok(sink.write_all(bytes).map_err(|source| ErrorKind::Io { op: "write", source })?)
    })
}

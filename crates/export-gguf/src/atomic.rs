//! Output that appears whole or not at all.
//!
//! Every file is written beside its target under a temporary name, `.NAME.export-gguf-tmp-PID`,
//! with its disk space taken beforehand. [`Staged::commit`] syncs the data, renames, and syncs the
//! folder. Dropping a [`Staged`] that was not committed removes what it made. A process that is
//! killed outright cannot do that; the next run of the same target does.

mod names;
#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::sys::{self, FileId};
use crate::{Cancel, Error};

/// One file to be written: its final path and its exact length in bytes.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where the file is to appear.
    pub path: PathBuf,
    /// Its length in bytes.
    pub len: u64,
}

/// A set of files being written, invisible until [`Staged::commit`].
#[derive(Debug)]
pub struct Staged {
    parts: Vec<Part>,
    force: bool,
}

#[derive(Debug)]
struct Part {
    target: PathBuf,
    temp: PathBuf,
    file: File,
    /// The old target, moved aside while a set is being exchanged.
    backup: Option<PathBuf>,
    /// The temporary has become the target.
    renamed: bool,
}

impl Staged {
    /// Creates the temporaries of `targets` at their full lengths.
    ///
    /// # Errors
    /// When a target is one of `inputs` (through whatever links), exists without `force`, is not
    /// a regular file, has no folder, or when the disk has no room. Nothing is left behind then.
    pub fn create(targets: &[Target], force: bool, inputs: &[PathBuf]) -> Result<Self, Error> {
        let inputs = inputs
            .iter()
            .filter_map(|p| Some((p.clone(), sys::file_id(p, &p.metadata().ok()?))))
            .collect::<Vec<(PathBuf, FileId)>>();
        let mut resolved = Vec::with_capacity(targets.len());
        for target in targets {
            resolved.push(admit(&target.path, force, &inputs)?);
        }
        for target in &resolved {
            names::remove_stale(target);
        }
        let mut staged = Self { parts: Vec::with_capacity(targets.len()), force };
        for (target, resolved) in targets.iter().zip(resolved) {
            staged.add(resolved, target.len)?;
        }
        Ok(staged)
    }

    fn add(&mut self, target: PathBuf, len: u64) -> Result<(), Error> {
        let temp = names::temp(&target, std::process::id());
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&temp)
            .map_err(Error::io("create", &temp))?;
        // From here on the temporary is ours to remove.
        self.parts.push(Part { target, temp, file, backup: None, renamed: false });
        let part = &self.parts[self.parts.len() - 1];
        // The lock tells other runs that this temporary is alive; without one they look at the id.
        let _ = sys::try_lock(&part.file);
        sys::preallocate(&part.file, len).map_err(|source| Error::Io {
            doing: "take disk space for",
            path: part.target.clone(),
            source: describe_space(source, len),
        })?;
        if let Ok(old) = part.target.metadata() {
            part.file.set_permissions(old.permissions()).map_err(Error::io("set the mode of", &part.temp))?;
        }
        Ok(())
    }

    /// Writes `bytes` at `offset` of file `part`; callable from any thread.
    ///
    /// # Errors
    /// When the system refuses the write.
    pub fn write_at(&self, part: usize, bytes: &[u8], offset: u64) -> Result<(), Error> {
        let part = &self.parts[part];
        sys::write_all_at(&part.file, bytes, offset).map_err(Error::io("write", &part.target))
    }

    /// Starts and awaits the write-back of what file `part` holds so far.
    ///
    /// # Errors
    /// When the system reports that data could not be written.
    pub fn sync(&self, part: usize) -> Result<(), Error> {
        let part = &self.parts[part];
        part.file.sync_data().map_err(Error::io("sync", &part.target))
    }

    /// Where the files will appear, with symbolic links resolved.
    pub fn targets(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().map(|p| p.target.as_path())
    }

    /// Makes everything durable and visible: sync, rename (the first file last, so that a set is
    /// never found incomplete by its first part), sync of the folders.
    ///
    /// # Errors
    /// When any step fails; every target is then as it was.
    pub fn commit(mut self, cancel: &Cancel) -> Result<(), Error> {
        for part in &self.parts {
            part.file.sync_all().map_err(Error::io("sync", &part.target))?;
        }
        cancel.check()?;
        if self.parts.len() > 1 && self.force {
            for part in &mut self.parts {
                part.set_aside()?;
            }
        }
        let last_first = (1..self.parts.len()).chain((!self.parts.is_empty()).then_some(0));
        for i in last_first {
            let part = &mut self.parts[i];
            let renamed = if self.force && part.target.is_dir() {
                Err(io::ErrorKind::IsADirectory.into())
            } else if self.force {
                fs::rename(&part.temp, &part.target)
            } else {
                sys::rename_new(&part.temp, &part.target)
            };
            renamed.map_err(Error::io("put in place", &part.target))?;
            part.renamed = true;
        }
        // Past this point the new files stand; only the old ones are left to forget.
        let parts = std::mem::take(&mut self.parts);
        for part in &parts {
            if let Some(backup) = &part.backup {
                fs::remove_file(backup).map_err(Error::io("remove", backup))?;
            }
        }
        let mut folders = parts.iter().map(|p| folder(&p.target)).collect::<Vec<_>>();
        folders.dedup();
        folders.into_iter().try_for_each(|d| sys::sync_dir(d).map_err(Error::io("sync", d)))
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // Errors have no one to go to here, and each step is independent of the others.
        for part in self.parts.iter().rev() {
            let _ = fs::remove_file(if part.renamed { &part.target } else { &part.temp });
            if let Some(backup) = &part.backup {
                let _ = fs::rename(backup, &part.target);
            }
        }
    }
}

impl Part {
    fn set_aside(&mut self) -> Result<(), Error> {
        if self.target.symlink_metadata().is_ok_and(|m| m.is_file()) {
            let aside = names::aside(&self.target, std::process::id());
            fs::rename(&self.target, &aside).map_err(Error::io("move aside", &self.target))?;
            self.backup = Some(aside);
        }
        Ok(())
    }
}

/// The folder of a path, `.` for a bare name.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    }
}

/// Whether `path` may be written, and where a link leads.
fn admit(path: &Path, force: bool, inputs: &[(PathBuf, FileId)]) -> Result<PathBuf, Error> {
    let refused = |why: &str| Err(Error::Refused(format!("{}: {why}", path.display())));
    if path.file_name().is_none() {
        return refused("not a file name");
    }
    if path.as_os_str().as_encoded_bytes().last().is_some_and(|&b| std::path::is_separator(b.into())) {
        return refused("names a folder; name a file in it");
    }
    let dir = folder(path);
    match dir.metadata() {
        Err(e) => return Err(Error::io("use folder", dir)(e)),
        Ok(m) if !m.is_dir() => return refused("its parent is not a folder"),
        Ok(_) => {}
    }
    let meta = match path.metadata() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return match path.symlink_metadata() {
                Ok(_) => {
                    refused("is a link to a file that does not exist; remove it, or choose another name")
                }
                Err(_) => Ok(path.to_path_buf()),
            };
        }
        Err(e) => return Err(Error::io("look at", path)(e)),
        Ok(meta) => meta,
    };
    if meta.is_dir() {
        return refused("is a folder; name a file in it");
    }
    if !meta.is_file() {
        return refused("is not a regular file; the output must be renamed into place");
    }
    let id = sys::file_id(path, &meta);
    if let Some((input, _)) = inputs.iter().find(|(_, i)| *i == id) {
        return refused(&format!("is the input {} itself; choose another name", input.display()));
    }
    if !force {
        return refused("exists already; choose another name, or replace it with --force");
    }
    path.canonicalize().map_err(Error::io("resolve", path))
}

/// Says how much was wanted when the disk is full.
fn describe_space(e: io::Error, len: u64) -> io::Error {
    match e.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            io::Error::new(e.kind(), format!("{len} bytes needed: {e}"))
        }
        _ => e,
    }
}

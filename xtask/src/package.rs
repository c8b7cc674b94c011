//! `cargo xtask package`: every crate as a stranger gets it. `cargo package` must be clean, and a
//! scratch crate that depends on one layer's archive alone must compile and bring in just the
//! crates that `xtask/trees/<layer>.txt` lists (`--bless` writes the lists).

use crate::util::{Outcome, capture, cargo, root, run as run_command};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Packages, and checks each layer's tree.
pub(crate) fn run(args: &[String]) -> Outcome {
    let bless = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--bless"] => true,
        _ => return Err("usage: package [--bless]".to_owned()),
    };
    let layers = layers()?;
    // All at once, because they need one another. Compiling is left to the scratch crates, which
    // do it from the same archives without generating code.
    let mut package = cargo();
    package.args(["package", "--allow-dirty", "--no-verify", "--quiet"]);
    for layer in &layers {
        package.args(["--package", &layer.name]);
    }
    run_command(&mut package)?;
    let unpacked = unpack(&layers)?;
    for layer in &layers {
        let tree = tree(layer, &layers, &unpacked)?;
        let layer = &layer.name;
        let path = root().join("xtask/trees").join(format!("{layer}.txt"));
        if bless {
            std::fs::write(&path, &tree).map_err(|e| format!("{}: {e}", path.display()))?;
            continue;
        }
        let pinned = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        if tree != pinned {
            return Err(format!(
                "{layer} brings in other crates than its list (`--bless` accepts it):\n{tree}"
            ));
        }
        println!("{layer:<16} {:>3} crates, as listed", tree.lines().count());
    }
    Ok(())
}

/// A crate that can be published: all but this one.
struct Layer {
    name: String,
    version: String,
    /// Its dependencies outside tests.
    needs: Vec<String>,
}

fn layers() -> Outcome<Vec<Layer>> {
    let text = capture(cargo().args(["metadata", "--no-deps", "--offline", "--format-version", "1"]))?;
    let metadata: serde_json::Value =
        serde_json::from_str(&text).map_err(|e| format!("cargo metadata: {e}"))?;
    let packages = metadata["packages"].as_array().into_iter().flatten().filter(|p| p["publish"].is_null());
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let needs = |package: &serde_json::Value| {
        let all = package["dependencies"].as_array().into_iter().flatten();
        all.filter(|d| d["kind"].is_null()).map(|d| text(&d["name"])).collect()
    };
    Ok(packages
        .map(|p| Layer { name: text(&p["name"]), version: text(&p["version"]), needs: needs(p) })
        .collect())
}

/// Whether `from` needs `to`, itself or through another layer.
fn needs(layers: &[Layer], from: &str, to: &str) -> bool {
    let Some(layer) = layers.iter().find(|l| l.name == from) else { return false };
    layer.needs.iter().any(|n| n == to || needs(layers, n, to))
}

/// Unpacks every archive into a fresh folder.
fn unpack(layers: &[Layer]) -> Outcome<PathBuf> {
    let folder = root().join("target/scratch/packages");
    if folder.is_dir() {
        std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for Layer { name, version, .. } in layers {
        let archive = root().join(format!("target/package/{name}-{version}.crate"));
        run_command(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&folder))?;
    }
    Ok(folder)
}

/// The names of everything that a scratch crate depending on `layer` alone is built from, on the
/// platform this project is developed on. It is compiled as well.
fn tree(layer: &Layer, layers: &[Layer], unpacked: &Path) -> Outcome<String> {
    let Layer { name: layer, .. } = layer;
    let scratch = root().join("target/scratch").join(layer);
    let write = |path: &str, text: &str| {
        let path = scratch.join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|e| format!("{}: {e}", path.display()))
    };
    let mut manifest =
        "[package]\nname = \"scratch\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n".to_owned();
    let mut patches = String::new();
    for Layer { name, version, .. } in layers {
        let path = unpacked.join(format!("{name}-{version}"));
        if name == layer {
            manifest += &format!("\n[dependencies]\n{name} = {{ path = {path:?} }}\n");
        } else if needs(layers, layer, name) {
            patches += &format!("{name} = {{ path = {path:?} }}\n");
        }
    }
    // As if the layers below had been published.
    write("Cargo.toml", &format!("{manifest}\n[patch.crates-io]\n{patches}"))?;
    write("src/lib.rs", &format!("pub use {} as layer;\n", layer.replace('-', "_")))?;
    // The versions of our own lock file.
    std::fs::copy(root().join("Cargo.lock"), scratch.join("Cargo.lock"))
        .map_err(|e| format!("Cargo.lock: {e}"))?;
    let cargo = || {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(&scratch).env("CARGO_TARGET_DIR", root().join("target"));
        command
    };
    run_command(cargo().args(["check", "--quiet"]))?;
    let target = "x86_64-unknown-linux-gnu";
    let listed =
        capture(cargo().args(["tree", "--edges", "normal", "--prefix", "none", "--target", target]))?;
    let mut names: Vec<&str> = listed.lines().filter_map(|l| l.split(' ').next()).collect();
    names.retain(|n| !n.is_empty() && *n != "scratch");
    names.sort_unstable();
    names.dedup();
    Ok(names.join("\n") + "\n")
}

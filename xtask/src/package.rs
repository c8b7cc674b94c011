//! `cargo xtask package`: every crate as a stranger gets it. `cargo package` must be clean, and a
//! scratch crate that depends on one layer alone must bring in just the crates that
//! `xtask/trees/<layer>.txt` lists (`--bless` writes the lists).

use crate::util::{Outcome, capture, cargo, root, run as run_command};
use std::path::Path;
use std::process::Command;

/// Packages, and checks each layer's tree.
pub(crate) fn run(args: &[String]) -> Outcome {
    let bless = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--bless"] => true,
        _ => return Err("usage: package [--bless]".to_owned()),
    };
    let layers = layers()?;
    // The crates need one another's packages: cargo builds each from the others' archives.
    let mut package = cargo();
    package.args(["package", "--allow-dirty", "--quiet"]);
    for layer in &layers {
        package.args(["--package", layer]);
    }
    run_command(&mut package)?;
    for layer in &layers {
        let tree = tree(layer)?;
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

/// The crates that can be published: all but this one.
fn layers() -> Outcome<Vec<String>> {
    let text = capture(cargo().args(["metadata", "--no-deps", "--offline", "--format-version", "1"]))?;
    let metadata: serde_json::Value =
        serde_json::from_str(&text).map_err(|e| format!("cargo metadata: {e}"))?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let named = packages.filter(|p| p["publish"].is_null()).filter_map(|p| p["name"].as_str());
    Ok(named.map(str::to_owned).collect())
}

/// The names of everything that a scratch crate depending on `layer` alone is built from, on the
/// platform this project is developed on. It is compiled as well.
fn tree(layer: &str) -> Outcome<String> {
    let scratch = root().join("target/scratch").join(layer);
    let write = |path: &str, text: &str| {
        let path = scratch.join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|e| format!("{}: {e}", path.display()))
    };
    let dependency = root().join("crates").join(layer);
    write(
        "Cargo.toml",
        &format!(
            "[package]\nname = \"scratch\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
             [dependencies]\n{layer} = {{ path = {dependency:?} }}\n"
        ),
    )?;
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

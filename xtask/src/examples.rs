//! `cargo xtask examples`: runs every example of every crate. They take no arguments, make what
//! they need, and fail if what they show does not hold.

use crate::util::{Outcome, cargo, files, root, run as run_command};

/// Runs them all in the release profile: some stream hundreds of megabytes.
pub(crate) fn run(_: &[String]) -> Outcome {
    let mut count = 0;
    for path in files(&root())? {
        let ["crates", package, "examples", file] = path.split('/').collect::<Vec<_>>()[..] else { continue };
        let Some(name) = file.strip_suffix(".rs") else { continue };
        println!("-- {package}: {name}");
        run_command(cargo().args(["run", "--quiet", "--release", "--package", package, "--example", name]))?;
        count += 1;
    }
    if count == 0 { Err("no examples found".to_owned()) } else { Ok(()) }
}

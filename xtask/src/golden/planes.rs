//! `golden/ptqtp`: trit-planes by `ptqtp.py`, which knows the formulas and none of our code.

use crate::util::{Outcome, files, read, root, run};
use std::path::Path;
use std::process::Command;

/// Makes the folder anew.
pub(super) fn write() -> Outcome {
    let folder = root().join("golden/ptqtp");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    make(&folder)
}

/// Makes it elsewhere, and tells how the committed one differs.
pub(super) fn check(faults: &mut Vec<String>) -> Outcome {
    let committed = root().join("golden/ptqtp");
    let fresh = tempfile::tempdir().map_err(|e| format!("no temporary folder: {e}"))?;
    make(fresh.path())?;
    let mut names = files(&committed)?;
    names.extend(files(fresh.path())?);
    names.sort();
    names.dedup();
    for name in &names {
        match (read(&committed.join(name)), read(&fresh.path().join(name))) {
            (Ok(a), Ok(b)) if a == b => {}
            (Ok(_), Ok(_)) => faults.push(format!("golden/ptqtp/{name}: differs from what the script gives")),
            (Err(e), _) | (_, Err(e)) => faults.push(e),
        }
    }
    println!("ptqtp    {} files compared", names.len());
    Ok(())
}

fn make(out: &Path) -> Outcome {
    let script = root().join("xtask/src/golden/ptqtp.py");
    run(Command::new("python3").arg(script).arg(root().join("golden")).arg(out))
}

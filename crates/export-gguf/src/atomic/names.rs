//! The names of temporaries, and finding those that a killed run left.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::sys;

/// What every temporary of this program has in its name.
const MARK: &str = ".export-gguf-tmp-";
/// What the old files of a set have in theirs while the new ones take their places.
const ASIDE: &str = ".export-gguf-old-";
/// Longer names are cut so that the temporary's still fits the usual 255 bytes.
const LONGEST: usize = 200;

/// `.NAME.export-gguf-tmp-PID` beside `target`.
pub(super) fn temp(target: &Path, pid: u32) -> PathBuf {
    marked(target, MARK, pid)
}

/// `.NAME.export-gguf-old-PID` beside `target`.
pub(super) fn aside(target: &Path, pid: u32) -> PathBuf {
    marked(target, ASIDE, pid)
}

fn marked(target: &Path, mark: &str, pid: u32) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(short(target.file_name().unwrap_or_default()));
    name.push(format!("{mark}{pid}"));
    target.with_file_name(name)
}

/// `name`, or for a very long one its beginning and a hash of the rest.
fn short(name: &OsStr) -> OsString {
    let bytes = name.as_encoded_bytes();
    if bytes.len() <= LONGEST {
        return name.to_os_string();
    }
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |h: u64, b| (h ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3));
    let head: String = String::from_utf8_lossy(bytes).chars().take(40).collect();
    OsString::from(format!("{head}-{hash:016x}"))
}

/// `x.gguf` of a split part `x-00002-of-00005.gguf`; other names as they are.
fn whole_name(name: &str) -> String {
    let is_number = |s: &str| s.len() == 5 && s.bytes().all(|b| b.is_ascii_digit());
    let split = name.strip_suffix(".gguf").and_then(|stem| {
        let (rest, count) = stem.rsplit_once("-of-")?;
        let (stem, no) = rest.rsplit_once('-')?;
        (is_number(no) && is_number(count)).then(|| format!("{stem}.gguf"))
    });
    split.unwrap_or_else(|| name.to_owned())
}

/// Removes temporaries of `target`, and of split sets of that name, whose process is gone. What a killed
/// run had moved aside goes back to its place if that is empty, and otherwise goes too: the file that
/// stands there is its successor.
///
/// A temporary is only touched when its lock is free *and* its process id is not running, so a
/// run in another container or on another machine is left alone.
pub(super) fn remove_stale(target: &Path) {
    let dir = super::folder(target);
    let Ok(entries) = fs::read_dir(dir) else { return };
    let wanted = whole_name(&short(target.file_name().unwrap_or_default()).to_string_lossy());
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some((of, pid, moved)) = name.to_str().and_then(parse) else { continue };
        if whole_name(of) != wanted || (pid != std::process::id() && sys::process_runs(pid)) {
            continue;
        }
        let is_file = entry.file_type().is_ok_and(|t| t.is_file());
        if !is_file || !File::open(entry.path()).is_ok_and(|f| sys::try_lock(&f)) {
            continue;
        }
        // Failing to tidy up is no reason not to work.
        let _ = match moved && dir.join(of).symlink_metadata().is_err() {
            true => fs::rename(entry.path(), dir.join(of)),
            false => fs::remove_file(entry.path()),
        };
    }
}

/// The target's name, the process id, and whether it was moved aside, of a name that [`marked`] made.
fn parse(name: &str) -> Option<(&str, u32, bool)> {
    let name = name.strip_prefix('.')?;
    let (of, pid, moved) = match (name.rsplit_once(MARK), name.rsplit_once(ASIDE)) {
        (Some((of, pid)), _) => (of, pid, false),
        (None, Some((of, pid))) => (of, pid, true),
        (None, None) => return None,
    };
    Some((of, pid.parse().ok()?, moved))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporaries_stand_beside_their_target() {
        assert_eq!(temp(Path::new("a/b.gguf"), 7), Path::new("a/.b.gguf.export-gguf-tmp-7"));
        let long = format!("{}.gguf", "x".repeat(250));
        let name = temp(Path::new(&long), u32::MAX);
        assert!(name.as_os_str().len() < 255, "{name:?}");
        assert_ne!(name, temp(Path::new(&format!("{}y.gguf", "x".repeat(249))), u32::MAX));
    }

    #[test]
    fn what_a_killed_exchange_left_is_put_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        // No process has this number: the kernel's limit lies below it.
        let dead = u32::MAX - 1;
        let (first, second) = (at("m-00001-of-00002.gguf"), at("m-00002-of-00002.gguf"));
        fs::write(aside(&first, dead), "old first").unwrap();
        fs::write(aside(&second, dead), "old second").unwrap();
        fs::write(&second, "new second").unwrap();
        fs::write(temp(&first, dead), "unfinished").unwrap();
        remove_stale(&first);
        assert_eq!(fs::read(&first).unwrap(), b"old first");
        assert_eq!(fs::read(&second).unwrap(), b"new second");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn parts_are_known_by_their_set() {
        assert_eq!(whole_name("m-00002-of-00005.gguf"), "m.gguf");
        assert_eq!(whole_name("m-2-of-5.gguf"), "m-2-of-5.gguf");
        assert_eq!(whole_name("m.gguf"), "m.gguf");
    }
}

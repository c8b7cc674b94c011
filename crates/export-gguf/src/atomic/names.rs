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
fn whole_name(name: &[u8]) -> Vec<u8> {
    let is_number = |s: &[u8]| s.len() == 5 && s.iter().all(u8::is_ascii_digit);
    let split = name.strip_suffix(b".gguf").and_then(|stem| {
        let (rest, count) = rsplit_once(stem, "-of-")?;
        let (stem, no) = rsplit_once(rest, "-")?;
        (is_number(no) && is_number(count)).then(|| [stem, b".gguf"].concat())
    });
    split.unwrap_or_else(|| name.to_vec())
}

/// What stands before and behind the last `mark`. Names need not be UTF-8.
fn rsplit_once<'a>(name: &'a [u8], mark: &str) -> Option<(&'a [u8], &'a [u8])> {
    let at = name.windows(mark.len()).rposition(|w| w == mark.as_bytes())?;
    Some((&name[..at], &name[at + mark.len()..]))
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
    let wanted = whole_name(short(target.file_name().unwrap_or_default()).as_encoded_bytes());
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some((of, pid, moved)) = parse(name.as_encoded_bytes()) else { continue };
        if whole_name(of) != wanted || (pid != std::process::id() && sys::process_runs(pid)) {
            continue;
        }
        let is_file = entry.file_type().is_ok_and(|t| t.is_file());
        if !is_file || !File::open(entry.path()).is_ok_and(|f| sys::try_lock(&f)) {
            continue;
        }
        let home = sys::file_name(of).map(|of| dir.join(of)).filter(|_| moved);
        // Failing to tidy up is no reason not to work.
        let _ = match home.filter(|home| home.symlink_metadata().is_err()) {
            Some(home) => fs::rename(entry.path(), home),
            None => fs::remove_file(entry.path()),
        };
    }
}

/// The target's name, the process id, and whether it was moved aside, of a name that [`marked`] made.
fn parse(name: &[u8]) -> Option<(&[u8], u32, bool)> {
    let name = name.strip_prefix(b".")?;
    let (of, pid, moved) = match (rsplit_once(name, MARK), rsplit_once(name, ASIDE)) {
        (Some((of, pid)), _) => (of, pid, false),
        (None, Some((of, pid))) => (of, pid, true),
        (None, None) => return None,
    };
    Some((of, std::str::from_utf8(pid).ok()?.parse().ok()?, moved))
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

    #[cfg(unix)]
    #[test]
    fn names_need_not_be_text() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join(sys::file_name(b"a\xff-00001-of-00002.gguf").unwrap());
        let dead = u32::MAX - 1;
        fs::write(aside(&target, dead), "old").unwrap();
        fs::write(temp(&target, dead), "unfinished").unwrap();
        remove_stale(&target);
        assert_eq!(fs::read(&target).unwrap(), b"old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn parts_are_known_by_their_set() {
        assert_eq!(whole_name(b"m-00002-of-00005.gguf"), b"m.gguf");
        assert_eq!(whole_name(b"m-2-of-5.gguf"), b"m-2-of-5.gguf");
        assert_eq!(whole_name(b"m.gguf"), b"m.gguf");
    }
}

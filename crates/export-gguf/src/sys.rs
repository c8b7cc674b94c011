//! The few things that the standard library does not offer on every platform.
//!
//! Everything here has a plain fallback, so the rest of the crate knows no operating system.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

/// Writes all of `bytes` at `offset`, without moving a file position, so threads can share a file.
#[cfg(unix)]
pub(crate) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

/// As above; Windows writes at an offset but also moves the position, which nobody here uses.
#[cfg(windows)]
pub(crate) fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !bytes.is_empty() {
        let n = file.seek_write(bytes, offset)?;
        if n == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[n..];
        offset += n as u64;
    }
    Ok(())
}

/// A file name of these bytes, where the system has such names.
#[cfg(unix)]
pub(crate) fn file_name(bytes: &[u8]) -> Option<&OsStr> {
    Some(std::os::unix::ffi::OsStrExt::from_bytes(bytes))
}

/// As above, for systems whose names are text.
#[cfg(not(unix))]
pub(crate) fn file_name(bytes: &[u8]) -> Option<&OsStr> {
    std::str::from_utf8(bytes).ok().map(OsStr::new)
}

/// Gives `file` its final length and, where the filesystem can, its disk blocks: a full disk is
/// then known before any work is done.
pub(crate) fn preallocate(file: &File, len: u64) -> io::Result<()> {
    file.set_len(len)?;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if len > 0 {
        use rustix::io::Errno;
        loop {
            match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, len) {
                Ok(()) => break,
                Err(Errno::INTR) => {}
                // Network and exotic filesystems: ask how much is free instead.
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                    let stat = rustix::fs::fstatvfs(file)?;
                    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
                    if stat.f_frsize > 0 && free < len {
                        return Err(Errno::NOSPC.into());
                    }
                    break;
                }
                Err(e) => return Err(e.into()),
            }
        }
    }
    Ok(())
}

/// Takes the exclusive lock of an open file if nobody holds it; `false` if somebody does.
pub(crate) fn try_lock(file: &File) -> bool {
    #[cfg(unix)]
    {
        rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_ok()
    }
    #[cfg(not(unix))]
    {
        file.try_lock().is_ok()
    }
}

/// Whether a process of this id runs. `true` when in doubt.
pub(crate) fn process_runs(pid: u32) -> bool {
    #[cfg(unix)]
    {
        let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
        pid.is_some_and(|p| rustix::process::test_kill_process(p) != Err(rustix::io::Errno::SRCH))
    }
    #[cfg(not(unix))]
    {
        let _ = pid;
        true
    }
}

/// What makes two paths the same file, through symbolic and hard links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileId(u64, u64, Option<std::path::PathBuf>);

/// The identity of an existing file.
pub(crate) fn file_id(path: &Path, meta: &Metadata) -> FileId {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let _ = path;
        FileId(meta.dev(), meta.ino(), None)
    }
    #[cfg(not(unix))]
    {
        let _ = meta;
        FileId(0, 0, path.canonicalize().ok())
    }
}

/// Makes the names in a folder durable. Platforms without that notion do nothing.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        match File::open(dir).and_then(|d| d.sync_all()) {
            // Some filesystems refuse to sync a folder; the rename itself has happened.
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => Ok(()),
            other => other,
        }
    }
    #[cfg(not(unix))]
    {
        let _ = dir;
        Ok(())
    }
}

/// Renames `from` to `to`, refusing to replace an existing `to`.
pub(crate) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use rustix::io::Errno;
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS) => {}
            other => return Ok(other?),
        }
    }
    if to.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    std::fs::rename(from, to)
}

/// A number from a line of `/proc/self/status`, in whatever unit the line has.
fn status_line(key: &str, radix: u32) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let rest = text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':'))?;
    u64::from_str_radix(rest.split_whitespace().next()?, radix).ok()
}

/// The most memory this process ever had resident, mapped file pages included, in bytes.
/// `None` where the system does not say.
#[must_use]
pub fn peak_rss() -> Option<u64> {
    status_line("VmHWM", 10).map(|kib| kib * 1024)
}

/// Whether this process was started with `signal` ignored, as `nohup` does with SIGHUP.
pub(crate) fn is_ignored(signal: i32) -> bool {
    status_line("SigIgn", 16).is_some_and(|mask| (mask >> (signal - 1)) & 1 == 1)
}

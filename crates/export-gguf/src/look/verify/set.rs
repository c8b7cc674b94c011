//! Which files there are to verify: one, or every part of a set, and what the parts say of each other.

use std::path::Path;

use gguf_mmap::{ErrorKind, Mapping, PartName, SplitError, check_set};

use super::structure::examine;
use super::{File, Input, Log};
use crate::Error;

/// Opens the model's files, at least one, and notes what is wrong with each and with the set.
pub(super) fn open(input: &Input, log: &mut Log) -> Result<Vec<File>, Error> {
    let path = input.file.as_path();
    let first = read(Mapping::open(path)?, input.lenient, log);
    let Some(name) = part_name(path, &first, log) else {
        return Ok(vec![first]);
    };
    if name.no() != 1 {
        let (no, count, first) = (name.no(), name.count(), name.part(1).path());
        log.fault(path, SplitError::NotFirst { no, count, first });
    }
    let mut files = vec![first];
    let mut missing = 0;
    for no in (1..=name.count()).filter(|no| *no != name.no()) {
        let path = name.part(no).path();
        match Mapping::open(&path) {
            Ok(mapping) => files.push(read(mapping, input.lenient, log)),
            Err(e) => {
                missing += 1;
                // A set of thousands that is not there at all is one fault, not thousands.
                if missing <= 3 {
                    log.fault(&path, reason(e, no, name.count()));
                }
            }
        }
    }
    if missing > 3 {
        log.fault(path, format_args!("{missing} of {} parts are missing in all", name.count()));
    }
    files.sort_by_key(|f| PartName::parse(f.path()).map(|n| n.no()));
    check(&files, missing == 0, log);
    Ok(files)
}

/// Whether a file is the one that carries the model's metadata: of a set, the first part.
pub(super) fn has_metadata(file: &File) -> bool {
    let name = file.gguf().and_then(|gguf| PartName::of(file.path(), &gguf).ok()?);
    name.is_none_or(|name| name.no() == 1)
}

fn read(mapping: Mapping, lenient: bool, log: &mut Log) -> File {
    let directory = examine(&mapping, lenient, log);
    File { mapping, directory }
}

/// The place of the first file in its set, `None` if it is a file of its own or cannot tell.
fn part_name(path: &Path, file: &File, log: &mut Log) -> Option<PartName> {
    let gguf = file.gguf()?;
    PartName::of(path, &gguf).unwrap_or_else(|e| {
        log.fault(path, e);
        None
    })
}

fn reason(e: gguf_mmap::Error, no: u64, count: u64) -> ErrorKind {
    match e.into_kind() {
        ErrorKind::Open(source) => ErrorKind::Split(SplitError::MissingPart { no, count, source }),
        kind => kind,
    }
}

fn check(files: &[File], complete: bool, log: &mut Log) {
    let parts: Vec<_> = files.iter().filter_map(|f| Some((f.path(), f.gguf()?))).collect();
    for (path, gguf) in &parts {
        let Some(name) = PartName::parse(path) else { continue };
        name.check(gguf).iter().for_each(|e| log.fault(path, e));
    }
    for (i, e) in check_set(&parts) {
        // The count cannot fit while parts are missing, which is a fault already.
        if complete && parts.len() == files.len() || !matches!(e, SplitError::TensorCount { .. }) {
            log.fault(parts[i].0, e);
        }
    }
}

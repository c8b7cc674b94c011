//! The structure of one file. The parser stops at the first fault; to name the others, the fault is
//! mended in a copy of the header, and the parser is asked again.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use gguf_format::{
    Bounds, DEFAULT_ALIGNMENT, Error, ErrorKind, Finding, GgmlType, Gguf, Index, MAX_DIMS, ParseOptions,
    Place, ShapeError, TensorInfo,
};
use gguf_mmap::Mapping;

use super::Log;

/// Faults that are mended and passed by; a file with more is beyond listing.
const MENDED: u64 = 64;

/// What is copied of a header that has to be mended, in bytes: doubled until it is all there, or as much
/// as any real header needs.
const FIRST_COPY: usize = 1 << 20;
const LAST_COPY: usize = 256 << 20;

/// The directory of a file, sound or mended.
pub(super) struct Directory {
    index: Index,
    len: usize,
    /// The mended header; `None` if the file's own is sound.
    header: Option<Vec<u8>>,
    /// Tensors whose values cannot be looked at: their place or type was mended, or they are cut.
    spoilt: Spoilt,
}

/// What mending did to the tensors, by the names they have in the mended header.
#[derive(Default)]
struct Spoilt {
    /// Their place or size is not the file's, or the file ends before they do.
    misplaced: HashSet<String>,
    /// Names given to tensors that had another's, and that name.
    renamed: HashMap<String, String>,
}

impl Spoilt {
    fn has(&self, name: &str) -> bool {
        // Error texts keep the beginning of a long name.
        let begins = |s: &String| s.len() > 64 && name.starts_with(s.as_str());
        self.misplaced.contains(name) || name.len() > 64 && self.misplaced.iter().any(begins)
    }
}

impl Directory {
    fn new(len: usize, index: Index, header: Option<Vec<u8>>, spoilt: Spoilt) -> Self {
        Self { index, len, header, spoilt }
    }

    /// The directory over the header it was made from, which begins `file`.
    pub(super) fn gguf<'a>(&'a self, file: &'a Mapping) -> Option<Gguf<'a>> {
        self.index.view(self.header.as_deref().unwrap_or(file.bytes()))
    }

    /// How many tensors there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether the tensor's bytes are where the directory says.
    pub(super) fn is_sound(&self, tensor: &TensorInfo<'_>) -> bool {
        !self.spoilt.has(tensor.name())
    }

    /// The tensor's name in the file, for a message.
    pub(super) fn name(&self, tensor: &TensorInfo<'_>) -> String {
        let name = self.spoilt.renamed.get(tensor.name()).map_or(tensor.name(), String::as_str);
        name.escape_debug().to_string()
    }
}

/// Reads the directory and notes everything that is wrong with it. `None` if it cannot be read.
pub(super) fn examine(mapping: &Mapping, lenient: bool, log: &mut Log) -> Option<Directory> {
    let path = mapping.path().unwrap_or(Path::new("-"));
    let options = ParseOptions { lenient, bounds: Bounds::Whole };
    let error = match Gguf::parse_with(mapping.bytes(), &options) {
        Ok(gguf) => {
            gguf.findings().iter().for_each(|f| warn(f, path, log));
            let len = gguf.tensors().len();
            return Some(Directory::new(len, gguf.into_index(), None, Spoilt::default()));
        }
        Err(error) => error,
    };
    // Nothing follows what these are about.
    if error.place() == &Place::Header {
        log.fault(path, error);
        return None;
    }
    let before = log.problems.len();
    let directory = mend(mapping, path, lenient, log);
    // The strict reader's complaint is the one to trust if mending did not come upon it.
    if log.problems[before..].iter().all(|p| p.severity != super::Severity::Fault) {
        log.fault(path, error);
    }
    directory
}

fn warn(finding: &Finding, path: &Path, log: &mut Log) {
    // These are named one by one, with what else is odd about single tensors.
    if !matches!(finding, Finding::LongTensorNames { .. }) {
        log.warning(path, finding);
    }
}

fn mend(mapping: &Mapping, path: &Path, lenient: bool, log: &mut Log) -> Option<Directory> {
    let mut copy = FIRST_COPY.min(mapping.len());
    let mut header = mapping.bytes()[..copy].to_vec();
    let mut spoilt = Spoilt::default();
    let mut mended = 0;
    loop {
        let options = ParseOptions { lenient: true, bounds: Bounds::HeaderOnly { file_len: None } };
        let error = match Gguf::parse_with(&header, &options) {
            Ok(gguf) => {
                note(&gguf, mapping.len() as u64, path, lenient, &mut spoilt, log);
                let len = gguf.tensors().len();
                return Some(Directory::new(len, gguf.into_index(), Some(header), spoilt));
            }
            Err(error) => error,
        };
        let limit = mapping.len().min(LAST_COPY);
        if error.is_truncated() && copy < limit {
            let more = copy.saturating_mul(2).min(limit);
            header.extend_from_slice(&mapping.bytes()[copy..more]);
            copy = more;
            continue;
        }
        let misplaced =
            matches!(error.kind(), ErrorKind::Overlap { .. } | ErrorKind::Place { .. } | ErrorKind::Shape(_));
        if let (Place::Tensor(name), true) = (error.place(), misplaced) {
            // A tensor that is in the way wherever it is put, for another's size, cannot be mended.
            if !spoilt.misplaced.insert(name.as_str().to_owned()) {
                return None;
            }
        }
        log.fault(path, &error);
        mended += 1;
        if mended == MENDED {
            log.fault(path, format_args!("{MENDED} faults in the header, the rest was not looked at"));
            return None;
        }
        repair(&mut header, &error, mended, &mut spoilt)?;
    }
}

/// Notes what the lenient reader passes by, and every tensor that the end of the file cuts.
fn note(gguf: &Gguf<'_>, file_len: u64, path: &Path, lenient: bool, spoilt: &mut Spoilt, log: &mut Log) {
    let moved = !spoilt.misplaced.is_empty();
    for finding in gguf.findings() {
        // Where a tensor was moved or shrunk, there is a gap of our own making.
        let ours = matches!(finding, Finding::Gap { .. } | Finding::Reordered(_)) && moved;
        if ours || finding.tensor().is_some_and(|n| spoilt.has(n.as_str())) {
            continue;
        }
        if finding.is_lenient_only() && !lenient {
            log.fault(path, finding);
        } else {
            warn(finding, path, log);
        }
    }
    for tensor in gguf.tensors() {
        let end = tensor.file_offset().saturating_add(tensor.byte_len());
        if end > file_len && tensor.byte_len() > 0 && !spoilt.has(tensor.name()) {
            let cut = (end - file_len).min(tensor.byte_len());
            let name = tensor.name().escape_debug();
            log.fault(
                path,
                format_args!(
                    "tensor '{name}' is cut by {cut} of {} bytes: the file ends at byte {file_len:#x}, \
                     download incomplete",
                    tensor.byte_len()
                ),
            );
            spoilt.misplaced.insert(tensor.name().to_owned());
        }
    }
}

/// Overwrites the field at fault with a harmless value that differs each time. `None` if the fault is of
/// a kind that leaves nothing to go on with.
fn repair(header: &mut [u8], error: &Error, nth: u64, spoilt: &mut Spoilt) -> Option<()> {
    let at = usize::try_from(error.at()).ok()?;
    match error.kind() {
        // Far behind everything, with room for each, and a multiple of any alignment in use.
        ErrorKind::Overlap { .. } | ErrorKind::Place { .. } => {
            put(header, at, &((1_u64 << 60) + (nth << 52)).to_le_bytes())
        }
        // The value stands behind its type.
        ErrorKind::Alignment(_) => put(header, at.checked_add(4)?, &DEFAULT_ALIGNMENT.to_le_bytes()),
        ErrorKind::Shape(ShapeError::Row { .. } | ShapeError::Bytes { .. }) => shrink(header, at),
        // These stand at the first dimension, behind the count of them.
        ErrorKind::Shape(ShapeError::Dimension { .. } | ShapeError::Elements(_)) => {
            shrink(header, at.checked_sub(4)?)
        }
        ErrorKind::NotUtf8(_) | ErrorKind::DuplicateKey { .. } => rename(header, at, nth).map(|_| ()),
        ErrorKind::DuplicateTensor { .. } => {
            let new = rename(header, at.checked_sub(8)?, nth)?;
            if let Place::Tensor(name) = error.place() {
                spoilt.renamed.insert(new, name.as_str().to_owned());
            }
            Some(())
        }
        _ => None,
    }
}

/// Makes the tensor whose count of dimensions is at `at` a single F32.
fn shrink(header: &mut [u8], at: usize) -> Option<()> {
    let count = u32::from_le_bytes(*header.get(at..)?.first_chunk()?);
    let count = usize::try_from(count).ok().filter(|n| *n <= MAX_DIMS)?;
    for axis in 0..count {
        put(header, at + 4 + axis * 8, &1_u64.to_le_bytes())?;
    }
    put(header, at + 4 + count * 8, &GgmlType::F32.0.to_le_bytes())
}

/// Gives the string whose length is at `at` other bytes: letters for `nth`, then dots. One of less than
/// two bytes could not be told from the next.
fn rename(header: &mut [u8], at: usize, nth: u64) -> Option<String> {
    let len = usize::try_from(u64::from_le_bytes(*header.get(at..)?.first_chunk()?)).ok()?;
    let string = header.get_mut(at + 8..)?.get_mut(..len).filter(|s| s.len() >= 2)?;
    string.fill(b'.');
    string[0] = b'A' + u8::try_from(nth / 26).ok()?;
    string[1] = b'A' + u8::try_from(nth % 26).ok()?;
    String::from_utf8(string.to_vec()).ok()
}

fn put(header: &mut [u8], at: usize, bytes: &[u8]) -> Option<()> {
    header.get_mut(at..at.checked_add(bytes.len())?)?.copy_from_slice(bytes);
    Some(())
}

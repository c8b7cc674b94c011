//! The header: everything a file says before its data. Owned and free of lifetimes, so that it can stand next to
//! bytes that are borrowed, owned, mapped, or not there yet.

use crate::{
    Dtype, Error, ErrorKind,
    json::{self, Entry, Tables},
    rules,
};
use std::{fmt, ops::Range};

/// The longest JSON header that is read or written, in bytes: the format's own limit.
pub const MAX_HEADER_LEN: u64 = 100_000_000;

/// Bytes of the length in front of the header.
pub(crate) const LEN_BYTES: usize = 8;

/// A checked header: names, dtypes, shapes and offsets, in the order of the data. Offsets are in bytes.
#[derive(Clone)]
pub struct Header {
    pub(crate) tables: Tables,
    /// Positions in `tables.entries`, in ascending order of their names.
    pub(crate) by_name: Vec<usize>,
    pub(crate) json_len: u64,
    pub(crate) data_len: u64,
}

impl Header {
    /// Checks the header of a file of `file_len` bytes, of which `prefix` is the beginning: at least the whole
    /// header, whatever there is of the data.
    ///
    /// # Errors
    ///
    /// The first rule that is broken, in the order of the README.
    pub fn parse(prefix: &[u8], file_len: u64) -> Result<Self, Error> {
        let text = header_text(prefix)?;
        let after = (text.len() as u64).saturating_add(LEN_BYTES as u64);
        Self::from_text(text, Some(file_len.saturating_sub(after)))
    }

    /// Checks the header of a frame whose end is not known, as one in a stream: all rules but that the data ends
    /// where the file does. [`total_len`](Self::total_len) then says how long the frame is.
    ///
    /// # Errors
    ///
    /// The first rule that is broken.
    pub fn parse_frame(prefix: &[u8]) -> Result<Self, Error> {
        Self::from_text(header_text(prefix)?, None)
    }

    fn from_text(text: &str, data_len: Option<u64>) -> Result<Self, Error> {
        rules::check(json::read(text)?, text.len() as u64, data_len)
    }

    /// Number of tensors.
    pub fn len(&self) -> usize {
        self.tables.entries.len()
    }

    /// Whether there is no tensor. Such a file is legal.
    pub fn is_empty(&self) -> bool {
        self.tables.entries.is_empty()
    }

    /// The tensors, in the order of their data.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = TensorInfo<'_>> + DoubleEndedIterator + Clone {
        self.tables.entries.iter().map(|entry| TensorInfo { header: self, entry })
    }

    /// The tensor of this name, in logarithmic time.
    pub fn tensor(&self, name: &str) -> Option<TensorInfo<'_>> {
        let name_of =
            |&index: &usize| self.tables.entries.get(index).map(|entry| self.tables.text(entry.name));
        let found = self.by_name.binary_search_by(|index| name_of(index).cmp(&Some(name))).ok()?;
        let entry = self.tables.entries.get(*self.by_name.get(found)?)?;
        Some(TensorInfo { header: self, entry })
    }

    /// The tensor that has this byte of the data.
    pub(crate) fn tensor_at(&self, offset: u64) -> Option<TensorInfo<'_>> {
        let entries = &self.tables.entries;
        let entry = entries.get(entries.partition_point(|entry| entry.end <= offset))?;
        Some(TensorInfo { header: self, entry })
    }

    /// The pairs of `__metadata__`, in the order of the file; empty too where there is none.
    pub fn metadata(&self) -> impl ExactSizeIterator<Item = (&str, &str)> + Clone {
        let pairs = self.tables.metadata.as_deref().unwrap_or_default();
        pairs.iter().map(|&(key, value)| (self.tables.text(key), self.tables.text(value)))
    }

    /// The value of this key of `__metadata__`.
    pub fn metadata_value(&self, key: &str) -> Option<&str> {
        self.metadata().find_map(|(k, value)| (k == key).then_some(value))
    }

    /// Whether the header has a `__metadata__`, be it empty.
    pub fn has_metadata(&self) -> bool {
        self.tables.metadata.is_some()
    }

    /// Length of the JSON text in bytes, padding included, the 8 bytes of the length not.
    pub fn json_len(&self) -> u64 {
        self.json_len
    }

    /// Where the data begins in the file, in bytes.
    pub fn data_offset(&self) -> u64 {
        self.json_len.saturating_add(LEN_BYTES as u64)
    }

    /// Length of the data in bytes.
    pub fn data_len(&self) -> u64 {
        self.data_len
    }

    /// Length of the whole frame in bytes: length, header and data.
    pub fn total_len(&self) -> u64 {
        self.data_offset().saturating_add(self.data_len)
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Header")
            .field("metadata", &self.has_metadata().then(|| self.metadata().collect::<Vec<_>>()))
            .field("tensors", &self.tensors().collect::<Vec<_>>())
            .field("json_len", &self.json_len)
            .field("data_len", &self.data_len)
            .finish()
    }
}

/// One tensor of a header, without its data.
#[derive(Clone, Copy)]
pub struct TensorInfo<'h> {
    header: &'h Header,
    entry: &'h Entry,
}

impl<'h> TensorInfo<'h> {
    /// Name, unescaped.
    pub fn name(&self) -> &'h str {
        self.header.tables.text(self.entry.name)
    }

    /// Element type.
    pub fn dtype(&self) -> Dtype {
        self.entry.dtype
    }

    /// Shape, outermost axis first; empty for a scalar.
    pub fn shape(&self) -> &'h [u64] {
        self.header.tables.dims(self.entry.shape)
    }

    /// Number of elements: 1 for a scalar, 0 where an axis is.
    pub fn elements(&self) -> u64 {
        self.shape().iter().fold(1, |n: u64, &dim| n.saturating_mul(dim))
    }

    /// Size of the data in bytes.
    pub fn byte_len(&self) -> u64 {
        self.entry.end.saturating_sub(self.entry.begin)
    }

    /// Where the data lies, in bytes from the beginning of the data section, as `data_offsets` has it.
    pub fn offsets(&self) -> Range<u64> {
        self.entry.begin..self.entry.end
    }

    /// Where the data lies, in bytes from the beginning of the file. It need not be aligned to the element.
    pub fn file_range(&self) -> Range<u64> {
        let base = self.header.data_offset();
        base.saturating_add(self.entry.begin)..base.saturating_add(self.entry.end)
    }
}

impl fmt::Debug for TensorInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorInfo")
            .field("name", &self.name())
            .field("dtype", &self.dtype())
            .field("shape", &self.shape())
            .field("offsets", &self.offsets())
            .finish()
    }
}

/// The announced length of the header, checked against the limit.
pub(crate) fn header_len(prefix: &[u8]) -> Result<u64, Error> {
    let Some(length) = prefix.first_chunk::<LEN_BYTES>() else {
        return Err(Error::new(0, ErrorKind::LengthMissing { have: prefix.len() as u64 }));
    };
    let announced = u64::from_le_bytes(*length);
    if announced > MAX_HEADER_LEN {
        let looks_like = looks_like(prefix);
        return Err(Error::new(0, ErrorKind::HeaderTooLarge { announced, looks_like }));
    }
    Ok(announced)
}

/// The rules up to JSON: length there, small enough, inside the file, UTF-8, an opening brace.
fn header_text(prefix: &[u8]) -> Result<&str, Error> {
    const TEXT_AT: u64 = LEN_BYTES as u64;
    let need = header_len(prefix)?;
    let rest = prefix.get(LEN_BYTES..).unwrap_or_default();
    let Some(bytes) = usize::try_from(need).ok().and_then(|n| rest.get(..n)) else {
        return Err(Error::new(TEXT_AT, ErrorKind::HeaderPastEnd { need, have: rest.len() as u64 }));
    };
    let text = str::from_utf8(bytes)
        .map_err(|bad| Error::new(TEXT_AT.saturating_add(bad.valid_up_to() as u64), ErrorKind::NotUtf8))?;
    match bytes.first().copied() {
        Some(b'{') => Ok(text),
        found => Err(Error::new(TEXT_AT, ErrorKind::NoBrace { found })),
    }
}

/// What a file that is none of ours seems to be: downloads go wrong in few ways.
fn looks_like(bytes: &[u8]) -> Option<&'static str> {
    const KNOWN: &[(&[u8], &str)] = &[
        (b"version https://git-lfs", "a Git LFS pointer"),
        (b"GGUF", "a GGUF file"),
        (b"PK\x03\x04", "a zip archive"),
        (b"\x80", "a pickle"),
        (b"\x89HDF", "an HDF5 file"),
        (b"\x1f\x8b", "a gzip file"),
        (b"<", "a web page or XML"),
        (b"{", "JSON text"),
    ];
    KNOWN.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|&(_, what)| what)
}

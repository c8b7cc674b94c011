//! The directory of a file as numbers: offsets and lengths, no bytes and no lifetime.

use alloc::{borrow::Cow, vec::Vec};

use crate::{Finding, Gguf, KeyValue, TensorInfo, ValueType, cursor::widen, parse, tensor::TensorRecord};

/// The owned result of a parse: positions and sizes only.
///
/// Together with the bytes it was made from, or a copy of just their first [`Index::header_len`]
/// bytes, it is a [`Gguf`] again ([`Index::view`]). So a directory stays usable after the mapping of
/// the file went elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    pub(crate) version: u32,
    pub(crate) alignment: u32,
    pub(crate) header_len: usize,
    pub(crate) data_offset: u64,
    pub(crate) keys: Vec<KeyRecord>,
    pub(crate) tensors: Vec<TensorRecord>,
    /// Positions in `keys` and `tensors` by ascending name.
    pub(crate) keys_by_name: Vec<usize>,
    pub(crate) tensors_by_name: Vec<usize>,
    pub(crate) findings: Vec<Finding>,
}

/// Where one metadata entry is. Small, because a file may have millions of tiny entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyRecord {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) key_len: u16,
    pub(crate) ty: ValueType,
}

impl KeyRecord {
    /// The key's bytes as `(start, len)`.
    pub(crate) fn key(&self) -> (usize, usize) {
        (self.start.saturating_add(8), self.key_len.into())
    }

    /// Where the value starts, wire type first.
    pub(crate) fn value(&self) -> usize {
        let (start, len) = self.key();
        start.saturating_add(len)
    }
}

/// The bytes of `(start, len)`, none if they are not all there.
pub(crate) fn slice(bytes: &[u8], (start, len): (usize, usize)) -> &[u8] {
    start.checked_add(len).and_then(|end| bytes.get(start..end)).unwrap_or_default()
}

impl Index {
    /// The directory over `bytes`: the whole file or at least its first [`Self::header_len`] bytes.
    /// `None` if they are fewer, or do not start as the parsed file did.
    ///
    /// Other bytes of the same beginning give wrong names and values but never a panic.
    #[must_use]
    pub fn view<'a>(&'a self, bytes: &'a [u8]) -> Option<Gguf<'a>> {
        let counts = (widen(self.tensors.len()), widen(self.keys.len()));
        let same = parse::fixed_header(bytes)
            .is_ok_and(|h| (h.version, (h.tensors, h.keys)) == (self.version, counts));
        (same && bytes.len() >= self.header_len).then_some(Gguf { bytes, index: Cow::Borrowed(self) })
    }

    /// Bytes from the start of the file to the end of the tensor infos, before the padding.
    #[must_use]
    pub const fn header_len(&self) -> u64 {
        widen(self.header_len)
    }

    /// What is odd about the file.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The entry of `record` in `bytes`.
    pub(crate) fn key_value<'a>(bytes: &'a [u8], record: &KeyRecord) -> KeyValue<'a> {
        let value = bytes.get(record.value()..record.end).unwrap_or_default();
        KeyValue {
            key: str::from_utf8(slice(bytes, record.key())).unwrap_or_default(),
            raw: bytes.get(record.start..record.end).unwrap_or_default(),
            payload: value.get(4..).unwrap_or_default(),
            ty: record.ty,
        }
    }

    /// The tensor of `record` in `bytes`.
    pub(crate) fn tensor_info<'a>(&self, bytes: &'a [u8], record: &TensorRecord) -> TensorInfo<'a> {
        TensorInfo {
            name: str::from_utf8(slice(bytes, record.name())).unwrap_or_default(),
            record: *record,
            data_offset: self.data_offset,
        }
    }
}

/// The name of key `i`.
pub(crate) fn key_name<'a>(bytes: &'a [u8], keys: &[KeyRecord], i: usize) -> &'a [u8] {
    keys.get(i).map_or(&[], |r| slice(bytes, r.key()))
}

/// The name of tensor `i`.
pub(crate) fn tensor_name<'a>(bytes: &'a [u8], tensors: &[TensorRecord], i: usize) -> &'a [u8] {
    tensors.get(i).map_or(&[], |r| slice(bytes, r.name()))
}

/// The position with the name `wanted`, where `order` lists positions by name.
pub(crate) fn find<'a>(order: &[usize], wanted: &str, name: impl Fn(usize) -> &'a [u8]) -> Option<usize> {
    let at = order.binary_search_by(|i| name(*i).cmp(wanted.as_bytes())).ok()?;
    order.get(at).copied()
}

/// Positions in the order of their names, or the positions of two that have the same name, the
/// earlier one first. `name` gives the bytes of position `i`.
pub(crate) fn by_name<'a>(count: usize, name: impl Fn(usize) -> &'a [u8]) -> Result<Vec<usize>, [usize; 2]> {
    let mut order: Vec<usize> = (0..count).collect();
    // Stable, so that of two equal names the earlier comes first. Sorting is immune to chosen
    // collisions, unlike a hash table with a fixed seed.
    order.sort_by(|a, b| name(*a).cmp(name(*b)));
    match order.iter().zip(order.iter().skip(1)).find(|(a, b)| name(**a) == name(**b)) {
        Some((first, second)) => Err([*first, *second]),
        None => Ok(order),
    }
}

//! From bytes to an [`Index`]: the header, front to back, then the checks that need all of it.

use alloc::vec::Vec;

use crate::{
    Bounds, Error, ErrorKind, Finding, Index, Name, ParseOptions, Place, ValueType,
    cursor::{Cursor, widen},
    entry,
    extent::{self, Extent},
    index::{KeyRecord, by_name, find, key_name, tensor_name},
    shape,
    sniff::Foreign,
    tensor::TensorRecord,
};

/// The key that sets the alignment of tensor data.
pub const ALIGNMENT_KEY: &str = "general.alignment";

/// The alignment of files that do not say.
pub const DEFAULT_ALIGNMENT: u32 = 32;

/// Longest key in bytes, as the GGUF specification has it, and longest tensor name that is read.
pub const MAX_NAME: u64 = 65_535;

/// Longest tensor name in bytes that llama.cpp reads.
pub const MAX_GGML_NAME: u64 = 63;

const MAGIC: &[u8; 4] = b"GGUF";

/// Bytes of magic, version and the two counts.
const FIXED_LEN: u64 = 24;

pub(crate) fn parse(bytes: &[u8], options: &ParseOptions) -> Result<Index, Error> {
    let file_len = match options.bounds {
        Bounds::Whole => Some(widen(bytes.len())),
        Bounds::HeaderOnly { file_len } => file_len,
    };
    let fixed = fixed_header(bytes)?;
    let room = file_len.map_or(u64::MAX, |len| len.saturating_sub(FIXED_LEN));
    count("tensor", fixed.tensors, 8, room)?;
    count("key", fixed.keys, 16, room)?;
    let mut cursor = Cursor::new(bytes);
    cursor.take("fixed header", FIXED_LEN)?;

    // Both lists grow as entries are read: memory follows the bytes consumed, not the counts.
    let mut keys = Vec::new();
    for index in 0..fixed.keys {
        keys.push(entry::key(&mut cursor, index)?);
    }
    let keys_by_name = by_name(keys.len(), |i| key_name(bytes, &keys, i))
        .map_err(|pair| duplicate_key(bytes, &keys, pair))?;
    let alignment = alignment(bytes, &keys, &keys_by_name)?;

    let mut tensors = Vec::new();
    for index in 0..fixed.tensors {
        tensors.push(entry::tensor(&mut cursor, index, options.lenient)?);
    }
    let tensors_by_name = by_name(tensors.len(), |i| tensor_name(bytes, &tensors, i))
        .map_err(|pair| duplicate_tensor(bytes, &tensors, pair))?;

    let mut findings = odd(bytes, &keys, alignment, &tensors);
    let header_len = cursor.index();
    let data_offset = shape::pad(cursor.at(), alignment)
        .ok_or_else(|| Error::new(cursor.at(), ErrorKind::Alignment(alignment)))?;
    let extent = Extent { bytes, alignment, data_offset, file_len };
    extent::resolve(&extent, &mut tensors, options.lenient, &mut findings)?;
    Ok(Index {
        version: fixed.version,
        alignment,
        header_len,
        data_offset,
        keys,
        tensors,
        keys_by_name,
        tensors_by_name,
        findings,
    })
}

/// The first [`FIXED_LEN`] bytes.
pub(crate) struct FixedHeader {
    pub(crate) version: u32,
    pub(crate) tensors: u64,
    pub(crate) keys: u64,
}

/// Reads the fixed header; the version is one of those supported, the counts are anything.
pub(crate) fn fixed_header(bytes: &[u8]) -> Result<FixedHeader, Error> {
    if bytes.is_empty() {
        return Err(Error::new(0, ErrorKind::Empty));
    }
    if !bytes.starts_with(MAGIC) && !MAGIC.starts_with(bytes) {
        return Err(Error::new(0, ErrorKind::NotGguf(Foreign::sniff(bytes))));
    }
    let mut cursor = Cursor::new(bytes);
    cursor.take("magic", 4)?;
    let at = cursor.at();
    let version = match cursor.u32("version")? {
        version @ (2 | 3) => version,
        // A small number stored big-endian has its low 16 bits empty.
        version if version != 0 && version.trailing_zeros() >= 16 => {
            return Err(Error::new(at, ErrorKind::BigEndian { version: version.swap_bytes() }));
        }
        version => return Err(Error::new(at, ErrorKind::Version(version))),
    };
    Ok(FixedHeader { version, tensors: cursor.u64("tensor count")?, keys: cursor.u64("key count")? })
}

/// Checks one of the two counts. An entry has more than one byte, so a count above `have`, the bytes
/// after the fixed header, is wrong and not worth a walk to the end.
fn count(what: &'static str, count: u64, at: u64, have: u64) -> Result<(), Error> {
    if count > have {
        return Err(Error::new(at, ErrorKind::Count { what, count, have }));
    }
    Ok(())
}

/// The alignment as `general.alignment` has it, checked before anything is laid out by it.
fn alignment(bytes: &[u8], keys: &[KeyRecord], order: &[usize]) -> Result<u32, Error> {
    let found = find(order, ALIGNMENT_KEY, |i| key_name(bytes, keys, i));
    let Some(record) = found.and_then(|i| keys.get(i)) else {
        return Ok(DEFAULT_ALIGNMENT);
    };
    let kv = Index::key_value(bytes, record);
    check_alignment(kv.value_type(), kv.payload()).map_err(|kind| {
        let place = Place::Value(Name::new(ALIGNMENT_KEY.as_bytes()));
        Error::new(widen(record.value()), kind).within(place)
    })
}

/// What is odd about the header. Names are counted, not listed: there may be thousands.
fn odd(bytes: &[u8], keys: &[KeyRecord], alignment: u32, tensors: &[TensorRecord]) -> Vec<Finding> {
    let keys = (0..keys.len()).map(|i| key_name(bytes, keys, i)).filter(|key| !key.is_ascii());
    let names = (0..tensors.len()).map(|i| tensor_name(bytes, tensors, i));
    let long = names.clone().filter(|name| widen(name.len()) > MAX_GGML_NAME);
    let mut findings = Vec::new();
    if let Some((first, count)) = first_and_count(keys) {
        findings.push(Finding::KeysNotAscii { first, count });
    }
    if alignment < 8 {
        findings.push(Finding::SmallAlignment(alignment));
    }
    if let Some((first, count)) = first_and_count(long) {
        findings.push(Finding::LongTensorNames { first, count });
    }
    findings.extend((0..).zip(names).filter(|(_, n)| n.is_empty()).map(|(i, _)| Finding::EmptyTensorName(i)));
    findings
}

fn first_and_count<'a>(mut names: impl Iterator<Item = &'a [u8]>) -> Option<(Name, u64)> {
    let first = Name::new(names.next()?);
    Some((first, widen(names.count()).saturating_add(1)))
}

/// An alignment from its wire value.
pub(crate) fn check_alignment(ty: ValueType, payload: &[u8]) -> Result<u32, ErrorKind> {
    match (ty, payload.first_chunk()) {
        (ValueType::U32, Some(le)) => {
            let value = u32::from_le_bytes(*le);
            if value.is_power_of_two() { Ok(value) } else { Err(ErrorKind::Alignment(value)) }
        }
        _ => Err(ErrorKind::AlignmentType(ty)),
    }
}

fn duplicate_key(bytes: &[u8], keys: &[KeyRecord], [first, second]: [usize; 2]) -> Error {
    let at = keys.get(second).map_or(0, |r| r.start);
    let kind = ErrorKind::DuplicateKey { key: Name::new(key_name(bytes, keys, second)), first: widen(first) };
    Error::new(widen(at), kind).within(Place::Key(widen(second)))
}

fn duplicate_tensor(bytes: &[u8], tensors: &[TensorRecord], [first, second]: [usize; 2]) -> Error {
    let at = tensors.get(second).map_or(0, |r| r.name_start);
    Error::new(widen(at), ErrorKind::DuplicateTensor { first: widen(first) })
        .within(Place::Tensor(Name::new(tensor_name(bytes, tensors, second))))
}

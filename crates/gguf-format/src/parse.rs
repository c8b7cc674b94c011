//! From bytes to an [`Index`]: the header, front to back, then the checks that need all of it.

use alloc::vec::Vec;

use crate::{
    Bounds, Error, ErrorKind, Finding, GgmlType, Index, Name, ParseOptions, Place, ValueType,
    cursor::{Cursor, MAX_LEN, widen},
    extent::{self, Extent},
    index::{KeyRecord, by_name, slice},
    shape::{self, MAX_DIMS, ShapeError},
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
    let mut findings = Vec::new();
    let mut keys = Vec::new();
    for index in 0..fixed.keys {
        keys.push(key(&mut cursor, index, &mut findings)?);
    }
    let keys_by_name = by_name(keys.len(), |i| keys.get(i).map_or(&[], |r| slice(bytes, r.key())))
        .map_err(|pair| duplicate_key(bytes, &keys, pair))?;
    let alignment = alignment(bytes, &keys, &keys_by_name, &mut findings)?;

    let mut tensors = Vec::new();
    for index in 0..fixed.tensors {
        tensors.push(tensor(&mut cursor, index, options.lenient, &mut findings)?);
    }
    let tensors_by_name = by_name(tensors.len(), |i| tensors.get(i).map_or(&[], |r| slice(bytes, r.name())))
        .map_err(|pair| duplicate_tensor(bytes, &tensors, pair))?;

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

fn key(cursor: &mut Cursor<'_>, index: u64, findings: &mut Vec<Finding>) -> Result<KeyRecord, Error> {
    let (start, at) = (cursor.index(), cursor.at());
    let place = |e: Error| e.within(Place::Key(index));
    let key = cursor.string("key", MAX_NAME).map_err(place)?;
    if key.is_empty() {
        return Err(place(Error::new(at, ErrorKind::EmptyKey)));
    }
    if str::from_utf8(key).is_err() {
        return Err(place(Error::new(at, ErrorKind::NotUtf8(Name::new(key)))));
    }
    if !key.is_ascii() {
        findings.push(Finding::KeyNotAscii(Name::new(key)));
    }
    let ty = value(cursor).map_err(|e| e.within(Place::Value(Name::new(key))))?;
    Ok(KeyRecord { start, end: cursor.index(), key_len: short(key), ty })
}

/// The length of a name, which [`MAX_NAME`] bounds.
fn short(name: &[u8]) -> u16 {
    u16::try_from(name.len()).unwrap_or(u16::MAX)
}

/// Passes over a value and returns its wire type.
pub(crate) fn value(cursor: &mut Cursor<'_>) -> Result<ValueType, Error> {
    let at = cursor.at();
    let id = cursor.u32("value type")?;
    let ty = ValueType::from_id(id).ok_or_else(|| Error::new(at, ErrorKind::ValueType(id)))?;
    let (element, len) = if ty == ValueType::Array { array(cursor)? } else { (ty, 1) };
    match element.size() {
        Some(size) => cursor.skip("value", len.saturating_mul(size.into()))?,
        None => cursor.skip_strings(len)?,
    }
    Ok(ty)
}

/// Element type and length of an array.
fn array(cursor: &mut Cursor<'_>) -> Result<(ValueType, u64), Error> {
    let at = cursor.at();
    let id = cursor.u32("array element type")?;
    match ValueType::from_id(id) {
        Some(ValueType::Array) => Err(Error::new(at, ErrorKind::NestedArray)),
        Some(element) => Ok((element, cursor.length("array", MAX_LEN)?)),
        None => Err(Error::new(at, ErrorKind::ElementType(id))),
    }
}

/// The alignment as `general.alignment` has it, checked before anything is laid out by it.
fn alignment(
    bytes: &[u8],
    keys: &[KeyRecord],
    order: &[usize],
    findings: &mut Vec<Finding>,
) -> Result<u32, Error> {
    let name = |i: &usize| keys.get(*i).map(|r| slice(bytes, r.key()));
    let found = order.binary_search_by(|i| name(i).cmp(&Some(ALIGNMENT_KEY.as_bytes())));
    let Some(record) = found.ok().and_then(|at| keys.get(*order.get(at)?)) else {
        return Ok(DEFAULT_ALIGNMENT);
    };
    let kv = Index::key_value(bytes, record);
    match check_alignment(kv.value_type(), kv.payload()) {
        Ok(value) => {
            if value < 8 {
                findings.push(Finding::SmallAlignment(value));
            }
            Ok(value)
        }
        Err(kind) => {
            let place = Place::Value(Name::new(ALIGNMENT_KEY.as_bytes()));
            Err(Error::new(widen(record.value()), kind).within(place))
        }
    }
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

fn tensor(
    cursor: &mut Cursor<'_>,
    index: u64,
    lenient: bool,
    findings: &mut Vec<Finding>,
) -> Result<TensorRecord, Error> {
    let at = cursor.at();
    let place = |e: Error| e.within(Place::TensorName(index));
    let name = cursor.string("tensor name", MAX_NAME).map_err(place)?;
    if str::from_utf8(name).is_err() {
        return Err(place(Error::new(at, ErrorKind::NotUtf8(Name::new(name)))));
    }
    if name.is_empty() {
        // Nobody names a tensor so; it is what a reader out of step makes of a run of zeros.
        if !lenient {
            return Err(place(Error::new(at, ErrorKind::EmptyName)));
        }
        findings.push(Finding::EmptyTensorName(index));
    }
    if widen(name.len()) > MAX_GGML_NAME {
        findings.push(Finding::LongTensorName { name: Name::new(name), len: widen(name.len()) });
    }
    let name_start = cursor.index().saturating_sub(name.len());
    shaped(cursor, name_start, short(name), lenient).map_err(|e| e.within(Place::Tensor(Name::new(name))))
}

/// The part of a tensor info after the name.
fn shaped(
    cursor: &mut Cursor<'_>,
    name_start: usize,
    name_len: u16,
    lenient: bool,
) -> Result<TensorRecord, Error> {
    let shape = |at, e: ShapeError| Error::new(at, ErrorKind::Shape(e));
    let at = cursor.at();
    let count = cursor.u32("number of dimensions")?;
    let n_dims = u8::try_from(count)
        .ok()
        .filter(|n| usize::from(*n) <= MAX_DIMS)
        .ok_or_else(|| shape(at, ShapeError::Dimensions(count)))?;
    let at = cursor.at();
    let mut dims = [1; MAX_DIMS];
    for dim in dims.iter_mut().take(n_dims.into()) {
        *dim = cursor.u64("dimension")?;
    }
    shape::elements(&dims).map_err(|e| shape(at, e))?;
    let at = cursor.at();
    let ty = GgmlType(cursor.u32("tensor type")?);
    if !lenient {
        shape::Geometry::of(ty).map_err(|e| shape(at, e))?;
    }
    let offset = cursor.u64("tensor offset")?;
    Ok(TensorRecord {
        name_start,
        name_len,
        n_dims,
        dims,
        ty,
        block_len: 0,
        block_bytes: 0,
        offset,
        byte_len: 0,
    })
}

fn duplicate_key(bytes: &[u8], keys: &[KeyRecord], [first, second]: [usize; 2]) -> Error {
    let (start, key) = keys.get(second).map_or((0, (0, 0)), |r| (r.start, r.key()));
    let kind = ErrorKind::DuplicateKey { key: Name::new(slice(bytes, key)), first: widen(first) };
    Error::new(widen(start), kind).within(Place::Key(widen(second)))
}

fn duplicate_tensor(bytes: &[u8], tensors: &[TensorRecord], [first, second]: [usize; 2]) -> Error {
    let name = tensors.get(second).map_or((0, 0), |r| r.name());
    Error::new(widen(name.0), ErrorKind::DuplicateTensor { first: widen(first) })
        .within(Place::Tensor(Name::new(slice(bytes, name))))
}

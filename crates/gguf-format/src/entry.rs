//! The two kinds of header entries, read one at a time: metadata and tensor infos.

use crate::{
    Error, ErrorKind, GgmlType, MAX_NAME, Name, Place, ValueType,
    cursor::{Cursor, MAX_LEN},
    index::KeyRecord,
    shape::{self, MAX_DIMS, ShapeError},
    tensor::TensorRecord,
};

/// Reads a metadata entry; the value is passed over.
pub(crate) fn key(cursor: &mut Cursor<'_>, index: u64) -> Result<KeyRecord, Error> {
    let (start, at) = (cursor.index(), cursor.at());
    let place = |e: Error| e.within(Place::Key(index));
    let key = cursor.string("key", MAX_NAME).map_err(place)?;
    if key.is_empty() {
        return Err(place(Error::new(at, ErrorKind::EmptyKey)));
    }
    if str::from_utf8(key).is_err() {
        return Err(place(Error::new(at, ErrorKind::NotUtf8(Name::new(key)))));
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

/// Reads a tensor info. Block geometry and size are left open.
pub(crate) fn tensor(cursor: &mut Cursor<'_>, index: u64, lenient: bool) -> Result<TensorRecord, Error> {
    let at = cursor.at();
    let place = |e: Error| e.within(Place::TensorName(index));
    let name = cursor.string("tensor name", MAX_NAME).map_err(place)?;
    if str::from_utf8(name).is_err() {
        return Err(place(Error::new(at, ErrorKind::NotUtf8(Name::new(name)))));
    }
    // Nobody names a tensor so; it is what a reader out of step makes of a run of zeros.
    if name.is_empty() && !lenient {
        return Err(place(Error::new(at, ErrorKind::EmptyName)));
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

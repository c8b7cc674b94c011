//! The rules that need all tensors at once: unique names, data without holes, overlaps or a rest, sizes.

use crate::{
    Error, ErrorKind, Header,
    dtype::SizeFault,
    header::LEN_BYTES,
    json::{Entry, Tables},
};

/// Sorts the tables once and checks them. `data_len` is what follows the header, where that is known.
pub(crate) fn check(mut tables: Tables, json_len: u64, data_len: Option<u64>) -> Result<Header, Error> {
    // Stable, so that empty tensors at one offset keep the order of the file. Most files are sorted already.
    let key = |entry: &Entry| (entry.begin, entry.end);
    if !tables.entries.is_sorted_by_key(key) {
        tables.entries.sort_by_key(key);
    }
    let by_name = sorted_names(&tables)?;
    let end = contiguous(&tables)?;
    if let Some(have) = data_len {
        covered(&tables, json_len, end, have)?;
    }
    tables.entries.iter().try_for_each(|entry| sized(&tables, entry))?;
    Ok(Header { tables, by_name, json_len, data_len: end })
}

/// Positions in the order of the names, no two of which are equal.
fn sorted_names(tables: &Tables) -> Result<Vec<usize>, Error> {
    let name = |&index: &usize| tables.entries.get(index).map(|entry| tables.text(entry.name));
    let mut order: Vec<usize> = (0..tables.entries.len()).collect();
    // The merge sort of the standard library takes the runs of names that writers leave in linear time.
    order.sort_by(|a, b| name(a).cmp(&name(b)));
    let twice = order.windows(2).find_map(|pair| match pair {
        [a, b] if name(a) == name(b) => Some((tables.entries.get(*a)?, tables.entries.get(*b)?)),
        _ => None,
    });
    match twice {
        None => Ok(order),
        Some((a, b)) => {
            let kind = ErrorKind::DuplicateKey { key: tables.text(a.name).into(), inside: None };
            Err(Error::new(file_at(a.at.max(b.at)), kind))
        }
    }
}

/// Each tensor begins where the one before ends; returns where the last one ends.
fn contiguous(tables: &Tables) -> Result<u64, Error> {
    let mut expected = 0;
    for entry in &tables.entries {
        let &Entry { begin, end, .. } = entry;
        if end < begin || begin != expected {
            let tensor = tables.text(entry.name).into();
            let kind = if end < begin {
                ErrorKind::ReversedOffsets { tensor, begin, end }
            } else if begin > expected {
                ErrorKind::Hole { tensor, begin, expected }
            } else {
                ErrorKind::Overlap { tensor, begin, expected }
            };
            return Err(Error::new(file_at(entry.at), kind));
        }
        expected = end;
    }
    Ok(expected)
}

/// The data ends where the last tensor does.
fn covered(tables: &Tables, json_len: u64, need: u64, have: u64) -> Result<(), Error> {
    let data_at = json_len.saturating_add(LEN_BYTES as u64);
    match have.checked_sub(need) {
        Some(0) => Ok(()),
        Some(extra) => Err(Error::new(data_at.saturating_add(need), ErrorKind::TrailingBytes { extra })),
        None => {
            let cut = tables.entries.iter().find(|entry| entry.end > have);
            let tensor = cut.map(|entry| tables.text(entry.name)).unwrap_or_default().into();
            let kind = ErrorKind::DataTruncated { tensor, need, have };
            Err(Error::new(data_at.saturating_add(have), kind))
        }
    }
}

/// Dtype and shape take as many bytes as the offsets span.
fn sized(tables: &Tables, entry: &Entry) -> Result<(), Error> {
    let dims = tables.dims(entry.shape);
    let have = entry.end.saturating_sub(entry.begin);
    let size = entry.dtype.byte_len(dims);
    if matches!(size, Ok(need) if need == have) {
        return Ok(());
    }
    let (tensor, dtype, shape) = (tables.text(entry.name).into(), entry.dtype, dims.into());
    let kind = match size {
        Ok(need) => ErrorKind::SizeMismatch { tensor, dtype, shape, need, have },
        Err(SizeFault::Overflow) => ErrorKind::SizeOverflow { tensor, dtype, shape },
        Err(SizeFault::SubByte { bits }) => ErrorKind::SubByte { tensor, dtype, shape, bits },
    };
    Err(Error::new(file_at(entry.at), kind))
}

/// A position in the header's text as one in the file.
fn file_at(text_at: usize) -> u64 {
    (text_at as u64).saturating_add(LEN_BYTES as u64)
}

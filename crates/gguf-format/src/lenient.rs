//! Lenient placement: tensors may lie anywhere within the file, but not on each other.

use alloc::vec::Vec;

use crate::{
    Error, ErrorKind, Finding,
    extent::{Extent, Q2},
    shape::{Geometry, ShapeError, pad},
    tensor::TensorRecord,
};

/// Places the tensors of a file that is not laid out as ggml demands; fills in geometry and size.
/// Returns where the data ends, counted from its start; `None` if only the end of the file tells.
pub(crate) fn resolve(
    file: &Extent<'_>,
    tensors: &mut [TensorRecord],
    undecided: bool,
    findings: &mut Vec<Finding>,
) -> Result<Option<u64>, Error> {
    let placed = match place(file, tensors, Q2::Upstream) {
        Err(error) if undecided => match place(file, tensors, Q2::Fork) {
            // As in strict mode, a file cut short must not pass for one in the smaller layout.
            Ok(placed) if !error.is_truncated() || file.ends_at(placed.end) => {
                findings.push(Finding::ForkQ2_0);
                placed
            }
            _ => return Err(error),
        },
        placed => {
            if undecided && placed.is_ok() && place(file, tensors, Q2::Fork).is_ok() {
                findings.push(Finding::AmbiguousQ2_0);
            }
            placed?
        }
    };
    report(file, tensors, &placed, findings);
    for (t, size) in tensors.iter_mut().zip(&placed.sizes) {
        let geometry = size.geometry.unwrap_or(Geometry { len: 0, bytes: 0 });
        (t.block_len, t.block_bytes, t.byte_len) = (geometry.len, geometry.bytes, size.len.unwrap_or(0));
    }
    let open = placed.order.last().and_then(|i| placed.sizes.get(*i)).is_some_and(|s| s.geometry.is_none());
    Ok((!open).then_some(placed.end))
}

/// Where the tensors of a file are by one reading of it.
struct Placed {
    sizes: Vec<Sized>,
    /// Positions of the tensors that have bytes, by ascending offset.
    order: Vec<usize>,
    end: u64,
}

struct Sized {
    /// `None` for an unknown or removed type.
    geometry: Option<Geometry>,
    /// `None` if it cannot be told.
    len: Option<u64>,
}

fn place(file: &Extent<'_>, tensors: &[TensorRecord], q2: Q2) -> Result<Placed, Error> {
    let mut sizes = tensors.iter().map(|t| sized(file, t, q2)).collect::<Result<Vec<_>, _>>()?;
    // Tensors without bytes overlap nothing and have no place in the order.
    let mut order: Vec<_> = tensors.iter().enumerate().filter(|(_, t)| t.elements() != 0).collect();
    order.sort_by_key(|(_, t)| t.offset);

    let data_end = file.file_len.map(|len| len.saturating_sub(file.data_offset));
    let mut before: Option<(&TensorRecord, u64)> = None;
    for (k, (i, t)) in order.iter().enumerate() {
        if let Some((other, end)) = before.filter(|(_, end)| *end > t.offset) {
            let kind = ErrorKind::Overlap { offset: t.offset, other: file.name(other), end };
            return Err(file.error(t, Extent::offset_at(t), kind));
        }
        let Some(s) = sizes.get_mut(*i) else { continue };
        if s.len.is_none() {
            let next = order.get(k.saturating_add(1)).map(|(_, next)| next.offset);
            s.len = next.or(data_end).map(|end| end.saturating_sub(t.offset));
        }
        // A tensor with elements has a byte at least, whatever its type.
        before = Some((t, file.end(t, s.len.unwrap_or(0).max(1))?));
    }
    let mut end = 0;
    for (t, s) in tensors.iter().zip(&sizes) {
        end = file.end(t, s.len.unwrap_or(0))?.max(end);
    }
    let least = |t: &TensorRecord, s: &Sized| s.len.unwrap_or(0).max(u64::from(t.elements() != 0));
    file.within(tensors.iter().zip(&sizes).map(|(t, s)| (t, least(t, s))))?;
    Ok(Placed { sizes, order: order.into_iter().map(|(i, _)| i).collect(), end })
}

fn sized(file: &Extent<'_>, t: &TensorRecord, q2: Q2) -> Result<Sized, Error> {
    match file.sized(t, q2) {
        Ok((geometry, len)) => Ok(Sized { geometry: Some(geometry), len: Some(len) }),
        Err(e) if matches!(e.kind(), ErrorKind::Shape(ShapeError::Type(_))) => {
            Ok(Sized { geometry: None, len: (t.elements() == 0).then_some(0) })
        }
        Err(e) => Err(e),
    }
}

fn report(file: &Extent<'_>, tensors: &[TensorRecord], placed: &Placed, findings: &mut Vec<Finding>) {
    for (t, s) in tensors.iter().zip(&placed.sizes) {
        if s.geometry.is_none() {
            findings.push(Finding::Undecodable {
                name: file.name(t),
                ty: t.ty,
                extent_known: s.len.is_some(),
            });
        }
        if t.elements() != 0 && t.offset.checked_rem(file.alignment.into()) != Some(0) {
            findings.push(Finding::Unaligned {
                name: file.name(t),
                offset: t.offset,
                alignment: file.alignment,
            });
        }
    }
    let mut end = 0_u64;
    for i in &placed.order {
        let (Some(t), Some(s)) = (tensors.get(*i), placed.sizes.get(*i)) else { continue };
        if pad(end, file.alignment).is_some_and(|end| end < t.offset) {
            findings.push(Finding::Gap { name: file.name(t), bytes: t.offset.saturating_sub(end) });
        }
        end = t.offset.saturating_add(s.len.unwrap_or(0));
    }
    let mut listed = tensors.iter().filter(|t| t.elements() != 0);
    let mut before = listed.next().map_or(0, |t| t.offset);
    let early = listed.find(|t| core::mem::replace(&mut before, t.offset) > t.offset);
    if let Some(t) = early {
        findings.push(Finding::Reordered(file.name(t)));
    }
}

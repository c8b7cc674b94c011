//! Where the tensors' bytes are: which block layout id 42 has, and whether the data is all there.

use alloc::vec::Vec;

use crate::{
    Error, ErrorKind, Finding, GgmlType, Name, Place,
    cursor::widen,
    index::slice,
    lenient,
    shape::{Geometry, pad},
    tensor::TensorRecord,
};

/// What the checks need to know of the file.
pub(crate) struct Extent<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) alignment: u32,
    pub(crate) data_offset: u64,
    pub(crate) file_len: Option<u64>,
}

/// How to read type id 42.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Q2 {
    Upstream,
    Fork,
}

/// Checks where each tensor lies, fills in geometry and size, and adds what is odd to `findings`.
pub(crate) fn resolve(
    file: &Extent<'_>,
    tensors: &mut [TensorRecord],
    lenient: bool,
    findings: &mut Vec<Finding>,
) -> Result<(), Error> {
    let undecided = tensors.iter().any(|t| t.ty == GgmlType::Q2_0 && t.elements() != 0);
    let (q2, end) = match file.strict(tensors, Q2::Upstream) {
        Ok(end) => {
            // The fork's blocks are smaller. If they fit as well, the file's length may still tell:
            // then it ends where ggml's layout says, and not where the fork's does.
            let fork = undecided.then(|| file.strict(tensors, Q2::Fork).ok()).flatten();
            if fork.is_some_and(|fork| !file.ends_at(end) || file.ends_at(fork)) {
                findings.push(Finding::AmbiguousQ2_0);
            }
            (Q2::Upstream, end)
        }
        Err(error) => {
            let fork = if undecided { file.strict(tensors, Q2::Fork).ok() } else { None };
            match fork {
                // A file cut short must not pass for one in the smaller layout.
                Some(end) if !error.is_truncated() || file.ends_at(end) => {
                    findings.push(Finding::ForkQ2_0);
                    (Q2::Fork, end)
                }
                _ if lenient => {
                    if let Some(end) = lenient::resolve(file, tensors, undecided, findings)? {
                        file.tail(tensors, end, findings);
                    }
                    return Ok(());
                }
                _ => return Err(error),
            }
        }
    };
    for t in tensors.iter_mut() {
        let (geometry, len) = file.sized(t, q2)?;
        (t.block_len, t.block_bytes, t.byte_len) = (geometry.len, geometry.bytes, len);
    }
    file.tail(tensors, end, findings);
    Ok(())
}

impl Extent<'_> {
    pub(crate) fn error(&self, t: &TensorRecord, at: u64, kind: ErrorKind) -> Error {
        Error::new(at, kind).within(Place::Tensor(self.name(t)))
    }

    pub(crate) fn name(&self, t: &TensorRecord) -> Name {
        Name::new(slice(self.bytes, t.name()))
    }

    /// The file offset of a tensor info's fields after the name.
    fn at(t: &TensorRecord) -> u64 {
        let (start, len) = t.name();
        widen(start.saturating_add(len))
    }

    /// The file offset of a tensor info's last field, the offset.
    pub(crate) fn offset_at(t: &TensorRecord) -> u64 {
        Self::at(t).saturating_add(u64::from(t.n_dims).saturating_mul(8)).saturating_add(8)
    }

    pub(crate) fn sized(&self, t: &TensorRecord, q2: Q2) -> Result<(Geometry, u64), Error> {
        let geometry = match q2 {
            Q2::Fork if t.ty == GgmlType::Q2_0 => Ok(Geometry::FORK_Q2_0),
            _ => Geometry::of(t.ty),
        };
        geometry
            .and_then(|g| Ok((g, g.byte_len(t.ty, t.row(), t.elements())?)))
            .map_err(|e| self.error(t, Self::at(t), ErrorKind::Shape(e)))
    }

    /// The end of a tensor, counted from the start of the data; its end in the file fits as well.
    pub(crate) fn end(&self, t: &TensorRecord, len: u64) -> Result<u64, Error> {
        t.offset
            .checked_add(len)
            .filter(|end| end.checked_add(self.data_offset).is_some())
            .ok_or_else(|| self.error(t, Self::offset_at(t), ErrorKind::Place { offset: t.offset, len }))
    }

    /// Tensors must follow each other in order, padded, without gaps, as ggml reads them. Returns
    /// where the last one ends, counted from the start of the data.
    fn strict(&self, tensors: &[TensorRecord], q2: Q2) -> Result<u64, Error> {
        let mut expected = 0;
        let mut last = 0;
        for t in tensors {
            let (_, len) = self.sized(t, q2)?;
            if t.offset != expected {
                return Err(self.error(t, Self::offset_at(t), self.misplaced(t, expected)));
            }
            last = self.end(t, len)?;
            expected = pad(last, self.alignment).ok_or_else(|| {
                self.error(t, Self::offset_at(t), ErrorKind::Place { offset: t.offset, len })
            })?;
        }
        // The sizes are known to be sizes by now.
        self.within(tensors.iter().map(|t| (t, self.sized(t, q2).map_or(0, |(_, len)| len))))?;
        Ok(last)
    }

    fn misplaced(&self, t: &TensorRecord, expected: u64) -> ErrorKind {
        let offset = t.offset;
        if offset.checked_rem(self.alignment.into()) == Some(0) {
            ErrorKind::Offset { offset, expected }
        } else {
            ErrorKind::Unaligned { offset, alignment: self.alignment }
        }
    }

    /// Every tensor must end within the file. `sizes` are those of tensors that [`Self::end`] let in.
    pub(crate) fn within<'t>(
        &self,
        sizes: impl Iterator<Item = (&'t TensorRecord, u64)>,
    ) -> Result<(), Error> {
        let Some(file_len) = self.file_len else {
            return Ok(());
        };
        let mut cut: Option<(&TensorRecord, u64)> = None;
        let mut file_end = file_len;
        for (t, len) in sizes {
            let end = self.data_offset.saturating_add(t.offset).saturating_add(len);
            if len != 0 && end > file_len {
                cut = cut.or(Some((t, len)));
                file_end = file_end.max(end);
            }
        }
        let Some((t, len)) = cut else {
            return Ok(());
        };
        let start = self.data_offset.saturating_add(t.offset);
        let missing = file_end.saturating_sub(file_len);
        Err(self.error(t, file_len, ErrorKind::DataTruncated { start, len, file_len, missing }))
    }

    /// True if the file's length is `end` of the data, with or without padding.
    pub(crate) fn ends_at(&self, end: u64) -> bool {
        let data_len = self.file_len.map(|len| len.saturating_sub(self.data_offset));
        data_len.is_none_or(|len| len == end || Some(len) == pad(end, self.alignment))
    }

    /// Compares the end of the data with the end of the file.
    fn tail(&self, tensors: &[TensorRecord], end: u64, findings: &mut Vec<Finding>) {
        let full = pad(end, self.alignment).and_then(|end| end.checked_add(self.data_offset));
        let (Some(file_len), Some(full)) = (self.file_len, full) else {
            return;
        };
        // Without tensors, files end at the infos or at the padding: both are in use.
        if file_len < full && !tensors.is_empty() {
            findings.push(Finding::MissingTailPadding { bytes: full.saturating_sub(file_len) });
        }
        if file_len > full {
            findings.push(Finding::TrailingBytes { at: full, bytes: file_len.saturating_sub(full) });
        }
    }
}

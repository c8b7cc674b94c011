//! The places of everything in a file, worked out from the declarations alone.

use alloc::{string::String, vec::Vec};
use core::fmt;

use crate::{
    Element, Name, Sink, Stream, StreamError, WriteError,
    builder::{Declared, Entry},
    cursor::widen,
    extent::{self, Extent},
    shape::pad,
    wire::put_string,
};

/// A file's header bytes, and the place of each tensor's data.
#[derive(Clone, PartialEq, Eq)]
pub struct Layout {
    header: Vec<u8>,
    header_padding: u64,
    alignment: u32,
    tensors: Vec<TensorLayout>,
    total_len: u64,
}

/// Where one tensor's data goes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorLayout {
    /// The tensor's name.
    pub name: String,
    /// Where its data starts in the file.
    pub file_offset: u64,
    /// The number of its bytes.
    pub byte_len: u64,
    /// The number of zero bytes after it.
    pub padding_after: u64,
}

impl Layout {
    pub(crate) fn new(keys: &[Entry], declared: &[Declared], alignment: u32) -> Result<Self, WriteError> {
        let mut header = b"GGUF".to_vec();
        3_u32.put(&mut header);
        widen(declared.len()).put(&mut header);
        widen(keys.len()).put(&mut header);
        for entry in keys {
            put_string(entry.key.as_bytes(), &mut header);
            header.extend_from_slice(&entry.value);
        }
        let mut tensors = Vec::with_capacity(declared.len());
        let mut offset = 0_u64;
        for t in declared {
            put_string(t.name.as_bytes(), &mut header);
            // At most four dimensions were let in.
            u32::try_from(t.dims.len()).unwrap_or_default().put(&mut header);
            for dim in &t.dims {
                dim.put(&mut header);
            }
            t.ty.0.put(&mut header);
            offset.put(&mut header);
            let end = offset.checked_add(t.byte_len).ok_or(WriteError::TooLarge)?;
            let next = pad(end, alignment).ok_or(WriteError::TooLarge)?;
            tensors.push(TensorLayout {
                name: t.name.clone(),
                file_offset: offset,
                byte_len: t.byte_len,
                padding_after: next.saturating_sub(end),
            });
            offset = next;
        }
        // Padding comes before data; a file without tensors ends with its metadata, as gguf-py has it.
        // It is counted, not stored: an alignment may be gigabytes.
        let header_len = widen(header.len());
        let padded = if declared.is_empty() { Some(header_len) } else { pad(header_len, alignment) };
        let padded = padded.ok_or(WriteError::TooLarge)?;
        let total_len = padded.checked_add(offset).ok_or(WriteError::TooLarge)?;
        for t in &mut tensors {
            // Every offset is at most the last, which the sum above has let in.
            t.file_offset = t.file_offset.saturating_add(padded);
        }
        let header_padding = padded.saturating_sub(header_len);
        let layout = Self { header, header_padding, alignment, tensors, total_len };
        layout.check_q2_0(declared)?;
        Ok(layout)
    }

    /// Type id 42 has two layouts that only sizes and offsets tell apart: a file with the fork's must
    /// read back as that.
    fn check_q2_0(&self, declared: &[Declared]) -> Result<(), WriteError> {
        let Some(fork) = declared.iter().find(|t| t.fork) else {
            return Ok(());
        };
        let start = self.header_padding.saturating_add(widen(self.header.len()));
        let places = self.tensors.iter().map(|place| place.file_offset.saturating_sub(start));
        let mut records: Vec<_> = declared.iter().zip(places).map(|(t, offset)| t.record(offset)).collect();
        let file = Extent {
            bytes: &[],
            alignment: self.alignment,
            data_offset: start,
            file_len: Some(self.total_len),
        };
        let read = extent::resolve(&file, &mut records, false, &mut Vec::new());
        let same = declared.iter().zip(&records).all(|(t, r)| t.byte_len == r.byte_len);
        if read.is_ok() && same { Ok(()) } else { Err(WriteError::ForkQ2_0(Name::new(fork.name.as_bytes()))) }
    }

    /// The file from its start to the end of the tensor infos.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &self.header
    }

    /// The number of zero bytes between the header and the first tensor's data.
    #[must_use]
    pub const fn header_padding(&self) -> u64 {
        self.header_padding
    }

    /// The alignment of tensor data in bytes.
    #[must_use]
    pub const fn alignment(&self) -> u32 {
        self.alignment
    }

    /// The places of the tensors, in declaration order.
    #[must_use]
    pub fn tensors(&self) -> &[TensorLayout] {
        &self.tensors
    }

    /// The length of the whole file in bytes.
    #[must_use]
    pub const fn total_len(&self) -> u64 {
        self.total_len
    }

    /// The whole file, from each tensor's bytes in declaration order.
    ///
    /// # Errors
    /// If their number or a length is not as declared.
    pub fn whole(&self, data: &[&[u8]]) -> Result<Vec<u8>, WriteError> {
        if data.len() != self.tensors.len() {
            let (given, declared) = (widen(data.len()), widen(self.tensors.len()));
            return Err(WriteError::TensorCount { given, declared });
        }
        for (t, bytes) in self.tensors.iter().zip(data) {
            if widen(bytes.len()) != t.byte_len {
                let name = Name::new(t.name.as_bytes());
                return Err(WriteError::DataLen { name, given: widen(bytes.len()), declared: t.byte_len });
            }
        }
        let mut stream = self.stream(Vec::new());
        for bytes in data {
            stream.write(bytes).map_err(StreamError::into_write)?;
        }
        stream.finish().map_err(StreamError::into_write)
    }

    /// Writes the file piece by piece: the header at the first write, then the data.
    pub const fn stream<S: Sink>(&self, sink: S) -> Stream<'_, S> {
        Stream::new(self, sink)
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layout")
            .field("header", &self.header.len())
            .field("tensors", &self.tensors)
            .field("total_len", &self.total_len)
            .finish()
    }
}

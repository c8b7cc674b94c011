//! Tensors with their data: over borrowed bytes, and over bytes of one's own.

use crate::{Dtype, Error, Header, TensorInfo};
use std::fmt;

/// A whole file in memory, borrowed. Nothing is copied but the names and shapes of the header.
#[derive(Clone)]
pub struct SafeTensors<'d> {
    header: Header,
    bytes: &'d [u8],
}

impl<'d> SafeTensors<'d> {
    /// Checks a whole file.
    ///
    /// # Errors
    ///
    /// The first rule that is broken, in the order of the README.
    pub fn parse(bytes: &'d [u8]) -> Result<Self, Error> {
        Ok(Self { header: Header::parse(bytes, bytes.len() as u64)?, bytes })
    }

    /// The same from bytes that it takes.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn parse_owned(bytes: Vec<u8>) -> Result<SafeTensorsBuf, Error> {
        Ok(SafeTensorsBuf { header: Header::parse(&bytes, bytes.len() as u64)?, bytes })
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The header, for use after the bytes are gone.
    pub fn into_header(self) -> Header {
        self.header
    }

    /// The bytes it was parsed from.
    pub fn bytes(&self) -> &'d [u8] {
        self.bytes
    }

    /// Number of tensors.
    pub fn len(&self) -> usize {
        self.header.len()
    }

    /// Whether there is no tensor.
    pub fn is_empty(&self) -> bool {
        self.header.is_empty()
    }

    /// The tensors, in the order of their data.
    pub fn tensors(&self) -> impl Iterator<Item = TensorView<'_, 'd>> {
        let bytes = self.bytes;
        self.header.tensors().filter_map(move |info| info.view(bytes))
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<TensorView<'_, 'd>> {
        self.header.tensor(name)?.view(self.bytes)
    }
}

impl fmt::Debug for SafeTensors<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SafeTensors").field(&self.header).finish()
    }
}

/// A whole file in memory of its own.
#[derive(Clone)]
pub struct SafeTensorsBuf {
    header: Header,
    bytes: Vec<u8>,
}

impl SafeTensorsBuf {
    pub(crate) fn new(header: Header, bytes: Vec<u8>) -> Self {
        Self { header, bytes }
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The whole file: length, header and data.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Gives the bytes back.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Number of tensors.
    pub fn len(&self) -> usize {
        self.header.len()
    }

    /// Whether there is no tensor.
    pub fn is_empty(&self) -> bool {
        self.header.is_empty()
    }

    /// The tensors, in the order of their data.
    pub fn tensors(&self) -> impl Iterator<Item = TensorView<'_, '_>> {
        self.header.tensors().filter_map(|info| info.view(&self.bytes))
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<TensorView<'_, '_>> {
        self.header.tensor(name)?.view(&self.bytes)
    }
}

impl fmt::Debug for SafeTensorsBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SafeTensorsBuf").field(&self.header).finish()
    }
}

/// A tensor and its data, which may outlive the header.
#[derive(Clone, Copy)]
pub struct TensorView<'h, 'd> {
    info: TensorInfo<'h>,
    data: &'d [u8],
}

impl<'h> TensorInfo<'h> {
    /// This tensor in the bytes of its file, of which it needs only those up to its own end. `None` if they end
    /// before.
    pub fn view<'d>(&self, file: &'d [u8]) -> Option<TensorView<'h, 'd>> {
        let range = self.file_range();
        let data = file.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)?;
        Some(TensorView { info: *self, data })
    }
}

impl<'h, 'd> TensorView<'h, 'd> {
    /// What the header says of it.
    pub fn info(&self) -> TensorInfo<'h> {
        self.info
    }

    /// Name, unescaped.
    pub fn name(&self) -> &'h str {
        self.info.name()
    }

    /// Element type.
    pub fn dtype(&self) -> Dtype {
        self.info.dtype()
    }

    /// Shape, outermost axis first; empty for a scalar.
    pub fn shape(&self) -> &'h [u64] {
        self.info.shape()
    }

    /// The elements, little-endian, rows of the last axis together. They may lie at any address: read them with
    /// `from_le_bytes`, do not cast.
    pub fn data(&self) -> &'d [u8] {
        self.data
    }
}

impl fmt::Debug for TensorView<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TensorView").field(&self.info).finish()
    }
}

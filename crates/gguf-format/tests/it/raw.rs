//! Files put together byte by byte, so that any part of them can be wrong.

use gguf_format::ValueType;

/// A file whose parts are written as given, right or wrong.
#[derive(Clone)]
pub(crate) struct Raw {
    pub(crate) magic: [u8; 4],
    pub(crate) version: u32,
    /// The counts of the fixed header, if not those of the parts.
    pub(crate) counts: (Option<u64>, Option<u64>),
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) infos: Vec<Vec<u8>>,
    pub(crate) alignment: usize,
    pub(crate) data: Vec<u8>,
}

impl Raw {
    /// No keys, no tensors, no data.
    pub(crate) fn new() -> Self {
        Self {
            magic: *b"GGUF",
            version: 3,
            counts: (None, None),
            keys: vec![],
            infos: vec![],
            alignment: 32,
            data: vec![],
        }
    }

    /// One key and one F32 tensor of 8 elements with its data: a valid file to go wrong from.
    pub(crate) fn small() -> Self {
        Self::new().string("general.architecture", b"llama").info("a.weight", &[8], 0, 0).data(32)
    }

    /// An entry of any value type and payload.
    pub(crate) fn key(mut self, key: &[u8], ty: u32, payload: &[u8]) -> Self {
        self.keys.push([&string(key)[..], &ty.to_le_bytes(), payload].concat());
        self
    }

    pub(crate) fn string(self, key: &str, value: &[u8]) -> Self {
        self.key(key.as_bytes(), ValueType::String.id(), &string(value))
    }

    pub(crate) fn u32(self, key: &str, value: u32) -> Self {
        self.key(key.as_bytes(), ValueType::U32.id(), &value.to_le_bytes())
    }

    /// An array entry of any element type and claimed length.
    pub(crate) fn array(self, key: &str, element: u32, len: u64, elements: &[u8]) -> Self {
        let payload = [&element.to_le_bytes()[..], &len.to_le_bytes(), elements].concat();
        self.key(key.as_bytes(), ValueType::Array.id(), &payload)
    }

    /// `general.alignment`, by which the data is then placed.
    pub(crate) fn align(mut self, alignment: u32) -> Self {
        self.alignment = alignment as usize;
        self.u32("general.alignment", alignment)
    }

    pub(crate) fn info(self, name: &str, dims: &[u64], ty: u32, offset: u64) -> Self {
        let n_dims = u32::try_from(dims.len()).unwrap();
        self.info_as(name.as_bytes(), n_dims, dims, ty, offset)
    }

    pub(crate) fn info_as(mut self, name: &[u8], n_dims: u32, dims: &[u64], ty: u32, offset: u64) -> Self {
        let mut info = string(name);
        info.extend(n_dims.to_le_bytes());
        info.extend(dims.iter().flat_map(|d| d.to_le_bytes()));
        info.extend(ty.to_le_bytes());
        info.extend(offset.to_le_bytes());
        self.infos.push(info);
        self
    }

    /// `len` bytes of data, counting up from 1.
    pub(crate) fn data(mut self, len: usize) -> Self {
        self.data = (0..len).map(|i| (i % 255) as u8 + 1).collect();
        self
    }

    /// Zeros after the data up to the alignment.
    pub(crate) fn pad(mut self) -> Self {
        self.data.resize(self.data.len().next_multiple_of(self.alignment), 0);
        self
    }

    pub(crate) fn claims(mut self, tensors: u64, keys: u64) -> Self {
        self.counts = (Some(tensors), Some(keys));
        self
    }

    /// Everything before the data, not padded.
    pub(crate) fn header(&self) -> Vec<u8> {
        let mut out = [&self.magic[..], &self.version.to_le_bytes()].concat();
        out.extend(self.counts.0.unwrap_or(self.infos.len() as u64).to_le_bytes());
        out.extend(self.counts.1.unwrap_or(self.keys.len() as u64).to_le_bytes());
        out.extend(self.keys.iter().flatten());
        out.extend(self.infos.iter().flatten());
        out
    }

    /// The file: header, padding, data. Without data there is no padding either.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = self.header();
        if !self.data.is_empty() {
            out.resize(out.len().next_multiple_of(self.alignment), 0);
        }
        out.extend(&self.data);
        out
    }
}

/// A string as it stands in a file.
pub(crate) fn string(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u64).to_le_bytes()[..], bytes].concat()
}

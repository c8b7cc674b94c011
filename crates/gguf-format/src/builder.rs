//! Declaring a file: its metadata and its tensors.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    string::String,
    vec::Vec,
};
use core::fmt;

use crate::{
    ALIGNMENT_KEY, DEFAULT_ALIGNMENT, ErrorKind, GgmlType, Gguf, KeyValue, Layout, MAX_GGML_NAME, MAX_NAME,
    Name, TensorInfo, ToValue, ValueType, WriteError,
    cursor::{Cursor, widen},
    entry::value,
    parse::check_alignment,
    shape::{self, Geometry, MAX_DIMS},
    tensor::TensorRecord,
};

/// Collects what a file shall contain; [`Builder::layout`] then fixes where everything goes.
///
/// Metadata keeps the order in which keys were first set. The alignment is what the key
/// `general.alignment` says, 32 without it: there is no second place where it could be set.
#[derive(Clone, Default)]
pub struct Builder {
    keys: Vec<Entry>,
    key_index: BTreeMap<String, usize>,
    tensors: Vec<Declared>,
    tensor_names: BTreeSet<String>,
    long_names: bool,
}

/// A key and the bytes of its value, wire type first.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) value: Vec<u8>,
}

/// A declared tensor.
#[derive(Clone)]
pub(crate) struct Declared {
    pub(crate) name: String,
    pub(crate) dims: Vec<u64>,
    pub(crate) ty: GgmlType,
    pub(crate) byte_len: u64,
    /// In the fork's layout of `Q2_0`.
    pub(crate) fork: bool,
}

impl Declared {
    /// The tensor as a parser would find it.
    pub(crate) fn record(&self, offset: u64) -> TensorRecord {
        let mut dims = [1; MAX_DIMS];
        for (to, from) in dims.iter_mut().zip(&self.dims) {
            *to = *from;
        }
        let n_dims = u8::try_from(self.dims.len()).unwrap_or(u8::MAX);
        TensorRecord {
            name_start: 0,
            name_len: 0,
            n_dims,
            dims,
            ty: self.ty,
            block_len: 0,
            block_bytes: 0,
            offset,
            byte_len: 0,
        }
    }
}

impl Builder {
    /// A file without metadata and tensors.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// All metadata of a parsed file, none of its tensors.
    #[must_use]
    pub fn from_gguf(gguf: &Gguf<'_>) -> Self {
        let mut builder = Self::new();
        builder.copy_all(gguf, |_| true);
        builder
    }

    /// Sets a key: in place if it is there, else at the end. The Rust type of the value picks the
    /// wire type. A key that cannot be written is reported by [`Self::layout`].
    #[expect(clippy::needless_pass_by_value, reason = "callers write literals and references alike")]
    pub fn set(&mut self, key: &str, value: impl ToValue) -> &mut Self {
        let mut bytes = value.value_type().id().to_le_bytes().to_vec();
        value.put_value(&mut bytes);
        self.put(key, bytes)
    }

    /// Copies an entry verbatim: in place if its key is there, else at the end.
    pub fn copy(&mut self, entry: &KeyValue<'_>) -> &mut Self {
        let head = widen(entry.key().len()).saturating_add(8);
        let value = usize::try_from(head).ok().and_then(|head| entry.raw().get(head..));
        self.put(entry.key(), value.unwrap_or_default().to_vec())
    }

    /// Copies every entry whose key `keep` accepts, verbatim and in order.
    pub fn copy_all(&mut self, gguf: &Gguf<'_>, mut keep: impl FnMut(&str) -> bool) -> &mut Self {
        for entry in gguf.metadata() {
            if keep(entry.key()) {
                self.copy(&entry);
            }
        }
        self
    }

    /// Removes a key; says whether it was there.
    pub fn remove(&mut self, key: &str) -> bool {
        let Some(at) = self.key_index.remove(key) else {
            return false;
        };
        self.keys.remove(at);
        for later in self.key_index.values_mut().filter(|i| **i > at) {
            *later = later.saturating_sub(1);
        }
        true
    }

    /// Sets `general.alignment`, a power of two in bytes. It is then written even if it is 32.
    pub fn align(&mut self, alignment: u32) -> &mut Self {
        self.set(ALIGNMENT_KEY, alignment)
    }

    /// Allows tensor names of up to [`MAX_NAME`] bytes, which llama.cpp does not read: it stops at
    /// [`MAX_GGML_NAME`].
    pub fn allow_long_names(&mut self) -> &mut Self {
        self.long_names = true;
        self
    }

    /// Declares the next tensor. `dims` is in ggml's `ne` order, the row length first.
    ///
    /// # Errors
    /// If the name is empty, too long or taken, or if dimensions and type give no size.
    pub fn tensor(&mut self, name: &str, dims: &[u64], ty: GgmlType) -> Result<&mut Self, WriteError> {
        let byte_len = Geometry::of(ty)
            .and_then(|geometry| {
                let elements = shape::elements(dims)?;
                geometry.byte_len(ty, dims.first().copied().unwrap_or(1), elements)
            })
            .map_err(|error| WriteError::Shape { name: Name::new(name.as_bytes()), error })?;
        let tensor = Declared { name: name.into(), dims: dims.to_vec(), ty, byte_len, fork: false };
        self.declare(tensor, self.long_names)
    }

    /// Declares the next tensor as it was read: its name may be long, and `Q2_0` keeps its block
    /// layout.
    ///
    /// # Errors
    /// If the name is empty or taken, or the type is unknown or removed: a file with such a tensor
    /// could not be read back.
    pub fn copy_tensor(&mut self, tensor: &TensorInfo<'_>) -> Result<&mut Self, WriteError> {
        if let Err(error) = Geometry::of(tensor.ty()) {
            return Err(WriteError::Shape { name: Name::new(tensor.name().as_bytes()), error });
        }
        let declared = Declared {
            name: tensor.name().into(),
            dims: tensor.dims().to_vec(),
            ty: tensor.ty(),
            byte_len: tensor.byte_len(),
            fork: tensor.ty() == GgmlType::Q2_0 && !tensor.decodable(),
        };
        self.declare(declared, true)
    }

    fn declare(&mut self, tensor: Declared, long: bool) -> Result<&mut Self, WriteError> {
        let shown = || Name::new(tensor.name.as_bytes());
        let (len, max) = (widen(tensor.name.len()), if long { MAX_NAME } else { MAX_GGML_NAME });
        if len == 0 {
            return Err(WriteError::EmptyName);
        }
        if len > max {
            return Err(WriteError::NameTooLong { name: shown(), len, max });
        }
        if self.tensor_names.contains(&tensor.name) {
            return Err(WriteError::DuplicateTensor(shown()));
        }
        self.tensor_names.insert(tensor.name.clone());
        self.tensors.push(tensor);
        Ok(self)
    }

    /// Where everything goes. Pure: the builder can go on.
    ///
    /// # Errors
    /// If a key cannot be written, `general.alignment` is no alignment, the file would be longer than
    /// 2^64 bytes, or a tensor in the fork's layout of `Q2_0` would not read back as that.
    pub fn layout(&self) -> Result<Layout, WriteError> {
        for entry in &self.keys {
            entry.check()?;
        }
        let alignment = match self.key_index.get(ALIGNMENT_KEY).and_then(|at| self.keys.get(*at)) {
            Some(entry) => entry.alignment()?,
            None => DEFAULT_ALIGNMENT,
        };
        Layout::new(&self.keys, &self.tensors, alignment)
    }

    fn put(&mut self, key: &str, value: Vec<u8>) -> &mut Self {
        match self.key_index.get(key).and_then(|at| self.keys.get_mut(*at)) {
            Some(entry) => entry.value = value,
            None => {
                self.key_index.insert(key.into(), self.keys.len());
                self.keys.push(Entry { key: key.into(), value });
            }
        }
        self
    }
}

impl Entry {
    fn check(&self) -> Result<(), WriteError> {
        let (key, len) = (Name::new(self.key.as_bytes()), widen(self.key.len()));
        if len == 0 {
            return Err(WriteError::EmptyKey);
        }
        if len > MAX_NAME {
            return Err(WriteError::KeyTooLong { key, len });
        }
        let mut cursor = Cursor::new(&self.value);
        if value(&mut cursor).is_err() || cursor.left() != 0 {
            return Err(WriteError::Copied(key));
        }
        Ok(())
    }

    fn alignment(&self) -> Result<u32, WriteError> {
        let (id, payload) = self.value.split_first_chunk().ok_or(WriteError::EmptyKey)?;
        let ty = ValueType::from_id(u32::from_le_bytes(*id)).unwrap_or(ValueType::Array);
        check_alignment(ty, payload).map_err(|kind| match kind {
            ErrorKind::Alignment(value) => WriteError::Alignment(value),
            _ => WriteError::AlignmentType(ty),
        })
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("keys", &self.keys.iter().map(|e| &e.key).collect::<Vec<_>>())
            .field("tensors", &self.tensors.iter().map(|t| &t.name).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

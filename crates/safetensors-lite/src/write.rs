//! Writing, without a file: tensors are declared, laid out as upstream's writer lays them out, and the bytes of
//! the header are known before any data is.

use crate::{
    Dtype, Header, MAX_HEADER_LEN, TensorInfo, TensorView,
    dtype::SizeFault,
    error::{Dims, Quoted},
    header::LEN_BYTES,
};
use std::{cmp::Reverse, collections::HashSet, fmt, fmt::Write as _};

/// Why tensors cannot be written.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteError {
    /// A name, or a key of the metadata, that was given before.
    Duplicate {
        /// The name.
        name: String,
    },
    /// A tensor called `__metadata__`.
    ReservedName,
    /// A size that does not fit 64 bits.
    SizeOverflow {
        /// Tensor name.
        tensor: String,
        /// Its dtype.
        dtype: Dtype,
        /// Its shape.
        shape: Vec<u64>,
    },
    /// Elements of a sub-byte dtype that do not fill whole bytes.
    SubByte {
        /// Tensor name.
        tensor: String,
        /// Its dtype.
        dtype: Dtype,
        /// Its shape.
        shape: Vec<u64>,
        /// Its size in bits.
        bits: u64,
    },
    /// All tensors together do not fit 64 bits.
    TotalOverflow,
    /// The header would be longer than [`MAX_HEADER_LEN`], so that no reader would take the file.
    HeaderTooLarge {
        /// Its length in bytes.
        len: u64,
    },
    /// Data of another length than dtype and shape take.
    DataLength {
        /// Tensor name.
        tensor: String,
        /// Bytes that dtype and shape take.
        need: u64,
        /// Bytes given.
        have: u64,
    },
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate { name } => write!(f, "duplicate name {}", Quoted(name)),
            Self::ReservedName => f.write_str("a tensor cannot be called \"__metadata__\""),
            Self::SizeOverflow { tensor, dtype, shape } => {
                write!(f, "tensor {}: size of {dtype} {} overflows 64 bits", Quoted(tensor), Dims(shape))
            }
            Self::SubByte { tensor, dtype, shape, bits } => write!(
                f,
                "tensor {}: {dtype} {} takes {bits} bits, not whole bytes",
                Quoted(tensor),
                Dims(shape)
            ),
            Self::TotalOverflow => f.write_str("size of all tensors overflows 64 bits"),
            Self::HeaderTooLarge { len } => {
                write!(f, "header too large: {len} bytes, at most {MAX_HEADER_LEN} allowed")
            }
            Self::DataLength { tensor, need, have } => {
                write!(f, "tensor {}: data needs {need} bytes, {have} given", Quoted(tensor))
            }
        }
    }
}

impl std::error::Error for WriteError {}

#[derive(Debug, Clone)]
struct Declared {
    name: String,
    dtype: Dtype,
    shape: Vec<u64>,
    byte_len: u64,
}

/// Tensors and metadata to be written, in any order.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    metadata: Option<Vec<(String, String)>>,
    tensors: Vec<Declared>,
    names: HashSet<String>,
}

impl Builder {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The metadata and the tensors of a header, for a copy of its file.
    ///
    /// # Errors
    ///
    /// None for a header that was read; the signature leaves room for [`WriteError`].
    pub fn from_header(header: &Header) -> Result<Self, WriteError> {
        let pairs = || header.metadata().map(|(key, value)| (key.into(), value.into())).collect();
        let mut builder = Self { metadata: header.has_metadata().then(pairs), ..Self::default() };
        for tensor in header.tensors() {
            builder.tensor(tensor.name(), tensor.dtype(), tensor.shape())?;
        }
        Ok(builder)
    }

    /// Sets a pair of `__metadata__`: in its place if the key is there, else at the end. Order is kept.
    pub fn metadata(&mut self, key: &str, value: &str) -> &mut Self {
        let pairs = self.metadata.get_or_insert_default();
        match pairs.iter_mut().find(|(k, _)| k == key) {
            Some((_, old)) => *old = value.into(),
            None => pairs.push((key.into(), value.into())),
        }
        self
    }

    /// Declares a tensor.
    ///
    /// # Errors
    ///
    /// [`WriteError`]: the name is taken or reserved, or dtype and shape have no size in bytes.
    pub fn tensor(&mut self, name: &str, dtype: Dtype, shape: &[u64]) -> Result<&mut Self, WriteError> {
        let byte_len = dtype.byte_len(shape).map_err(|fault| {
            let (tensor, shape) = (name.into(), shape.into());
            match fault {
                SizeFault::Overflow => WriteError::SizeOverflow { tensor, dtype, shape },
                SizeFault::SubByte { bits } => WriteError::SubByte { tensor, dtype, shape, bits },
            }
        })?;
        if name == "__metadata__" {
            return Err(WriteError::ReservedName);
        }
        if !self.names.insert(name.into()) {
            return Err(WriteError::Duplicate { name: name.into() });
        }
        self.tensors.push(Declared { name: name.into(), dtype, shape: shape.into(), byte_len });
        Ok(self)
    }

    /// The same tensors in several builders, each with at most `max_bytes` of data or a single tensor; at least one.
    pub(crate) fn split(&self, max_bytes: u64) -> Vec<Self> {
        let empty = Self { metadata: self.metadata.clone(), ..Self::default() };
        let (mut parts, mut part, mut len) = (Vec::new(), empty.clone(), 0u64);
        for tensor in &self.tensors {
            let longer = len.saturating_add(tensor.byte_len);
            if longer > max_bytes && !part.tensors.is_empty() {
                parts.push(std::mem::replace(&mut part, empty.clone()));
                len = tensor.byte_len;
            } else {
                len = longer;
            }
            part.tensors.push(tensor.clone());
        }
        parts.push(part);
        parts
    }

    /// Lays the file out: tensors by descending [`Dtype`], then by name, without padding between them; the header
    /// padded with spaces to a multiple of 8.
    ///
    /// # Errors
    ///
    /// [`WriteError`]: the header is too large, or the data is.
    pub fn layout(&self) -> Result<Layout, WriteError> {
        let mut sorted: Vec<&Declared> = self.tensors.iter().collect();
        sorted.sort_by(|a, b| (Reverse(a.dtype), &a.name).cmp(&(Reverse(b.dtype), &b.name)));
        let mut text = String::from("{");
        let mut comma = "";
        if let Some(pairs) = &self.metadata {
            text.push_str("\"__metadata__\":{");
            for (key, value) in pairs {
                let _ = write!(text, "{comma}{}:{}", Json(key), Json(value));
                comma = ",";
            }
            text.push('}');
            comma = ",";
        }
        let mut begin = 0u64;
        for Declared { name, dtype, shape, byte_len } in sorted {
            let end = begin.checked_add(*byte_len).ok_or(WriteError::TotalOverflow)?;
            let _ = write!(text, "{comma}{}:{{\"dtype\":\"{dtype}\",\"shape\":[", Json(name));
            for (i, dim) in shape.iter().enumerate() {
                let _ = write!(text, "{}{dim}", if i == 0 { "" } else { "," });
            }
            let _ = write!(text, "],\"data_offsets\":[{begin},{end}]}}");
            (begin, comma) = (end, ",");
        }
        text.push('}');
        Layout::new(text, begin)
    }
}

/// A string as JSON writes it; `serde_json` knows which characters it escapes, and so does upstream's writer.
struct Json<'a>(&'a str);

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self.0).map_err(|_| fmt::Error)?)
    }
}

/// A file before its data: the bytes of the header, and where each tensor will lie.
#[derive(Debug, Clone)]
pub struct Layout {
    head: Vec<u8>,
    header: Header,
}

impl Layout {
    fn new(mut text: String, data_len: u64) -> Result<Self, WriteError> {
        while !text.len().is_multiple_of(LEN_BYTES) {
            text.push(' ');
        }
        let len = text.len() as u64;
        if len > MAX_HEADER_LEN {
            return Err(WriteError::HeaderTooLarge { len });
        }
        let fits = (LEN_BYTES as u64).checked_add(len).and_then(|n| n.checked_add(data_len));
        fits.ok_or(WriteError::TotalOverflow)?;
        let mut head = len.to_le_bytes().to_vec();
        head.extend_from_slice(text.as_bytes());
        // What was declared passed the reader's rules one by one, so the reader takes the header.
        let header = Header::parse_frame(&head).map_err(|_| WriteError::HeaderTooLarge { len })?;
        Ok(Self { head, header })
    }

    /// The first bytes of the file: length and header.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The header as a reader will see it.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The tensors, in the order in which their data is to be written.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = TensorInfo<'_>> + DoubleEndedIterator + Clone {
        self.header.tensors()
    }

    /// Length of the whole file in bytes.
    pub fn total_len(&self) -> u64 {
        self.header.total_len()
    }
}

/// A tensor with its data, to be written.
#[derive(Debug, Clone, Copy)]
pub struct Tensor<'a> {
    /// Name.
    pub name: &'a str,
    /// Element type.
    pub dtype: Dtype,
    /// Shape, outermost axis first.
    pub shape: &'a [u64],
    /// The elements, little-endian.
    pub data: &'a [u8],
}

impl<'a> From<TensorView<'a, 'a>> for Tensor<'a> {
    fn from(view: TensorView<'a, 'a>) -> Self {
        Self { name: view.name(), dtype: view.dtype(), shape: view.shape(), data: view.data() }
    }
}

/// A whole file in memory, from tensors in any order. `metadata` is written in the order given; `None` writes no
/// `__metadata__` at all.
///
/// # Errors
///
/// [`WriteError`]: names taken twice, sizes that do not fit, data of the wrong length, a header too large.
pub fn serialize(tensors: &[Tensor<'_>], metadata: Option<&[(&str, &str)]>) -> Result<Vec<u8>, WriteError> {
    let (layout, sorted) = lay_out(tensors, metadata)?;
    let mut bytes = Vec::with_capacity(usize::try_from(layout.total_len()).unwrap_or(0));
    bytes.extend_from_slice(layout.head());
    for tensor in sorted {
        bytes.extend_from_slice(tensor.data);
    }
    Ok(bytes)
}

/// The layout of tensors in memory, and them in its order.
pub(crate) fn lay_out<'t, 'a>(
    tensors: &'t [Tensor<'a>],
    metadata: Option<&[(&str, &str)]>,
) -> Result<(Layout, Vec<&'t Tensor<'a>>), WriteError> {
    let mut builder = Builder { metadata: metadata.map(|_| Vec::new()), ..Builder::default() };
    for &(key, value) in metadata.unwrap_or_default() {
        builder.metadata(key, value);
    }
    for tensor in tensors {
        builder.tensor(tensor.name, tensor.dtype, tensor.shape)?;
        let need = builder.tensors.last().map_or(0, |declared| declared.byte_len);
        let have = tensor.data.len() as u64;
        if need != have {
            return Err(WriteError::DataLength { tensor: tensor.name.into(), need, have });
        }
    }
    let mut sorted: Vec<_> = tensors.iter().collect();
    sorted.sort_by(|a, b| (Reverse(a.dtype), a.name).cmp(&(Reverse(b.dtype), b.name)));
    Ok((builder.layout()?, sorted))
}

//! Reading into memory: whole files, headers alone, and frames out of a stream. Memory grows with the bytes that
//! arrive, never with what a header announces.

use super::error::{Error, ErrorKind};
use crate::{
    Header, SafeTensorsBuf,
    header::{LEN_BYTES, header_len},
};
use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

/// Enough to know other formats by.
const LOOK_BYTES: u64 = 32;

/// Loads a file. The header is checked against the length of the file before any data is read.
///
/// # Errors
///
/// The file cannot be read, is not a regular file, or breaks a rule of the format.
pub fn load(path: impl AsRef<Path>) -> Result<SafeTensorsBuf, Error> {
    let path = path.as_ref();
    let (mut file, len) = open(path)?;
    let (header, mut bytes) = header_of(&mut file, Some(len)).map_err(|error| error.or_path(path))?;
    // The file is as long as its header says, so this is memory for bytes that are there.
    let room = usize::try_from(header.data_len()).unwrap_or(usize::MAX);
    bytes.try_reserve_exact(room).map_err(|_| Error::io(path, "read", io::ErrorKind::OutOfMemory.into()))?;
    fill(&mut file, &mut bytes, header.data_len()).map_err(|error| error.or_path(path))?;
    whole(header, bytes).map_err(|error| error.or_path(path))
}

/// Reads and checks the header of a file, and none of its data.
///
/// # Errors
///
/// As [`load`].
pub fn load_header(path: impl AsRef<Path>) -> Result<Header, Error> {
    let path = path.as_ref();
    let (mut file, len) = open(path)?;
    header_of(&mut file, Some(len)).map(|(header, _)| header).map_err(|error| error.or_path(path))
}

/// Takes one frame, which is a whole file, from a stream, and leaves the reader right after it: what follows may
/// be another frame or anything else. Reads exactly the bytes of the frame, so `&mut reader` will do.
///
/// # Errors
///
/// The stream cannot be read, ends inside the frame, or the frame breaks a rule of the format. The reader is then
/// somewhere inside the frame.
pub fn read_prefix(mut reader: impl Read) -> Result<SafeTensorsBuf, Error> {
    let (header, mut bytes) = header_of(&mut reader, None)?;
    fill(&mut reader, &mut bytes, header.data_len())?;
    whole(header, bytes)
}

/// Takes the next frame of a stream of frames; `None` where the stream ends before its first byte.
///
/// # Errors
///
/// As [`read_prefix`].
pub fn read_next(mut reader: impl Read) -> Result<Option<SafeTensorsBuf>, Error> {
    let mut first = Vec::new();
    fill(&mut reader, &mut first, 1)?;
    if first.is_empty() { Ok(None) } else { read_prefix(first.as_slice().chain(reader)).map(Some) }
}

/// A regular file and its length; opening anything else could wait for ever.
pub(super) fn open(path: &Path) -> Result<(File, u64), Error> {
    let open = |source| Error::io(path, "open", source);
    if !std::fs::metadata(path).map_err(open)?.is_file() {
        return Err(Error::at(path, ErrorKind::NotAFile));
    }
    let file = File::open(path).map_err(open)?;
    let len = file.metadata().map_err(open)?.len();
    Ok((file, len))
}

/// Reads up to the end of the header; returns it and the bytes so far.
fn header_of(reader: &mut impl Read, file_len: Option<u64>) -> Result<(Header, Vec<u8>), Error> {
    let mut bytes = Vec::new();
    fill(reader, &mut bytes, LEN_BYTES as u64)?;
    let announced = header_len(&bytes).or_else(|_| {
        // A few bytes more tell what the file is instead.
        fill(reader, &mut bytes, LOOK_BYTES)?;
        header_len(&bytes).map_err(|error| Error::from(ErrorKind::Format(error)))
    })?;
    fill(reader, &mut bytes, announced)?;
    let header = match file_len {
        Some(len) => Header::parse(&bytes, len),
        None => Header::parse_frame(&bytes),
    };
    Ok((header.map_err(ErrorKind::Format)?, bytes))
}

/// Appends up to `len` bytes; fewer only at the end of the stream.
fn fill(reader: &mut impl Read, bytes: &mut Vec<u8>, len: u64) -> Result<(), Error> {
    let read = reader.take(len).read_to_end(bytes);
    read.map_err(|source| ErrorKind::Io { op: "read", source })?;
    Ok(())
}

/// Header and bytes as one, if none of the data is missing.
fn whole(header: Header, bytes: Vec<u8>) -> Result<SafeTensorsBuf, Error> {
    if bytes.len() as u64 == header.total_len() {
        return Ok(SafeTensorsBuf::new(header, bytes));
    }
    let whole = crate::SafeTensors::parse_owned(bytes);
    Ok(whole.map_err(ErrorKind::Format)?)
}

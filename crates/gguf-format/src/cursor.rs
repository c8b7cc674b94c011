//! The reading position in the header: the only code that moves over raw offsets.

use crate::{Error, ErrorKind};

/// Longest string and longest array that is read, as in ggml.
pub const MAX_LEN: u64 = 1 << 30;

/// A position in bytes; every step is checked against what is left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, rest: bytes }
    }

    /// The position as an index into the bytes.
    pub(crate) const fn index(&self) -> usize {
        self.bytes.len().saturating_sub(self.rest.len())
    }

    /// The position as a file offset.
    pub(crate) const fn at(&self) -> u64 {
        widen(self.index())
    }

    /// Bytes left.
    pub(crate) const fn left(&self) -> u64 {
        widen(self.rest.len())
    }

    /// The next `n` bytes.
    pub(crate) fn take(&mut self, what: &'static str, n: u64) -> Result<&'a [u8], Error> {
        let split = usize::try_from(n).ok().and_then(|n| self.rest.split_at_checked(n));
        let Some((head, tail)) = split else {
            let kind = ErrorKind::Truncated { what, need: n, have: self.left() };
            return Err(Error::new(self.at(), kind));
        };
        self.rest = tail;
        Ok(head)
    }

    /// Passes over the next `n` bytes.
    pub(crate) fn skip(&mut self, what: &'static str, n: u64) -> Result<(), Error> {
        self.take(what, n).map(drop)
    }

    fn fixed<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Error> {
        let Some((head, tail)) = self.rest.split_first_chunk() else {
            let kind = ErrorKind::Truncated { what, need: widen(N), have: self.left() };
            return Err(Error::new(self.at(), kind));
        };
        self.rest = tail;
        Ok(*head)
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, Error> {
        self.fixed(what).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64, Error> {
        self.fixed(what).map(u64::from_le_bytes)
    }

    /// A `u64` length of at most `max`.
    pub(crate) fn length(&mut self, what: &'static str, max: u64) -> Result<u64, Error> {
        let at = self.at();
        let len = self.u64(what)?;
        if len > max {
            return Err(Error::new(at, ErrorKind::Length { what, len, max }));
        }
        Ok(len)
    }

    /// A length of at most `max` and that many bytes.
    pub(crate) fn string(&mut self, what: &'static str, max: u64) -> Result<&'a [u8], Error> {
        let len = self.length(what, max)?;
        self.take(what, len)
    }

    /// Passes over `count` strings without looking at their bytes.
    pub(crate) fn skip_strings(&mut self, count: u64) -> Result<(), Error> {
        for _ in 0..count {
            self.string("string", MAX_LEN)?;
        }
        Ok(())
    }
}

/// A length in memory as a length in a file. No target has a `usize` wider than 64 bits.
pub(crate) const fn widen(n: usize) -> u64 {
    n as u64
}

//! Where a streamed file goes.

use alloc::vec::Vec;
use core::convert::Infallible;

/// Takes the bytes of a file in order.
pub trait Sink {
    /// Why bytes could not be taken.
    type Error;

    /// Takes all of `bytes`.
    ///
    /// # Errors
    /// If not all of them could be taken. The stream then accepts nothing more.
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Self::Error>;
}

impl Sink for Vec<u8> {
    type Error = Infallible;

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    type Error = S::Error;

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), S::Error> {
        (**self).write_all(bytes)
    }
}

/// Sends a stream to a [`std::io::Write`]. It does not flush.
#[cfg(feature = "std")]
#[derive(Debug, Clone, Default)]
pub struct IoSink<W>(pub W);

#[cfg(feature = "std")]
impl<W: std::io::Write> Sink for IoSink<W> {
    type Error = std::io::Error;

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), std::io::Error> {
        self.0.write_all(bytes)
    }
}

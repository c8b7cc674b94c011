//! Writing a file whose data comes later, piece by piece: the layout says in which order.

use super::error::{Error, ErrorKind};
use crate::{Layout, TensorInfo};
use std::io::{self, Write};

/// A file that is being written. Its header is out; data is taken in the order of
/// [`Layout::tensors`], in pieces of any size. Holds no data itself.
#[derive(Debug)]
pub struct Stream<W> {
    layout: Layout,
    sink: W,
    written: u64,
}

impl<W: Write> Stream<W> {
    /// Writes the header.
    ///
    /// # Errors
    ///
    /// The sink's.
    pub fn new(layout: Layout, mut sink: W) -> Result<Self, Error> {
        sink.write_all(layout.head()).map_err(cannot_write)?;
        Ok(Self { layout, sink, written: 0 })
    }

    /// The tensor that the next byte belongs to; `None` when all data is written.
    pub fn current(&self) -> Option<TensorInfo<'_>> {
        self.layout.header().tensor_at(self.written)
    }

    /// Writes a piece of data: of the current tensor, and of those after it if the piece is longer.
    ///
    /// # Errors
    ///
    /// More data than declared, of which nothing is written then; or the sink's.
    pub fn write(&mut self, piece: &[u8]) -> Result<(), Error> {
        let need = self.layout.header().data_len();
        let have = self.written.saturating_add(piece.len() as u64);
        if have > need {
            return Err(ErrorKind::DataTooLong { tensor: String::new(), need, have }.into());
        }
        self.sink.write_all(piece).map_err(cannot_write)?;
        self.written = have;
        Ok(())
    }

    /// Writes all tensors that are still to come: `fill` is called for each, in order, and writes the data of
    /// this one tensor.
    ///
    /// # Errors
    ///
    /// What `fill` returns; data of another length than the tensor's, by name; a tensor that is half written
    /// already; the sink's.
    pub fn write_each(
        &mut self,
        mut fill: impl FnMut(TensorInfo<'_>, &mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Error> {
        self.between_tensors()?;
        let Self { layout, sink, written } = self;
        let begin = *written;
        for info in layout.tensors().filter(|info| info.offsets().start >= begin) {
            let need = info.byte_len();
            let mut one = One { sink: &mut *sink, need, taken: 0, refused: 0 };
            let result = fill(info, &mut one);
            let One { taken, refused, .. } = one;
            // What has reached the sink counts, also when what follows fails.
            *written = written.saturating_add(taken);
            let tensor = || info.name().to_owned();
            if refused > 0 {
                let have = taken.saturating_add(refused);
                return Err(ErrorKind::DataTooLong { tensor: tensor(), need, have }.into());
            }
            result.map_err(cannot_write)?;
            if taken < need {
                return Err(ErrorKind::DataTooShort { tensor: tensor(), need, have: taken }.into());
            }
        }
        Ok(())
    }

    /// An error if the current tensor has some of its data.
    fn between_tensors(&self) -> Result<(), Error> {
        match self.current().map(|info| (info, self.written.saturating_sub(info.offsets().start))) {
            Some((info, have)) if have > 0 => {
                let (tensor, need) = (info.name().into(), info.byte_len());
                Err(ErrorKind::DataTooShort { tensor, need, have }.into())
            }
            _ => Ok(()),
        }
    }

    /// Flushes and gives the sink back.
    ///
    /// # Errors
    ///
    /// Data is missing, or the sink's.
    pub fn finish(mut self) -> Result<W, Error> {
        if let Some(info) = self.current() {
            let (need, have) = (info.byte_len(), self.written.saturating_sub(info.offsets().start));
            return Err(ErrorKind::DataTooShort { tensor: info.name().into(), need, have }.into());
        }
        self.sink.flush().map_err(cannot_write)?;
        Ok(self.sink)
    }
}

fn cannot_write(source: io::Error) -> Error {
    ErrorKind::Io { op: "write", source }.into()
}

/// The sink as `fill` sees it: takes the bytes of one tensor and no more.
struct One<'w, W> {
    sink: &'w mut W,
    need: u64,
    /// Bytes that reached the sink.
    taken: u64,
    /// Length of a piece that was too long.
    refused: u64,
}

impl<W: Write> Write for One<'_, W> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let len = piece.len() as u64;
        if self.taken.saturating_add(len) > self.need {
            self.refused = len;
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "more data than the tensor has"));
        }
        let count = self.sink.write(piece)?;
        self.taken = self.taken.saturating_add(count as u64);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

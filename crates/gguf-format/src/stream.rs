//! Writing a file piece by piece.

use core::{convert::Infallible, fmt};

use crate::{Layout, Name, Sink, TensorLayout, WriteError, cursor::widen};

/// A file under way: takes the tensors' bytes in declaration order, in chunks of any size, and puts
/// the header before and the padding between them. The bytes are those of [`Layout::whole`].
#[derive(Debug)]
pub struct Stream<'l, S> {
    layout: &'l Layout,
    sink: S,
    state: State,
    /// The tensor that the next byte belongs to, and how many of its bytes were written.
    tensor: usize,
    written: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Fresh,
    Started,
    Broken,
}

/// Why a stream takes no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamError<E> {
    /// The data does not fit the layout.
    Write(WriteError),
    /// The sink failed.
    Sink(E),
}

impl<'l, S: Sink> Stream<'l, S> {
    pub(crate) const fn new(layout: &'l Layout, sink: S) -> Self {
        Self { layout, sink, state: State::Fresh, tensor: 0, written: 0 }
    }

    /// The tensor that the next byte belongs to, `None` after the last.
    #[must_use]
    pub fn current(&self) -> Option<&'l TensorLayout> {
        self.layout.tensors().get(self.tensor)
    }

    /// Writes the next bytes; they may end anywhere and go on into the next tensor.
    ///
    /// # Errors
    /// If there are more bytes than declared, none of the surplus being written, or the sink fails:
    /// after that every call fails.
    pub fn write(&mut self, mut chunk: &[u8]) -> Result<(), StreamError<S::Error>> {
        self.start()?;
        while !chunk.is_empty() {
            let Some(t) = self.current() else {
                return Err(StreamError::Write(WriteError::TooMuch { bytes: widen(chunk.len()) }));
            };
            let room = t.byte_len.saturating_sub(self.written);
            let now = usize::try_from(room).map_or(chunk.len(), |room| room.min(chunk.len()));
            let (head, tail) = chunk.split_at_checked(now).unwrap_or((chunk, &[]));
            self.put(head)?;
            self.written = self.written.saturating_add(widen(head.len()));
            chunk = tail;
            self.close_full()?;
        }
        Ok(())
    }

    /// Ends the file and gives the sink back.
    ///
    /// # Errors
    /// If bytes are missing, naming the first tensor that lacks some, or the sink fails or failed.
    pub fn finish(mut self) -> Result<S, StreamError<S::Error>> {
        self.start()?;
        match self.current() {
            None => Ok(self.sink),
            Some(t) => Err(StreamError::Write(WriteError::Incomplete {
                name: Name::new(t.name.as_bytes()),
                written: self.written,
                declared: t.byte_len,
            })),
        }
    }

    /// Writes the header unless it is written.
    fn start(&mut self) -> Result<(), StreamError<S::Error>> {
        match self.state {
            State::Broken => Err(StreamError::Write(WriteError::Broken)),
            State::Started => Ok(()),
            State::Fresh => {
                self.put(self.layout.header())?;
                self.pad(self.layout.header_padding())?;
                self.state = State::Started;
                self.close_full()
            }
        }
    }

    /// Pads and steps over every tensor that has all its bytes.
    fn close_full(&mut self) -> Result<(), StreamError<S::Error>> {
        while let Some(t) = self.current().filter(|t| t.byte_len == self.written) {
            self.pad(t.padding_after)?;
            self.tensor = self.tensor.saturating_add(1);
            self.written = 0;
        }
        Ok(())
    }

    fn pad(&mut self, mut bytes: u64) -> Result<(), StreamError<S::Error>> {
        const ZEROS: [u8; 4096] = [0; 4096];
        while bytes != 0 {
            let zeros = usize::try_from(bytes).ok().and_then(|n| ZEROS.get(..n)).unwrap_or(&ZEROS);
            self.put(zeros)?;
            bytes = bytes.saturating_sub(widen(zeros.len()));
        }
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), StreamError<S::Error>> {
        self.sink.write_all(bytes).map_err(|e| {
            self.state = State::Broken;
            StreamError::Sink(e)
        })
    }
}

impl StreamError<Infallible> {
    /// The error of a sink that cannot fail.
    #[must_use]
    pub fn into_write(self) -> WriteError {
        match self {
            Self::Write(e) => e,
            Self::Sink(never) => match never {},
        }
    }
}

impl<E: fmt::Display> fmt::Display for StreamError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(e) => e.fmt(f),
            Self::Sink(e) => e.fmt(f),
        }
    }
}

impl<E: core::error::Error + 'static> core::error::Error for StreamError<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Write(e) => Some(e),
            Self::Sink(e) => Some(e),
        }
    }
}

impl<E> From<WriteError> for StreamError<E> {
    fn from(e: WriteError) -> Self {
        Self::Write(e)
    }
}

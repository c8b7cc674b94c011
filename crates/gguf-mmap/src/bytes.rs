//! Owned handles to a range of a mapping.

use crate::mapping::Memory;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A range of a [`Mapping`](crate::Mapping) that keeps it alive: cheap to clone, `Send + Sync`, and
/// independent of the file it was taken from. Of a split set it holds just its own part.
#[derive(Clone)]
pub struct Bytes {
    memory: Arc<Memory>,
    // Within `memory`, as checked by `new`.
    range: Range<usize>,
}

impl Bytes {
    pub(crate) fn new(memory: &Arc<Memory>, range: Range<u64>) -> Option<Self> {
        let range = usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?;
        memory.bytes().get(range.clone())?;
        Some(Self { memory: Arc::clone(memory), range })
    }

    /// Where these bytes begin in the file.
    #[must_use]
    pub fn file_offset(&self) -> u64 {
        self.range.start as u64
    }

    /// A handle to a part of these bytes, `range` counted from their start. `None` if it is not
    /// within them.
    #[must_use]
    pub fn slice(&self, range: Range<u64>) -> Option<Self> {
        let from = self.file_offset();
        let range = from.checked_add(range.start)?..from.checked_add(range.end)?;
        (range.end <= self.range.end as u64).then_some(())?;
        Self::new(&self.memory, range)
    }

    /// Asks the system to read these bytes ahead.
    pub fn prefetch(&self) {
        self.memory.prefetch(self.range.clone());
    }

    /// Drops the pages wholly inside these bytes from this process's memory; they stay valid. See
    /// [`Mapping::release`](crate::Mapping::release).
    pub fn release(&self) {
        self.memory.release(self.range.clone());
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory.bytes()[self.range.clone()]
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bytes").field("range", &self.range).finish_non_exhaustive()
    }
}

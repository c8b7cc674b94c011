//! Memory for packed weights: large pages where the system has them, so that reading it all needs few
//! translations of addresses.

use memmap2::MmapMut;

/// What the bytes start at a multiple of: a cache line.
const ALIGN: usize = 64;

/// From here on memory is mapped: two large pages of most CPUs.
const LARGE: usize = 4 << 20;

/// Bytes that start at a cache line.
#[derive(Debug)]
pub(crate) struct Memory {
    store: Store,
    start: usize,
    len: usize,
}

#[derive(Debug)]
enum Store {
    Pages(MmapMut),
    Heap(Vec<u8>),
}

impl Memory {
    /// `len` zeros.
    pub(crate) fn zeroed(len: usize) -> Self {
        if len >= LARGE
            && let Ok(pages) = MmapMut::map_anon(len)
        {
            // A system that refuses serves small pages, and no result depends on it.
            #[cfg(target_os = "linux")]
            let _refused = pages.advise(memmap2::Advice::HugePage);
            return Self { store: Store::Pages(pages), start: 0, len };
        }
        let bytes = vec![0; len + ALIGN];
        let start = bytes.as_ptr().align_offset(ALIGN).min(ALIGN);
        Self { store: Store::Heap(bytes), start, len }
    }

    /// How much [`Memory::zeroed`] takes, but for the rest of a page.
    pub(crate) fn size(len: usize) -> usize {
        len + ALIGN
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        let all: &[u8] = match &self.store {
            Store::Pages(pages) => pages,
            Store::Heap(bytes) => bytes,
        };
        &all[self.start..self.start + self.len]
    }

    /// The bytes, to be filled.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        let all: &mut [u8] = match &mut self.store {
            Store::Pages(pages) => pages,
            Store::Heap(bytes) => bytes,
        };
        &mut all[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_are_zeros_at_a_cache_line() {
        for len in [0, 1, 1000, LARGE - 1, LARGE, LARGE + 12_345] {
            let mut memory = Memory::zeroed(len);
            assert_eq!((memory.bytes().len(), memory.bytes().as_ptr().addr() % ALIGN), (len, 0));
            assert!(memory.bytes().iter().all(|&b| b == 0));
            assert_eq!(matches!(memory.store, Store::Pages(_)), len >= LARGE);
            memory.bytes_mut().fill(7);
            assert!(memory.bytes().iter().all(|&b| b == 7));
        }
    }
}

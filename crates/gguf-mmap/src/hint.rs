//! Hints to the kernel about a mapping, page arithmetic included.
//!
//! All of them are best effort: they never fail, and do nothing where the system has no such call.
//! None changes what a reader of the bytes sees.

use memmap2::Mmap;
use std::ops::{Bound, Range, RangeBounds};
use std::sync::OnceLock;

/// How a range of a mapping is going to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Advice {
    /// No particular order: the system's default.
    Normal,
    /// Front to back: read ahead eagerly.
    Sequential,
    /// Here and there: do not read ahead.
    Random,
    /// Back the range with huge pages where the file system can (Linux only).
    HugePage,
}

/// The part of `range` that lies within `len` bytes; empty if none does.
pub(crate) fn clamp(range: &impl RangeBounds<u64>, len: usize) -> Range<usize> {
    // A bound that is no `usize` lies past every mapping.
    let at = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).min(len);
    let start = match range.start_bound() {
        Bound::Included(&n) => at(n),
        Bound::Excluded(&n) => at(n.saturating_add(1)),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&n) => at(n.saturating_add(1)),
        Bound::Excluded(&n) => at(n),
        Bound::Unbounded => len,
    };
    start..end.max(start)
}

/// The whole pages within `range`. The last page of the mapping counts as whole when the range
/// reaches the mapping's end, for nothing else is in it.
fn whole_pages(range: Range<usize>, len: usize, page: usize) -> Range<usize> {
    let start = range.start.checked_next_multiple_of(page).unwrap_or(len).min(len);
    let end = if range.end >= len { len } else { range.end - range.end % page };
    start..end.max(start)
}

/// Bytes per page. The kernel tells a Linux process in its auxiliary vector; elsewhere 64 KiB is
/// taken, a multiple of every page size in common use, so that a page is never split.
fn page_size() -> usize {
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| {
        let auxv = std::fs::read("/proc/self/auxv").unwrap_or_default();
        page_size_from(&auxv).unwrap_or(64 << 10)
    })
}

/// Looks up `AT_PAGESZ` in an auxiliary vector: pairs of native words, key and value.
fn page_size_from(auxv: &[u8]) -> Option<usize> {
    const AT_PAGESZ: usize = 6;
    const WORD: usize = size_of::<usize>();
    let (words, _) = auxv.as_chunks::<WORD>();
    let (pairs, _) = words.as_chunks::<2>();
    let [_, value] = pairs.iter().find(|[key, _]| usize::from_ne_bytes(*key) == AT_PAGESZ)?;
    let size = usize::from_ne_bytes(*value);
    (size.is_power_of_two() && size >= 4096).then_some(size)
}

#[cfg(unix)]
pub(crate) fn advise(map: &Mmap, range: Range<usize>, advice: Advice) {
    let advice = match advice {
        Advice::Normal => memmap2::Advice::Normal,
        Advice::Sequential => memmap2::Advice::Sequential,
        Advice::Random => memmap2::Advice::Random,
        #[cfg(target_os = "linux")]
        Advice::HugePage => memmap2::Advice::HugePage,
        #[cfg(not(target_os = "linux"))]
        Advice::HugePage => return,
    };
    hint(map, range, advice);
}

#[cfg(unix)]
pub(crate) fn prefetch(map: &Mmap, range: Range<usize>) {
    hint(map, range, memmap2::Advice::WillNeed);
}

/// Passes a hint on. It covers every page that the range touches.
#[cfg(unix)]
fn hint(map: &Mmap, range: Range<usize>, advice: memmap2::Advice) {
    if !range.is_empty() {
        // A refused hint costs speed, nothing else.
        let _ = map.advise_range(advice, range.start, range.len());
    }
}

/// Drops the whole pages in `range` from this process; the next access reads them from the file.
#[cfg(unix)]
pub(crate) fn discard(map: &Mmap, range: Range<usize>) {
    let pages = whole_pages(range, map.len(), page_size());
    if pages.is_empty() {
        return;
    }
    let dont_need = memmap2::UncheckedAdvice::DontNeed;
    #[expect(unsafe_code, reason = "one of this crate's two: MADV_DONTNEED")]
    // SAFETY: discarding is unsound where it loses writes or turns bytes into zeros beneath a live
    // borrow. Neither can happen here: every `Mmap` of this crate is made by `Mapping::map_file`,
    // which maps a regular file shared and read-only, so that no page is ever dirty through it and
    // a discarded page is filled again from the same file. The file not changing meanwhile is the
    // contract of that mapping already. `pages` lies within the mapping by construction.
    let result = unsafe { map.unchecked_advise_range(dont_need, pages.start, pages.len()) };
    // A refusal (locked pages, an old kernel) leaves the pages where they were.
    let _ = result;
}

#[cfg(not(unix))]
pub(crate) fn advise(_: &Mmap, _: Range<usize>, _: Advice) {}

#[cfg(not(unix))]
pub(crate) fn prefetch(_: &Mmap, _: Range<usize>) {}

#[cfg(not(unix))]
pub(crate) fn discard(_: &Mmap, _: Range<usize>) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_clamped_to_the_mapping() {
        assert_eq!(clamp(&(..), 10), 0..10);
        assert_eq!(clamp(&(3..=u64::MAX), 10), 3..10);
        assert_eq!(clamp(&(u64::MAX..), 10), 10..10);
        assert_eq!(clamp(&(2..=4), 10), 2..5);
        assert_eq!(clamp(&(Bound::Excluded(u64::MAX), Bound::Unbounded), 10), 10..10);
        #[expect(clippy::reversed_empty_ranges, reason = "callers can pass one")]
        let reversed = 8..2;
        assert_eq!(clamp(&reversed, 10), 8..8);
    }

    #[test]
    fn only_pages_wholly_inside_are_discarded() {
        assert_eq!(whole_pages(0..100, 100, 16), 0..100);
        assert_eq!(whole_pages(1..99, 100, 16), 16..96);
        assert_eq!(whole_pages(17..31, 100, 16), 32..32);
        assert_eq!(whole_pages(97..100, 100, 16), 100..100);
        assert_eq!(whole_pages(96..100, 100, 16), 96..100);
        assert_eq!(whole_pages(5..usize::MAX, usize::MAX, 4096).start, 4096);
    }

    #[test]
    fn the_page_size_is_found_in_the_auxiliary_vector() {
        let word = |n: usize| n.to_ne_bytes();
        let auxv = [word(3), word(6), word(6), word(16384), word(0), word(0)].concat();
        assert_eq!(page_size_from(&auxv), Some(16384));
        assert_eq!(page_size_from(&auxv[..auxv.len() / 2]), None);
        assert_eq!(page_size_from(&[word(6), word(5000)].concat()), None);
        assert!(page_size().is_power_of_two());
    }
}

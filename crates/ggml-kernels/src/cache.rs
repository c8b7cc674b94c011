//! Packs of matrices whose bytes stay, kept by address.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ggml_blocks::GgmlType;

use crate::error::Error;
use crate::level::{Kernels, Level};
use crate::packed::Packed;
use crate::rhs::{Rhs, RhsLifetime};
use crate::scratch::Scratch;

/// Packs that were made of matrices promised to be [`RhsLifetime::StableProcess`], by the address of
/// their bytes: bounded, least recently used goes first. A transient matrix is never kept.
///
/// ```
/// use ggml_kernels::{GgmlType, Kernels, PackCache, Rhs, Scratch};
///
/// let bytes: &'static [u8] = vec![0; 64 * 34].leak();
/// let w = Rhs::stable(GgmlType::Q8_0, bytes, 64, 32)?;
/// let cache = PackCache::new(1 << 20);
/// let mut y = [1.0; 64];
/// cache.matmul(Kernels::best(), &[0.5; 32], &w, &mut y, &mut Scratch::new())?;
/// assert_eq!((y, cache.len()), ([0.0; 64], 1));
/// cache.clear();
/// assert_eq!(cache.size(), 0);
/// # Ok::<(), ggml_kernels::Error>(())
/// ```
pub struct PackCache {
    limit: usize,
    /// The most recently used last.
    packs: Mutex<Vec<(Key, Arc<Packed>)>>,
}

/// What tells one pack from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    address: usize,
    ty: GgmlType,
    n: usize,
    k: usize,
    level: Level,
}

impl PackCache {
    /// An empty cache for packs of `limit` bytes altogether.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self { limit, packs: Mutex::new(Vec::new()) }
    }

    /// [`Kernels::matmul`], through a pack where the matrix may have one: made at its first product,
    /// found at the next. The bits are the same.
    ///
    /// # Errors
    /// As for [`Kernels::matmul`].
    pub fn matmul(
        &self,
        kernels: Kernels,
        x: &[f32],
        w: &Rhs<'_>,
        y: &mut [f32],
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        match self.pack(kernels, w) {
            Some(packed) => packed.matmul(x, y, scratch),
            None => kernels.matmul(x, w, y, scratch),
        }
    }

    /// The pack of a matrix, made if need be; `None` for a transient one, for a format without a packed
    /// layout, and for one that the limit does not hold.
    #[must_use]
    pub fn pack(&self, kernels: Kernels, w: &Rhs<'_>) -> Option<Arc<Packed>> {
        if w.lifetime() != RhsLifetime::StableProcess {
            return None;
        }
        let key = Key {
            address: w.as_bytes().as_ptr().addr(),
            ty: w.ty(),
            n: w.n(),
            k: w.k(),
            level: kernels.level(),
        };
        if let Some(found) = self.find(key) {
            return Some(found);
        }
        // Others may look meanwhile. If two pack the same matrix, the first one's is kept.
        if kernels.packed_size(w)? > self.limit {
            return None;
        }
        let packed = Arc::new(kernels.pack(w).ok()?);
        let mut packs = self.lock();
        if let Some((_, found)) = packs.iter().find(|(k, _)| *k == key) {
            return Some(Arc::clone(found));
        }
        packs.push((key, Arc::clone(&packed)));
        while size(&packs) > self.limit {
            packs.remove(0);
        }
        Some(packed)
    }

    /// How many packs there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all packs.
    #[must_use]
    pub fn size(&self) -> usize {
        size(&self.lock())
    }

    /// The most bytes that it holds.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Forgets every pack. Those in use live until their product is done.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn find(&self, key: Key) -> Option<Arc<Packed>> {
        let mut packs = self.lock();
        let at = packs.iter().position(|(k, _)| *k == key)?;
        let entry = packs.remove(at);
        let found = Arc::clone(&entry.1);
        packs.push(entry);
        Some(found)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Key, Arc<Packed>)>> {
        // No panic happens between two changes of the list.
        self.packs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn size(packs: &[(Key, Arc<Packed>)]) -> usize {
    packs.iter().map(|(_, p)| p.size()).sum()
}

impl fmt::Debug for PackCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, .. } = self;
        f.debug_struct("PackCache").field("limit", limit).field("len", &self.len()).finish_non_exhaustive()
    }
}

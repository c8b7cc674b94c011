//! Packs of matrices whose bytes stay, kept by address.

use std::collections::BTreeMap;
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
    packs: Mutex<Packs>,
}

/// The packs, and the order in which they were used.
struct Packs {
    /// Each with the turn of its last use.
    by_key: BTreeMap<Key, (u64, Arc<Packed>)>,
    by_turn: BTreeMap<u64, Key>,
    turn: u64,
    size: usize,
}

impl Packs {
    const fn new() -> Self {
        Self { by_key: BTreeMap::new(), by_turn: BTreeMap::new(), turn: 0, size: 0 }
    }

    /// A pack, used now.
    fn find(&mut self, key: Key) -> Option<Arc<Packed>> {
        let (turn, found) = self.by_key.get_mut(&key)?;
        self.turn += 1;
        self.by_turn.remove(turn);
        self.by_turn.insert(self.turn, key);
        *turn = self.turn;
        Some(Arc::clone(found))
    }

    /// Keeps a new pack, and drops the least recently used beyond the limit.
    fn keep(&mut self, key: Key, packed: Arc<Packed>, limit: usize) {
        self.turn += 1;
        self.size += packed.size();
        self.by_key.insert(key, (self.turn, packed));
        self.by_turn.insert(self.turn, key);
        while self.size > limit {
            let Some((_, key)) = self.by_turn.pop_first() else { break };
            if let Some((_, gone)) = self.by_key.remove(&key) {
                self.size -= gone.size();
            }
        }
    }
}

/// What tells one pack from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
        Self { limit, packs: Mutex::new(Packs::new()) }
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

    /// The pack of a matrix, made if need be; `None` for a transient one, for plain floats, and for
    /// one that the limit does not hold.
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
        if let Some(found) = self.lock().find(key) {
            return Some(found);
        }
        // Others may look meanwhile. If two pack the same matrix, the first one's is kept.
        if kernels.packed_size(w)? > self.limit {
            return None;
        }
        let packed = Arc::new(kernels.pack(w).ok()?);
        let mut packs = self.lock();
        if let Some(found) = packs.find(key) {
            return Some(found);
        }
        packs.keep(key, Arc::clone(&packed), self.limit);
        Some(packed)
    }

    /// How many packs there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().by_key.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all packs.
    #[must_use]
    pub fn size(&self) -> usize {
        self.lock().size
    }

    /// The most bytes that it holds.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Forgets every pack. Those in use live until their product is done.
    pub fn clear(&self) {
        *self.lock() = Packs::new();
    }

    fn lock(&self) -> MutexGuard<'_, Packs> {
        // No panic happens between two changes of what belongs together.
        self.packs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for PackCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, .. } = self;
        f.debug_struct("PackCache").field("limit", limit).field("len", &self.len()).finish_non_exhaustive()
    }
}

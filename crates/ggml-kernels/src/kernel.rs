//! The products: bodies generic over the instruction set, the layout and the size of the tile. No
//! intrinsics, no threads.

pub(crate) mod direct;
mod dots;
pub(crate) mod flat;
pub(crate) mod float;
pub(crate) mod planes;
pub(crate) mod super_block;
pub(crate) mod words;

/// Where a task's results go: rows of `stride`, of which this task owns `width` columns, its first one
/// at index 0 of each row.
#[derive(Debug)]
pub(crate) struct Sink<'a> {
    pub(crate) y: &'a mut [f32],
    pub(crate) stride: usize,
    pub(crate) width: usize,
    /// Whether results are added to what is there.
    pub(crate) add: bool,
}

impl Sink<'_> {
    /// Stores or adds eight columns of a row; those beyond the width do not exist.
    #[inline(always)]
    pub(crate) fn put(&mut self, row: usize, column: usize, x: &[f32; 8]) {
        let start = row * self.stride + column;
        if self.add {
            let end = row * self.stride + self.width;
            for (y, x) in self.y[start.min(end)..end].iter_mut().zip(x) {
                *y += x;
            }
            return;
        }
        if column + 8 <= self.width {
            self.y[start..start + 8].copy_from_slice(x);
            return;
        }
        // One by one: a copy of some other length would be a call, and tiles have none.
        for c in 0..8 {
            if column + c < self.width {
                self.y[start + c] = x[c];
            }
        }
    }
}

//! Buffers that outlive a call.

use crate::panel::Panels;

/// What a product needs besides its operands. Kept by the caller, it grows to the largest product and
/// then costs no allocation.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(crate) lhs: Vec<u8>,
    pub(crate) panels: Panels,
    pub(crate) tasks: Vec<Buffers>,
}

impl Scratch {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

/// What one task needs for itself.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    /// Expanded weights.
    pub(crate) bytes: Vec<u8>,
    /// Decoded weights.
    pub(crate) floats: Vec<f32>,
    /// Results, where the columns of a task do not lie together in the output.
    pub(crate) out: Vec<f32>,
}

//! Parts of a tensor: a range per axis, borrowed where the part is one stretch of bytes, gathered where it is not.

use crate::{TensorView, error::Dims};
use std::{borrow::Cow, fmt, ops::Range};

/// A part of a tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice<'d> {
    /// Its own shape; as many axes as the tensor's.
    pub shape: Vec<u64>,
    /// Its elements: borrowed if they lie together, else a copy.
    pub data: Cow<'d, [u8]>,
}

/// Why a part cannot be taken.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SliceError {
    /// More ranges than axes.
    TooManyAxes {
        /// Ranges given.
        ranges: u64,
        /// Shape of the tensor.
        shape: Vec<u64>,
    },
    /// A range that is reversed or reaches past its axis.
    OutOfBounds {
        /// Which axis, from 0.
        axis: u64,
        /// The range.
        range: Range<u64>,
        /// Shape of the tensor.
        shape: Vec<u64>,
    },
    /// Elements of a sub-byte dtype that do not begin and end on byte boundaries.
    SubByte {
        /// First bit of a stretch.
        begin: u64,
        /// Bit after its last.
        end: u64,
    },
}

impl fmt::Display for SliceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyAxes { ranges, shape } => {
                write!(f, "{ranges} ranges for a tensor of shape {}", Dims(shape))
            }
            Self::OutOfBounds { axis, range, shape } => {
                write!(
                    f,
                    "range {}..{} is out of bounds of axis {axis} of {}",
                    range.start,
                    range.end,
                    Dims(shape)
                )
            }
            Self::SubByte { begin, end } => write!(f, "bits {begin}..{end} are not whole bytes"),
        }
    }
}

impl std::error::Error for SliceError {}

/// An axis that is walked stretch by stretch.
struct Walked {
    len: u64,
    stride_bits: u64,
}

/// A part as stretches of equal length.
struct Plan {
    shape: Vec<u64>,
    first_bit: u64,
    stretch_bits: u64,
    /// Outermost first.
    walked: Vec<Walked>,
}

impl<'d> TensorView<'_, 'd> {
    /// Rows along the first axis; they always lie together. A scalar has no rows.
    ///
    /// # Errors
    ///
    /// [`SliceError`]: no such rows, or sub-byte elements that do not fill bytes.
    pub fn rows(&self, rows: Range<u64>) -> Result<&'d [u8], SliceError> {
        let plan = self.plan(&[rows])?;
        Ok(self.bits(plan.first_bit, plan.stretch_bits))
    }

    /// One range per axis, from the first; axes without one are taken whole. The result is borrowed unless the
    /// part lies in several stretches, and is never longer than the tensor.
    ///
    /// # Errors
    ///
    /// [`SliceError`]: a range too many or out of bounds, or sub-byte elements that do not fill bytes.
    pub fn slice(&self, ranges: &[Range<u64>]) -> Result<Slice<'d>, SliceError> {
        let Plan { shape, first_bit, stretch_bits, walked } = self.plan(ranges)?;
        if walked.is_empty() {
            return Ok(Slice { shape, data: Cow::Borrowed(self.bits(first_bit, stretch_bits)) });
        }
        let mut data = Vec::new();
        let mut at = vec![0u64; walked.len()];
        loop {
            let moved =
                |bit: u64, (i, axis): (&u64, &Walked)| bit.saturating_add(i.saturating_mul(axis.stride_bits));
            let bit = at.iter().zip(&walked).fold(first_bit, moved);
            data.extend_from_slice(self.bits(bit, stretch_bits));
            // Count up, the innermost axis first; done when all axes have come round.
            let mut axes = at.iter_mut().zip(&walked).rev();
            let stepped = axes.any(|(i, axis)| {
                *i = i.saturating_add(1);
                let inside = *i < axis.len;
                if !inside {
                    *i = 0;
                }
                inside
            });
            if !stepped {
                return Ok(Slice { shape, data: Cow::Owned(data) });
            }
        }
    }

    /// Whole bytes of the data; the plan has checked that they are inside.
    fn bits(&self, begin: u64, len: u64) -> &'d [u8] {
        let byte = |bit: u64| usize::try_from(bit >> 3).unwrap_or(usize::MAX);
        self.data().get(byte(begin)..byte(begin.saturating_add(len))).unwrap_or_default()
    }

    fn plan(&self, ranges: &[Range<u64>]) -> Result<Plan, SliceError> {
        let dims = self.shape();
        if ranges.len() > dims.len() {
            return Err(SliceError::TooManyAxes { ranges: ranges.len() as u64, shape: dims.into() });
        }
        let mut shape = Vec::with_capacity(dims.len());
        for (axis, &dim) in dims.iter().enumerate() {
            let range = ranges.get(axis).cloned().unwrap_or(0..dim);
            match range.end.checked_sub(range.start) {
                Some(len) if range.end <= dim => shape.push(len),
                _ => return Err(SliceError::OutOfBounds { axis: axis as u64, range, shape: dims.into() }),
            }
        }
        if shape.contains(&0) {
            return Ok(Plan { shape, first_bit: 0, stretch_bits: 0, walked: Vec::new() });
        }
        // No axis is 0 here, so every product below divides the size of the tensor, which fits 64 bits.
        let (mut stride, mut first_bit) = (self.dtype().bits(), 0u64);
        let (mut stretch, mut whole) = (stride, true);
        let mut walked = Vec::new();
        for (axis, (&dim, &len)) in dims.iter().zip(&shape).enumerate().rev() {
            let start = ranges.get(axis).map_or(0, |range| range.start);
            first_bit = first_bit.saturating_add(start.saturating_mul(stride));
            if whole {
                stretch = stretch.saturating_mul(len);
            } else if len > 1 {
                walked.insert(0, Walked { len, stride_bits: stride });
            }
            whole &= len == dim;
            stride = stride.saturating_mul(dim);
        }
        let aligned = |bits: u64| bits.is_multiple_of(8);
        if !(aligned(first_bit) && aligned(stretch) && walked.iter().all(|axis| aligned(axis.stride_bits))) {
            return Err(SliceError::SubByte { begin: first_bit, end: first_bit.saturating_add(stretch) });
        }
        Ok(Plan { shape, first_bit, stretch_bits: stretch, walked })
    }
}

//! How encoders run: batches of one block per lane for the formats that search, plain loops over a
//! block for those that only scale and round.

mod flat;
mod fp4;
mod iq4;
mod k2;
mod k3;
mod k45;
mod k6;
mod legacy;
mod q8;
mod small;
mod superblock;
mod ternary;

use crate::block::{Block, Rows};
use crate::error::EncodeError;
use crate::lanes::{Lanes, Wide};
use crate::scan::first_non_finite;
use crate::simd::{M8, Simd, SimdOp};
use bytemuck::Zeroable;

/// The widest lanes in use.
const MAX_LANES: usize = 16;

/// An encoder written once for any number of lanes. One lane is the reference.
pub(crate) trait EncodeLanes: Block {
    /// Whether one register of lanes beats two: for searches that branch.
    const NARROW: bool = false;

    /// Encodes whole rows with ggml's arithmetic, scales that have no finite f16 included. `zero`
    /// says which lanes.
    fn encode_lanes<V: Lanes>(zero: V, src: Rows<'_>, out: &mut [Self]);
}

/// An encoder that works within one block and takes no importance.
pub(crate) trait EncodeFlat: Block {
    /// What eight blocks have one of each: scales, and how weights become levels.
    type Scales: Copy + Default;

    /// Looks at eight blocks. Lanes are set, some of them, where a weight or a scale is not finite and
    /// [`EncodeFlat::encode_flat`] does not see it.
    fn scales<S: Simd>(simd: S, x: &[Self::Weights; 8]) -> (Self::Scales, M8);

    /// Encodes one block, `lane` of the scales. Lanes are negative, some of them, where a weight or a
    /// scale is not finite and [`EncodeFlat::scales`] does not see it.
    fn encode_flat<S: Simd>(
        simd: S,
        x: &Self::Weights,
        scales: &Self::Scales,
        lane: usize,
        out: &mut Self,
    ) -> [i32; 8];
}

/// Implements [`crate::Encode`] by [`EncodeFlat`].
macro_rules! flat_encoders {
    ($($name:ident)+) => { $(
        impl crate::Encode for $name {
            #[inline(always)]
            fn encode<S: crate::simd::Simd>(
                simd: S,
                src: crate::Rows<'_>,
                out: &mut [Self],
            ) -> Result<(), crate::EncodeError> {
                super::in_eights(simd, src.values, out)
            }
        }
    )+ };
}
use flat_encoders;

/// Runs a lane encoder. Where ggml would have written NaN or infinite scales and importance may be
/// the cause, the block is encoded without; where the weights themselves are too large, that is the
/// error.
#[inline(always)]
pub(crate) fn in_lanes<S: Simd, B: EncodeLanes>(
    simd: S,
    src: Rows<'_>,
    out: &mut [B],
) -> Result<(), EncodeError> {
    check_weights(src.values)?;
    all_lanes(simd, src, out);
    for i in 0..out.len() {
        if !out[i].is_finite() {
            let index = i * B::LEN;
            let values = &src.values[index..index + B::LEN];
            let plain = Rows { values, row_len: B::LEN, importance: None };
            all_lanes(simd, plain, &mut out[i..=i]);
            if !out[i].is_finite() {
                return Err(unrepresentable::<B>(index));
            }
        }
    }
    Ok(())
}

/// Lanes of 256 bits at most. A call, so that there is one copy of the code per token.
#[inline(always)]
fn all_lanes<S: Simd, B: EncodeLanes>(simd: S, src: Rows<'_>, out: &mut [B]) {
    struct Encoding<'a, B>(Rows<'a>, &'a mut [B]);
    impl<B: EncodeLanes> SimdOp for Encoding<'_, B> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            // Eight lanes are two of the baseline's registers already.
            if B::NARROW || S::LANES == 4 {
                B::encode_lanes(Wide::<S, 1>::zero(simd), self.0, self.1);
            } else {
                B::encode_lanes(Wide::<S, 2>::zero(simd), self.0, self.1);
            }
        }
    }
    simd.narrow().run(Encoding(src, out));
}

fn unrepresentable<B: Block>(index: usize) -> EncodeError {
    EncodeError::Unrepresentable { name: B::TYPE.name().unwrap_or("block"), index }
}

/// Runs a flat encoder over all blocks, in pieces that stay in the first-level cache: scales of eight
/// blocks at once, then levels. What is not finite shows on the way: no pass of its own looks for it.
///
/// The levels are not made right after their scales, because the compiler would then keep the weights
/// of eight blocks, more than there are registers, on the stack.
#[inline(always)]
pub(crate) fn in_eights<S: Simd, B: EncodeFlat>(
    simd: S,
    values: &[f32],
    out: &mut [B],
) -> Result<(), EncodeError> {
    const EIGHTS: usize = 2;
    let piece = (512 / B::LEN).clamp(8, 8 * EIGHTS);
    let blocks: &[B::Weights] = bytemuck::cast_slice(values);
    let mut scales = [B::Scales::default(); EIGHTS];
    let mut next = 0;
    for (x, out) in blocks.chunks(piece).zip(out.chunks_mut(piece)) {
        let ahead = &blocks[(next + piece).min(blocks.len())..];
        let mut bad = [0; 8];
        for (x, scales) in x.chunks(8).zip(&mut scales) {
            let padded;
            let eight = match x.first_chunk() {
                Some(eight) => eight,
                None => {
                    padded = core::array::from_fn(|b| x.get(b).copied().unwrap_or(B::Weights::zeroed()));
                    &padded
                }
            };
            let seen;
            (*scales, seen) = B::scales(simd, eight);
            bad = flat::either(bad, seen);
        }
        let (mut negative, mut touched) = ([0; 8], 0);
        for (n, (x, out)) in x.iter().zip(&mut *out).enumerate() {
            if let Some(x) = ahead.get(n) {
                touched |= touch(x.as_ref());
            }
            let seen = B::encode_flat(simd, x, &scales[n / 8 % EIGHTS], n % 8, out);
            for i in 0..8 {
                negative[i] |= seen[i];
            }
        }
        for i in 0..8 {
            bad[i] |= (negative[i] >> 31).cast_unsigned();
        }
        core::hint::black_box(touched);
        if simd.any(bad) {
            refuse(values, next, out)?;
        }
        next += x.len();
    }
    Ok(())
}

/// Reads one weight of each cache line, so that the line is on its way while others are encoded:
/// otherwise the scales of the next blocks wait for memory, and memory for the levels after that.
#[inline(always)]
fn touch(x: &[f32]) -> u32 {
    const LINE: usize = 16;
    x.iter().step_by(LINE).fold(
        0,
        #[inline(always)]
        |all, x| all | x.to_bits(),
    )
}

/// The error of the blocks from number `first` on: the first weight of all that is not finite, else
/// the block without a finite scale.
#[cold]
#[inline(never)]
fn refuse<B: Block>(values: &[f32], first: usize, out: &[B]) -> Result<(), EncodeError> {
    check_weights(values)?;
    match out.iter().position(|block| !block.is_finite()) {
        Some(bad) => Err(unrepresentable::<B>((first + bad) * B::LEN)),
        None => Ok(()),
    }
}

/// Refuses NaN and infinities.
pub(crate) fn check_weights(values: &[f32]) -> Result<(), EncodeError> {
    match first_non_finite(values) {
        Some(index) => Err(EncodeError::NonFinite { index, value: values[index] }),
        None => Ok(()),
    }
}

/// Up to `V::N` consecutive blocks, one per lane. Lanes without a block repeat the last one.
pub(crate) struct Batch<'a, V> {
    /// Zero in every lane.
    pub(crate) zero: V,
    src: Rows<'a>,
    at: [usize; MAX_LANES],
    column: [usize; MAX_LANES],
}

impl<'a, V: Lanes> Batch<'a, V> {
    /// Elements `offset..offset + LEN` of each lane's block.
    #[inline(always)]
    pub(crate) fn values<const LEN: usize>(&self, offset: usize, x: &mut [V; LEN]) {
        V::columns(&self.src.values[offset..], &self.at, x);
    }

    /// Their importance, if there is one.
    #[inline(always)]
    pub(crate) fn importance<const LEN: usize>(&self, offset: usize, w: &mut [V; LEN]) {
        if let Some(importance) = self.src.importance {
            V::columns(&importance[offset..], &self.column, w);
        }
    }

    /// The sum of squares of each lane's super-block, from left to right.
    #[inline(always)]
    pub(crate) fn sum_of_squares(&self) -> V {
        let mut sum = self.zero;
        let mut x = [sum; 32];
        for j in 0..8 {
            self.values(32 * j, &mut x);
            for v in x {
                sum = sum + v * v;
            }
        }
        sum
    }

    /// The block of one lane.
    #[inline(always)]
    pub(crate) fn block<const LEN: usize>(&self, lane: usize) -> &'a [f32; LEN] {
        self.src.values[self.at[lane]..].first_chunk().expect("a lane holds a whole block")
    }

    /// The number of the row that a lane's block belongs to.
    #[inline(always)]
    pub(crate) fn row(&self, lane: usize) -> usize {
        self.at[lane] / self.src.row_len
    }
}

/// Calls `encode` for batch after batch with the blocks to fill, `V::N` or fewer in the last one.
#[inline(always)]
pub(crate) fn batches<V: Lanes, B: Block>(
    zero: V,
    src: Rows<'_>,
    out: &mut [B],
    mut encode: impl FnMut(&Batch<'_, V>, &mut [B]),
) {
    const { assert!(V::N <= MAX_LANES) }
    let mut next = 0;
    for out in out.chunks_mut(V::N) {
        let mut batch = Batch { zero, src, at: [0; MAX_LANES], column: [0; MAX_LANES] };
        for lane in 0..V::N {
            let at = (next + lane.min(out.len() - 1)) * B::LEN;
            batch.at[lane] = at;
            batch.column[lane] = at % src.row_len;
        }
        next += out.len();
        encode(&batch, out);
    }
}

/// The mean square of each row, summed from left to right as ggml does: rows in lanes.
#[inline(always)]
pub(crate) fn sigma2<V: Lanes>(zero: V, src: Rows<'_>) -> Vec<f32> {
    const STEP: usize = 32;
    let count = src.values.len() / src.row_len;
    let mut out = Vec::with_capacity(count);
    while out.len() < count {
        let first = out.len();
        let at: [usize; MAX_LANES] = core::array::from_fn(|lane| (first + lane).min(count - 1) * src.row_len);
        let mut sum = zero;
        let mut x = [zero; STEP];
        for offset in (0..src.row_len).step_by(STEP) {
            V::columns(&src.values[offset..], &at, &mut x);
            for v in x {
                sum = sum + v * v;
            }
        }
        let mean = sum / zero.splat(src.row_len as f32);
        out.extend((0..V::N.min(count - first)).map(|lane| mean.get(lane)));
    }
    out
}

#[cfg(test)]
mod tests;

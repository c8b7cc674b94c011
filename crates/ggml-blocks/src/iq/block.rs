//! What the encoders of IQ2 and IQ3 share around the scale search: importance to weights, signs, and
//! the quantization of the sub-block scales.

use super::codebook::Codebook;
use super::steps::Sub;
use crate::encode::check_weights;
use crate::lanes::nearest_int;
use crate::simd::{Simd, SimdOp};
use crate::{Encode, EncodeError, F16, Rows, formats};

/// The weights of a super-block.
pub(super) type Weights = [f32; 256];

/// A codebook format: how one super-block is encoded.
pub(super) trait SuperBlock: Encode {
    /// The codebook, made on first use.
    fn book() -> &'static Codebook;
    /// `None` where the scale has no finite f16. The importance is there if the format requires it.
    fn encode_one<S: Simd>(
        simd: S,
        book: &Codebook,
        x: &Weights,
        importance: Option<&Weights>,
    ) -> Option<Self>;
}

/// Implements [`Encode`] by [`SuperBlock`].
macro_rules! in_super_blocks {
    ($($module:ident::$name:ident)+) => { $(
        impl Encode for formats::$module::$name {
            #[inline(always)]
            fn encode<S: Simd>(simd: S, src: Rows<'_>, out: &mut [Self]) -> Result<(), EncodeError> {
                encode(simd, src, out)
            }
        }
    )+ };
}
in_super_blocks! {
    iq1_s::Iq1S
    iq1_m::Iq1M
    iq2_xxs::Iq2Xxs
    iq2_xs::Iq2Xs
    iq2_s::Iq2S
    iq3_xxs::Iq3Xxs
    iq3_s::Iq3S
}

/// Encodes rows block by block. Vectors hold eight candidates, so wider registers would not help.
#[inline(always)]
fn encode<S: Simd, B: SuperBlock>(simd: S, src: Rows<'_>, out: &mut [B]) -> Result<(), EncodeError> {
    check_weights(src.values)?;
    simd.narrow().run(Blocks { src, out })
}

struct Blocks<'a, B> {
    src: Rows<'a>,
    out: &'a mut [B],
}

impl<B: SuperBlock> SimdOp for Blocks<'_, B> {
    type Output = Result<(), EncodeError>;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Self::Output {
        let book = B::book();
        let blocks = self.src.values.as_chunks::<256>().0;
        for (n, (x, out)) in blocks.iter().zip(self.out).enumerate() {
            let importance = self.src.importance_of(n, 256).and_then(|w| w.first_chunk());
            *out = B::encode_one(simd, book, x, importance).ok_or(EncodeError::Unrepresentable {
                name: B::TYPE.name().unwrap_or("block"),
                index: n * 256,
            })?;
        }
        Ok(())
    }
}

/// The mean square, or `factor` times it.
#[inline(always)]
pub(super) fn sigma2(x: &Weights, factor: f32) -> f32 {
    let mut sum = 0.0;
    for &x in x {
        sum += x * x;
    }
    factor * sum / 256.0
}

/// The `N` numbers of sub-block `ib`.
#[inline(always)]
pub(super) fn part<const N: usize>(x: &Weights, ib: usize) -> &[f32; N] {
    &x.as_chunks::<N>().0[ib]
}

/// Importance scaled by the magnitude of the weights.
#[inline(always)]
pub(super) fn weigh<const N: usize>(x: &[f32; N], importance: &[f32; N], sigma2: f32) -> [f32; N] {
    let mut w = [0.0; N];
    for i in 0..N {
        w[i] = importance[i] * (sigma2 + x[i] * x[i]).sqrt();
    }
    w
}

impl<const N: usize> Sub<N> {
    /// Splits off the signs: bit `i` of the second result is the sign of weight `i`.
    #[inline(always)]
    pub(super) fn new(x: &[f32; N], w: [f32; N]) -> (Self, u32) {
        let mut sub = Self { x: [0.0; N], w, root: [0.0; N] };
        let mut signs = 0;
        for i in 0..N {
            sub.root[i] = w[i].sqrt();
            // -0.0 keeps its sign here and counts as positive, as in ggml.
            sub.x[i] = if x[i] >= 0.0 { x[i] } else { -x[i] };
            signs |= u32::from(x[i] < 0.0) << i;
        }
        (sub, signs)
    }

    /// Makes the number of negative signs in every group of eight even, so that seven bits hold them:
    /// flips the weight that matters least.
    #[inline(always)]
    pub(super) fn even_signs(&mut self, mut signs: u32) -> u32 {
        for k in 0..N / 8 {
            if (signs >> (8 * k) & 0xFF).count_ones().is_multiple_of(2) {
                continue;
            }
            let (x, w) = (&mut self.x[8 * k..8 * k + 8], &self.w[8 * k..8 * k + 8]);
            let mut least = w[0] * x[0] * x[0];
            let mut at = 0;
            for i in 1..8 {
                let cost = w[i] * x[i] * x[i];
                if cost < least {
                    (least, at) = (cost, i);
                }
            }
            x[at] = -x[at];
            signs ^= 1 << (8 * k + at);
        }
        signs
    }

    /// The largest magnitude.
    #[inline(always)]
    pub(super) fn max(&self) -> f32 {
        let mut max = self.x[0];
        for &x in &self.x[1..] {
            max = if max > x { max } else { x };
        }
        max
    }
}

/// The larger of two, the second if either is NaN.
#[inline(always)]
pub(super) fn larger(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// The block scale times ggml's correction, if f16 can hold it.
#[inline(always)]
pub(super) fn block_scale(d: f32, correction: f32) -> Option<F16> {
    let d = F16::from_f32(d * correction);
    (d.to_bits() & 0x7C00 != 0x7C00).then_some(d)
}

/// The level of a sub-block scale: the scale is `d * (2 * level + 1)`, and `id` is `1 / d`.
#[inline(always)]
pub(super) fn scale_level(id: f32, scale: f32, top: i32) -> u8 {
    nearest_int(0.5 * (id * scale - 1.0)).clamp(0, top) as u8
}

/// The levels of sixteen or eight scales, two per byte, the first in the low half.
#[inline(always)]
pub(super) fn nibbles<const N: usize, const BYTES: usize>(id: f32, scales: &[f32; N]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for (byte, [low, high]) in bytes.iter_mut().zip(scales.as_chunks().0) {
        *byte = scale_level(id, *low, 15) | scale_level(id, *high, 15) << 4;
    }
    bytes
}

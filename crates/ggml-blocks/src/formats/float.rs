//! F32, F16, BF16 and F64: plain floats, one number per block.
//!
//! ```text
//! F32   byte 0  IEEE binary32
//! F16   byte 0  IEEE binary16
//! BF16  byte 0  the upper half of an IEEE binary32
//! F64   byte 0  IEEE binary64
//! ```
//!
//! Used by unquantized models; norms and biases are F32 in all models. F16 and BF16 weights meet
//! activations in their own type, F32 weights in F32.

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, little_endian};

use crate::block::{Block, Encode, Rows};
use crate::error::EncodeError;
pub use crate::half::{Bf16, F16};
use crate::scan::Limit;
use crate::simd::Simd;

/// One IEEE binary32 number, little-endian.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct F32(pub little_endian::F32);

/// One IEEE binary64 number, little-endian. Decoding rounds it to f32; [`F64::get`] does not.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct F64(pub little_endian::F64);

impl F64 {
    /// The number without loss.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0.get()
    }
}

impl Block for F32 {
    const TYPE: GgmlType = GgmlType::F32;
    type Weights = [f32; 1];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, _: S, out: &mut [f32; 1]) {
        *out = [self.0.get()];
    }

    fn is_finite(&self) -> bool {
        self.0.get().is_finite()
    }
}

impl Encode for F32 {
    #[inline(always)]
    fn encode<S: Simd>(_: S, src: Rows<'_>, out: &mut [Self]) -> Result<(), EncodeError> {
        for (out, &x) in out.iter_mut().zip(src.values) {
            *out = Self(x.into());
        }
        Ok(())
    }
}

impl Block for F64 {
    const TYPE: GgmlType = GgmlType::F64;
    type Weights = [f32; 1];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, _: S, out: &mut [f32; 1]) {
        *out = [self.0.get() as f32];
    }

    fn is_finite(&self) -> bool {
        self.0.get().is_finite()
    }
}

impl Block for F16 {
    const TYPE: GgmlType = GgmlType::F16;
    type Weights = [f32; 1];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, simd: S, out: &mut [f32; 1]) {
        *out = [simd.widen(*self)];
    }

    fn is_finite(&self) -> bool {
        (*self).is_finite()
    }

    #[inline(always)]
    fn decode_all<S: Simd>(simd: S, blocks: &[Self], out: &mut [[f32; 1]]) {
        let out = out.as_flattened_mut();
        let (blocks, tail) = blocks.as_chunks::<8>();
        let (out, out_tail) = out.as_chunks_mut::<8>();
        for (h, out) in blocks.iter().zip(out) {
            *out = simd.widen8(h.map(Self::to_bits));
        }
        for (h, out) in tail.iter().zip(out_tail) {
            *out = simd.widen(*h);
        }
    }
}

impl Encode for F16 {
    const LIMIT: Option<Limit> = Some(Limit::new(65504.0, 65520.0));

    #[inline(always)]
    fn encode<S: Simd>(simd: S, src: Rows<'_>, out: &mut [Self]) -> Result<(), EncodeError> {
        let (values, tail) = src.values.as_chunks::<8>();
        let (out, out_tail) = out.as_chunks_mut::<8>();
        for (x, out) in values.iter().zip(out) {
            *out = simd.round8(*x).map(Self::from_bits);
        }
        for (x, out) in tail.iter().zip(out_tail) {
            *out = Self::from_f32(*x);
        }
        Ok(())
    }
}

impl Block for Bf16 {
    const TYPE: GgmlType = GgmlType::BF16;
    type Weights = [f32; 1];

    #[inline(always)]
    fn decode_on<S: Simd>(&self, _: S, out: &mut [f32; 1]) {
        *out = [self.to_f32()];
    }

    fn is_finite(&self) -> bool {
        self.to_f32().is_finite()
    }
}

impl Encode for Bf16 {
    const LIMIT: Option<Limit> = Some(Limit::new(f32::from_bits(0x7F7F_0000), f32::from_bits(0x7F7F_8000)));

    #[inline(always)]
    fn encode<S: Simd>(_: S, src: Rows<'_>, out: &mut [Self]) -> Result<(), EncodeError> {
        for (out, &x) in out.iter_mut().zip(src.values) {
            *out = Self::from_f32(x);
        }
        Ok(())
    }
}

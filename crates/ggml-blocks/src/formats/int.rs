//! I8, I16, I32 and I64: plain integers, one number per block, decoded to the nearest f32.
//!
//! ```text
//! I8   byte 0  two's complement
//! I16  byte 0  two's complement, little-endian
//! I32  byte 0  two's complement, little-endian
//! I64  byte 0  two's complement, little-endian
//! ```
//!
//! Used by index and lookup tables; no matrix is multiplied in them.

use gguf_format::GgmlType;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, little_endian};

use crate::block::Block;
use crate::simd::Simd;

/// One `i8`.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct I8(pub i8);

/// One `i16`, little-endian.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct I16(pub little_endian::I16);

/// One `i32`, little-endian.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct I32(pub little_endian::I32);

/// One `i64`, little-endian.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct I64(pub little_endian::I64);

macro_rules! ints {
    ($($name:ident $value:ident: $get:expr;)+) => { $(
        impl Block for $name {
            const TYPE: GgmlType = GgmlType::$name;
            type Weights = [f32; 1];

            #[inline(always)]
            fn decode_on<S: Simd>(&self, _: S, out: &mut [f32; 1]) {
                let $value = self.0;
                *out = [$get as f32];
            }

            fn is_finite(&self) -> bool {
                true
            }
        }
    )+ };
}

ints! {
    I8 x: x;
    I16 x: x.get();
    I32 x: x.get();
    I64 x: x.get();
}

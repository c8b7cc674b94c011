//! The table of formats: every type id that can be decoded, with its row functions.
//!
//! One line of `formats!` registers a format; names, tests, benchmarks and the CLI iterate over
//! [`FORMATS`].

use std::ops::Range;

use gguf_format::{GgmlType, Importance, TYPES, TypeInfo};

use crate::block::{Block, Encode, Rows, cast_blocks, cast_blocks_mut};
use crate::error::{DecodeError, EncodeError, NonFiniteScale};
use crate::formats::*;
use crate::scan::{self, Limit, Overflow};
use crate::simd::{Simd, SimdOp, dispatch, dispatch_narrow};

type EncodeBytes = fn(Rows<'_>, &mut [u8]) -> Result<(), EncodeError>;

/// A format chosen at run time: row functions over bytes.
#[derive(Debug)]
pub struct Format {
    ty: GgmlType,
    decode: fn(&[u8], &mut [f32]),
    encode: Option<EncodeBytes>,
    limit: Option<Limit>,
    first_bad: fn(&[u8]) -> Option<usize>,
}

macro_rules! formats {
    ($($kind:ident $module:ident::$name:ident;)+) => {
        /// Every format that can be decoded, in the order of the type ids' families.
        pub static FORMATS: [Format; [$(stringify!($name)),+].len()] =
            [$(Format::$kind::<$module::$name>()),+];
    };
}

formats! {
    codec float::F32;
    codec float::F16;
    codec float::Bf16;
    decode float::F64;
    decode int::I8;
    decode int::I16;
    decode int::I32;
    decode int::I64;
    codec q1_0::Q1_0;
    codec q2_0::Q2_0;
    codec q4_0::Q4_0;
    codec q4_1::Q4_1;
    codec q5_0::Q5_0;
    codec q5_1::Q5_1;
    codec q8_0::Q8_0;
    codec q8_1::Q8_1;
    codec q2_k::Q2K;
    codec q3_k::Q3K;
    codec q4_k::Q4K;
    codec q5_k::Q5K;
    codec q6_k::Q6K;
    codec q8_k::Q8K;
    codec iq1_s::Iq1S;
    codec iq1_m::Iq1M;
    codec iq2_xxs::Iq2Xxs;
    codec iq2_xs::Iq2Xs;
    codec iq2_s::Iq2S;
    codec iq3_xxs::Iq3Xxs;
    codec iq3_s::Iq3S;
    codec iq4_nl::Iq4Nl;
    codec iq4_xs::Iq4Xs;
    codec tq1_0::Tq1_0;
    codec tq2_0::Tq2_0;
    codec mxfp4::Mxfp4;
    codec nvfp4::Nvfp4;
}

impl Format {
    const fn decode<B: Block>() -> Self {
        const { assert_geometry::<B>() }
        Self { ty: B::TYPE, decode: decode_bytes::<B>, encode: None, limit: None, first_bad: first_bad::<B> }
    }

    const fn codec<B: Encode>() -> Self {
        Self { encode: Some(encode_bytes::<B>), limit: B::LIMIT, ..Self::decode::<B>() }
    }

    /// The format of a type id, `None` for one that is unknown or removed.
    #[must_use]
    pub fn of(ty: GgmlType) -> Option<&'static Self> {
        FORMATS.iter().find(|f| f.ty == ty)
    }

    /// The row of the type table: name, geometry, kind.
    #[must_use]
    pub fn info(&self) -> &'static TypeInfo {
        &TYPES[self.ty.0 as usize]
    }

    /// ggml's name of the format, such as `Q4_K`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.info().name
    }

    /// Weights per block, 1 for plain numbers.
    #[must_use]
    pub fn block_len(&self) -> usize {
        self.info().block_len as usize
    }

    /// Bytes per block.
    #[must_use]
    pub fn block_bytes(&self) -> usize {
        self.info().block_bytes as usize
    }

    /// Whether [`Format::encode_rows`] can work.
    #[must_use]
    pub fn can_encode(&self) -> bool {
        self.encode.is_some()
    }

    /// What the encoder does with an importance vector.
    #[must_use]
    pub fn importance(&self) -> Importance {
        self.info().importance
    }

    /// Bytes of a row.
    ///
    /// # Errors
    /// [`DecodeError::RowLength`] for a length of zero, one that the block does not divide, or one
    /// whose bytes `usize` cannot count.
    pub fn row_bytes(&self, row_len: usize) -> Result<usize, DecodeError> {
        let block_len = self.block_len();
        let bytes = (row_len / block_len).checked_mul(self.block_bytes());
        match bytes {
            Some(bytes) if row_len > 0 && row_len.is_multiple_of(block_len) => Ok(bytes),
            _ => Err(DecodeError::RowLength { name: self.name(), row_len, block_len }),
        }
    }

    /// Decodes whole rows of `row_len` weights.
    ///
    /// # Errors
    /// [`DecodeError`] unless `out` is a whole number of rows and `bytes` has just their length.
    pub fn decode_rows(&self, bytes: &[u8], row_len: usize, out: &mut [f32]) -> Result<(), DecodeError> {
        let need = self.rows_bytes(row_len, out.len())?;
        expect("bytes", need, bytes.len())?;
        (self.decode)(bytes, out);
        Ok(())
    }

    /// Decodes the blocks of a range, counted from the start of `bytes`.
    ///
    /// # Errors
    /// [`DecodeError`] if `bytes` is not a whole number of blocks, the range is not within it, or
    /// `out` has not just the length of the blocks' weights.
    pub fn decode_range(
        &self,
        bytes: &[u8],
        blocks: Range<usize>,
        out: &mut [f32],
    ) -> Result<(), DecodeError> {
        let size = self.block_bytes();
        let Range { start, end } = blocks;
        let count = bytes.len() / size;
        expect("bytes", count * size, bytes.len())?;
        if start > end || end > count {
            return Err(DecodeError::Range { start, end, blocks: count });
        }
        // A slice holds at most `isize::MAX` bytes, and no block has over 16 weights per byte.
        let need = (end - start).saturating_mul(self.block_len());
        expect("weights", need, out.len())?;
        (self.decode)(&bytes[start * size..end * size], out);
        Ok(())
    }

    /// Decodes chosen rows, as an embedding look-up does: touches the bytes of these rows only.
    ///
    /// # Errors
    /// [`DecodeError`] if `bytes` is not a whole number of rows, a row does not exist, or `out` has
    /// not just the length of the rows asked for.
    pub fn get_rows(
        &self,
        bytes: &[u8],
        row_len: usize,
        rows: &[usize],
        out: &mut [f32],
    ) -> Result<(), DecodeError> {
        let row_bytes = self.row_bytes(row_len)?;
        let count = bytes.len() / row_bytes;
        expect("bytes", count * row_bytes, bytes.len())?;
        expect("weights", rows.len().saturating_mul(row_len), out.len())?;
        if let Some(&row) = rows.iter().find(|&&row| row >= count) {
            return Err(DecodeError::Row { row, rows: count });
        }
        for (&row, out) in rows.iter().zip(out.chunks_exact_mut(row_len)) {
            (self.decode)(&bytes[row * row_bytes..][..row_bytes], out);
        }
        Ok(())
    }

    /// Encodes whole rows of `row_len` weights with ggml's bytes.
    ///
    /// Block formats refuse NaN and infinities. Plain floats take any value; what overflows becomes
    /// infinite, see [`Format::overflow`]. A format that ignores importance accepts one.
    ///
    /// # Errors
    /// [`EncodeError`]: no encoder, a value that is not finite, a missing, misshapen or non-finite
    /// importance vector, a block whose scale has no finite f16, or lengths that do not fit.
    pub fn encode_rows(
        &self,
        values: &[f32],
        row_len: usize,
        importance: Option<&[f32]>,
        out: &mut [u8],
    ) -> Result<(), EncodeError> {
        let name = self.name();
        let encode = self.encode.ok_or(EncodeError::EncoderUnavailable { name })?;
        let need = self.rows_bytes(row_len, values.len())?;
        expect("bytes", need, out.len())?;
        let importance = importance.filter(|_| self.importance() != Importance::Ignored);
        match importance {
            None if self.importance() == Importance::Required => {
                return Err(EncodeError::ImportanceRequired { name });
            }
            Some(w) if w.len() != row_len => {
                return Err(EncodeError::ImportanceLength { need: row_len, have: w.len() });
            }
            _ => {}
        }
        if let Some(index) = importance.and_then(scan::first_non_finite) {
            let value = importance.map_or(f32::NAN, |w| w[index]);
            return Err(EncodeError::ImportanceNonFinite { index, value });
        }
        encode(Rows { values, row_len, importance }, out)
    }

    /// The finite values that [`Format::encode_rows`] would turn into infinities: `F16` and `BF16`
    /// have such, block formats refuse what does not fit.
    #[must_use]
    pub fn overflow(&self, values: &[f32]) -> Option<Overflow> {
        self.limit.and_then(|limit| scan::overflow(values, limit))
    }

    /// Replaces the values of [`Format::overflow`] by the format's largest with their sign. NaNs and
    /// infinities stay.
    pub fn clamp(&self, values: &mut [f32]) {
        let Some(limit) = self.limit else { return };
        for x in values.iter_mut().filter(|x| x.is_finite() && x.abs() >= limit.overflow) {
            *x = limit.largest.copysign(*x);
        }
    }

    /// Checks the scales that ggml's validation checks.
    ///
    /// Bytes behind the last whole block are not looked at.
    ///
    /// # Errors
    /// [`NonFiniteScale`] with the first block that has a NaN or infinite one.
    pub fn check_finite(&self, bytes: &[u8]) -> Result<(), NonFiniteScale> {
        let whole = bytes.len() / self.block_bytes() * self.block_bytes();
        match (self.first_bad)(&bytes[..whole]) {
            None => Ok(()),
            Some(block) => Err(NonFiniteScale { name: self.name(), block }),
        }
    }

    /// Bytes of `weights` weights in rows of `row_len`.
    fn rows_bytes(&self, row_len: usize, weights: usize) -> Result<usize, DecodeError> {
        self.row_bytes(row_len)?;
        let whole = weights / row_len * row_len;
        expect("weights", whole, weights)?;
        // The weights exist as f32, so their count times the bytes per weight (at most 8) fits.
        Ok((weights / self.block_len()).saturating_mul(self.block_bytes()))
    }
}

pub(crate) fn expect(what: &'static str, need: usize, have: usize) -> Result<(), DecodeError> {
    if need == have { Ok(()) } else { Err(DecodeError::Length { what, need, have }) }
}

/// The struct, the trait constants and the type table must tell the same geometry.
const fn assert_geometry<B: Block>() {
    let info = &TYPES[B::TYPE.0 as usize];
    assert!(size_of::<B>() == info.block_bytes as usize);
    assert!(B::LEN == info.block_len as usize);
    assert!(align_of::<B>() == 1);
}

const CHECKED: &str = "the caller checked the lengths";

fn decode_bytes<B: Block>(bytes: &[u8], out: &mut [f32]) {
    decode_blocks::<B>(cast_blocks(bytes).expect(CHECKED), bytemuck::try_cast_slice_mut(out).expect(CHECKED));
}

/// Decodes on the best token of 256 bits or less: the work is loads, stores and few operations.
pub(crate) fn decode_blocks<B: Block>(blocks: &[B], out: &mut [B::Weights]) {
    struct Decode<'a, B: Block>(&'a [B], &'a mut [B::Weights]);
    impl<B: Block> SimdOp for Decode<'_, B> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            B::decode_all(simd, self.0, self.1);
        }
    }
    dispatch_narrow(Decode(blocks, out));
}

fn encode_bytes<B: Encode>(src: Rows<'_>, out: &mut [u8]) -> Result<(), EncodeError> {
    encode_blocks::<B>(src, cast_blocks_mut(out).expect(CHECKED))
}

/// Encodes on the best token of this CPU.
pub(crate) fn encode_blocks<B: Encode>(src: Rows<'_>, out: &mut [B]) -> Result<(), EncodeError> {
    struct Encoding<'a, B>(Rows<'a>, &'a mut [B]);
    impl<B: Encode> SimdOp for Encoding<'_, B> {
        type Output = Result<(), EncodeError>;
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> Self::Output {
            B::encode(simd, self.0, self.1)
        }
    }
    dispatch(Encoding(src, out))
}

fn first_bad<B: Block>(bytes: &[u8]) -> Option<usize> {
    cast_blocks::<B>(bytes).expect(CHECKED).iter().position(|block| !block.is_finite())
}

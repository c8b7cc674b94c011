//! The dtypes that are ggml types too. All others are listed, copied and sized, but have no values here.

use std::error::Error as StdError;
use std::fmt;

use ggml_blocks::Format;
use gguf_format::GgmlType;
use safetensors_lite::Dtype;

/// The pairs: little-endian bytes of the one are bytes of the other.
const PAIRS: [(Dtype, GgmlType); 3] =
    [(Dtype::F32, GgmlType::F32), (Dtype::F16, GgmlType::F16), (Dtype::BF16, GgmlType::BF16)];

/// A dtype whose values nothing here can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsupportedDtype(
    /// The dtype.
    pub Dtype,
);

impl fmt::Display for UnsupportedDtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unsupported dtype {}: values can be had of F32, F16 and BF16", self.0)
    }
}

impl StdError for UnsupportedDtype {}

/// The codec of a dtype.
///
/// # Errors
/// [`UnsupportedDtype`] for all but F32, F16 and BF16.
pub fn format_of(dtype: Dtype) -> Result<&'static Format, UnsupportedDtype> {
    let ty = PAIRS.iter().find(|(d, _)| *d == dtype).map(|(_, ty)| *ty);
    ty.and_then(Format::of).ok_or(UnsupportedDtype(dtype))
}

/// The dtype of a ggml type, where there is one.
#[must_use]
pub fn dtype_of(ty: GgmlType) -> Option<Dtype> {
    PAIRS.iter().find(|(_, t)| *t == ty).map(|(dtype, _)| *dtype)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_dtypes_go_both_ways() {
        let mut supported = Vec::new();
        for &dtype in safetensors_lite::DTYPES {
            match format_of(dtype) {
                Ok(format) => {
                    assert_eq!(format.block_len(), 1);
                    assert_eq!(format.block_bytes() as u64 * 8, dtype.bits());
                    assert_eq!(dtype_of(format.info().id), Some(dtype));
                    supported.push(dtype.tag());
                }
                Err(e) => assert!(e.to_string().contains(dtype.tag()), "{e}"),
            }
        }
        assert_eq!(supported, ["F16", "BF16", "F32"]);
        assert_eq!(dtype_of(GgmlType::Q8_0), None);
    }
}

//! Files made by hand, right and wrong.

use safetensors_lite::{Error, SafeTensors};

/// A file of this JSON text and these data.
pub(crate) fn frame(json: impl AsRef<[u8]>, data: &[u8]) -> Vec<u8> {
    let json = json.as_ref();
    [&(json.len() as u64).to_le_bytes(), json, data].concat()
}

/// One F32 tensor of two elements.
pub(crate) const ONE: &str = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;

/// The data of `ONE`: 1 and 2.
pub(crate) const ONE_DATA: [u8; 8] = [0, 0, 128, 63, 0, 0, 0, 64];

/// A file with several tensors, metadata, escapes, an empty tensor, a scalar and a sub-byte type.
pub(crate) fn varied() -> Vec<u8> {
    let json = concat!(
        r#"{"__metadata__":{"format":"pt","k\n":"v"},"#,
        r#""w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"#,
        r#""s\u00e9":{"dtype":"BF16","shape":[],"data_offsets":[8,10]},"#,
        r#""none":{"dtype":"I64","shape":[3,0],"data_offsets":[10,10]},"#,
        r#""f4":{"dtype":"F4","shape":[2,2],"data_offsets":[10,12]}} "#,
    );
    frame(json, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
}

/// The error of this JSON text and these data.
pub(crate) fn error(json: impl AsRef<[u8]>, data: &[u8]) -> Error {
    SafeTensors::parse(&frame(json, data)).expect_err("a rule is broken")
}

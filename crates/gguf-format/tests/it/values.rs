//! Accessors widen and never wrap.

use gguf_format::{Str, Value};

#[test]
fn accessors_widen_or_answer_none() {
    use Value as V;
    let big = (1_u64 << 53) + 1;
    // value, as i64, as u64, as f64
    let table = [
        (V::U8(255), Some(255), Some(255), Some(255.0)),
        (V::I8(-128), Some(-128), None, Some(-128.0)),
        (V::U16(65_535), Some(65_535), Some(65_535), Some(65_535.0)),
        (V::I16(-1), Some(-1), None, Some(-1.0)),
        (V::U32(u32::MAX), Some(u32::MAX.into()), Some(u32::MAX.into()), Some(u32::MAX.into())),
        (V::I32(i32::MIN), Some(i32::MIN.into()), None, Some(i32::MIN.into())),
        (V::U64(1 << 63), None, Some(1 << 63), None),
        (V::U64(u64::MAX), None, Some(u64::MAX), None),
        (V::U64(1 << 53), Some(1 << 53), Some(1 << 53), Some(9_007_199_254_740_992.0)),
        (V::U64(big), Some(big as i64), Some(big), None),
        (V::I64(i64::MIN), Some(i64::MIN), None, None),
        (V::I64(7), Some(7), Some(7), Some(7.0)),
        (V::F32(0.5), None, None, Some(0.5)),
        (V::F64(1e300), None, None, Some(1e300)),
        (V::Bool(true), None, None, None),
        (V::String(Str::new(b"1")), None, None, None),
    ];
    for (value, i, u, f) in table {
        assert_eq!((value.as_i64(), value.as_u64(), value.as_f64()), (i, u, f), "{value:?}");
    }
    assert_eq!(V::Bool(false).as_bool(), Some(false));
    assert_eq!(V::U8(1).as_bool(), None);
    assert_eq!(V::String(Str::new(b"x")).as_str(), Some("x"));
    assert!(V::F32(f32::NAN).as_f64().is_some_and(f64::is_nan));
}

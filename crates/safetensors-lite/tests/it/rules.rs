//! One test per rule of the header, named after what it stops. Public reports are cited where there are any.

use crate::make::{ONE, ONE_DATA, error, frame, varied};
use safetensors_lite::{DTYPES, Dtype, Error, ErrorKind, Found, MAX_HEADER_LEN, SafeTensors};

fn parse_error(bytes: &[u8]) -> Error {
    SafeTensors::parse(bytes).expect_err("a rule is broken")
}

/// One F32 tensor `a` whose entry has this text for its fields.
fn fields(fields: &str, data: &[u8]) -> Error {
    error(format!(r#"{{"a":{{{fields}}}}}"#), data)
}

#[test]
fn length_is_there() {
    for have in 0..8 {
        let error = parse_error(&[7; 8][..have]);
        assert_eq!((error.at(), error.kind()), (0, &ErrorKind::LengthMissing { have: have as u64 }));
    }
}

/// safetensors/safetensors#668, run-ai/runai-model-streamer#121: a length is not a reason to allocate.
#[test]
fn length_has_a_limit() {
    for announced in [MAX_HEADER_LEN + 1, 1 << 63, u64::MAX] {
        let bytes = [&announced.to_le_bytes()[..], b"{}"].concat();
        let looks_like = None;
        assert_eq!(parse_error(&bytes).kind(), &ErrorKind::HeaderTooLarge { announced, looks_like });
    }
}

/// huggingface/transformers#28689, Comfy-Org/ComfyUI#15687: what a failed download leaves is called by its name.
#[test]
fn other_files_are_named() {
    for (bytes, what) in [
        (&b"version https://git-lfs.github.com/spec/v1\noid sha256:0"[..], "Git LFS"),
        (b"<!DOCTYPE html><html>", "web page"),
        (b"GGUF\x03\0\0\0\x01\0\0\0", "GGUF"),
        (b"PK\x03\x04\x14\0\x08\x08", "zip"),
        (b"{\"error\":\"not found\"}", "JSON"),
    ] {
        let error = parse_error(bytes);
        assert!(matches!(error.kind(), ErrorKind::HeaderTooLarge { looks_like: Some(_), .. }), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    }
}

/// lyogavin/airllm#137: a download that stopped.
#[test]
fn header_is_inside_the_file() {
    let whole = frame(ONE, &ONE_DATA);
    let need = ONE.len() as u64;
    for cut in 8..8 + ONE.len() {
        let error = parse_error(&whole[..cut]);
        assert_eq!((error.at(), error.kind()), (8, &ErrorKind::HeaderPastEnd { need, have: cut as u64 - 8 }));
    }
}

#[test]
fn header_is_utf8() {
    let error = error(b"{\"a\xff\":{}}", &[]);
    assert_eq!((error.at(), error.kind()), (11, &ErrorKind::NotUtf8));
}

/// Trail of Bits' audit of the format, 2023: the header begins with a brace, and with nothing before it.
#[test]
fn header_begins_with_a_brace() {
    for (json, found) in [("", None), (" {}", Some(b' ')), ("\u{feff}{}", Some(0xef)), ("[]", Some(b'['))] {
        let error = error(json, &[]);
        assert_eq!((error.at(), error.kind()), (8, &ErrorKind::NoBrace { found }));
    }
}

#[test]
fn header_is_json() {
    for (json, at) in [("{\"a\":", 12), ("{}\0", 10), ("{} x", 11), ("{\"\\ud800\":1}", 16), ("{\"a\"}", 12)]
    {
        let error = error(json, &[]);
        assert!(matches!(error.kind(), ErrorKind::Json { .. }), "{json:?}: {error}");
        assert_eq!(error.at(), at, "{json:?}: {error}");
    }
}

#[test]
fn whitespace_may_end_the_header() {
    for padding in [" ".repeat(1000), "\n\t\r ".into()] {
        let bytes = frame(format!("{ONE}{padding}"), &ONE_DATA);
        assert_eq!(SafeTensors::parse(&bytes).unwrap().len(), 1);
    }
}

/// A hundred thousand brackets, in every place where a value can stand: no stack is deep enough.
#[test]
fn nesting_is_limited() {
    let deep = "[".repeat(100_000);
    for json in [
        format!("{{\"a\":{deep}"),
        format!("{{\"__metadata__\":{{\"k\":{deep}"),
        format!("{{\"a\":{{\"more\":{deep}"),
        format!("{{\"a\":{{\"shape\":{deep}"),
        format!("{{\"a\":{{\"more\":{}", "{\"k\":".repeat(100_000)),
    ] {
        let error = error(json, &[]);
        assert!(matches!(error.kind(), ErrorKind::Json { .. }), "{error}");
        assert!(error.to_string().contains("recursion"), "{error}");
    }
}

/// safetensors/safetensors#401: at every level, and also where both values agree.
#[test]
fn keys_stand_once() {
    let entry = r#"{"dtype":"F32","shape":[2],"data_offsets":[0,8]}"#;
    let other = r#"{"dtype":"F32","shape":[2],"data_offsets":[8,16]}"#;
    let more = |more: &str| format!(r#"{{"a":{{"dtype":"F32","shape":[2],"data_offsets":[0,8],{more}}}}}"#);
    for (json, key, inside) in [
        (format!(r#"{{"a":{entry},"a":{entry}}}"#), "a", None),
        (format!(r#"{{"a":{entry},"a":{other}}}"#), "a", None),
        (format!(r#"{{"a":{entry},"\u0061":{other}}}"#), "a", None),
        (format!(r#"{{"__metadata__":{{}},"a":{entry},"__metadata__":{{}}}}"#), "__metadata__", None),
        (format!(r#"{{"__metadata__":{{"k":"1","k":"1"}},"a":{entry}}}"#), "k", Some("__metadata__")),
        (more(r#""dtype":"F32""#), "dtype", Some("a")),
        (more(r#""shape":[2]"#), "shape", Some("a")),
        (more(r#""data_offsets":[0,8]"#), "data_offsets", Some("a")),
        (more(r#""x":1,"x":2"#), "x", Some("a")),
        (more(r#""x":[{"y":{"z":1,"z":1}}]"#), "z", Some("a")),
    ] {
        let error = error(&json, &[0; 16]);
        let kind = ErrorKind::DuplicateKey { key: key.into(), inside: inside.map(Into::into) };
        assert_eq!(error.kind(), &kind, "{json}");
        // The place of the second one, where it is spelled as it is named.
        let second = json.rfind(&format!("\"{key}\"")).unwrap() + 1;
        assert!(json.contains("\\u") || error.at() as usize - 8 == second, "{json}: {error}");
    }
}

/// The rules have an order: JSON first, then duplicates, then the schema, wherever each is broken.
#[test]
fn earlier_rules_win() {
    let error_of = |json: &str| error(json, &[]);
    let json = error_of(r#"{"a":1,"b":{"dtype":"F9"},"b":{},]"#);
    assert!(matches!(json.kind(), ErrorKind::Json { .. }), "{json}");
    let duplicate = error_of(r#"{"a":1,"b":{"dtype":"F9"},"c":{"x":1,"x":2}}"#);
    assert!(matches!(duplicate.kind(), ErrorKind::DuplicateKey { .. }), "{duplicate}");
    let schema = error_of(r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]},"b":[]}"#);
    assert!(matches!(schema.kind(), ErrorKind::WrongType { .. }), "{schema}");
}

#[test]
fn metadata_is_strings() {
    for (metadata, field, found) in [
        (r#"{"k":1}"#, "k", Found::Unsigned(1)),
        (r#"{"k":null}"#, "k", Found::Null),
        (r#"{"k":{"v":"w"}}"#, "k", Found::Object),
        (r#"{"k":["v"]}"#, "k", Found::Array),
        ("null", "", Found::Null),
        (r#""text""#, "", Found::Text("text".into())),
        ("[]", "", Found::Array),
    ] {
        let error = error(format!(r#"{{"__metadata__":{metadata}}}"#), &[]);
        let ErrorKind::WrongType { inside, field: in_field, found: what, .. } = error.kind() else {
            panic!("{error}");
        };
        assert_eq!((&**inside, &**in_field, what), ("__metadata__", field, &found));
    }
}

#[test]
fn entries_are_objects() {
    for (entry, found) in [
        ("1", Found::Unsigned(1)),
        ("-1", Found::Negative(-1)),
        ("true", Found::Bool(true)),
        ("null", Found::Null),
        (r#"["F32",[2],[0,8]]"#, Found::Array),
    ] {
        let error = error(format!(r#"{{"a":{entry}}}"#), &[]);
        let (inside, field, expected) = ("a".into(), "".into(), "an object");
        assert_eq!(error.kind(), &ErrorKind::WrongType { inside, field, expected, found });
    }
}

#[test]
fn fields_are_all_there() {
    for (text, field) in [
        (r#""shape":[2],"data_offsets":[0,8]"#, "dtype"),
        (r#""dtype":"F32","data_offsets":[0,8]"#, "shape"),
        (r#""dtype":"F32","shape":[2]"#, "data_offsets"),
    ] {
        let error = fields(text, &ONE_DATA);
        assert_eq!((error.at(), error.kind()), (10, &ErrorKind::MissingField { tensor: "a".into(), field }));
    }
}

/// Unknown fields are read over, as upstream's reader does.
#[test]
fn unknown_fields_are_ignored() {
    let json = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":{"deep":[1,"x",null,1.5]}}}"#;
    assert_eq!(SafeTensors::parse(&frame(json, &ONE_DATA)).unwrap().len(), 1);
}

#[test]
fn dtypes_are_known() {
    for tag in ["F128", "f32", "", "F32 ", "BF16\u{0}"] {
        let json = format!(r#""dtype":{},"shape":[2],"data_offsets":[0,8]"#, serde_tag(tag));
        let kind = ErrorKind::UnknownDtype { tensor: "a".into(), tag: tag.into() };
        assert_eq!(fields(&json, &ONE_DATA).kind(), &kind);
    }
    let error = fields(r#""dtype":32,"shape":[2],"data_offsets":[0,8]"#, &ONE_DATA);
    assert!(matches!(error.kind(), ErrorKind::WrongType { found: Found::Unsigned(32), .. }), "{error}");
}

fn serde_tag(tag: &str) -> String {
    format!("{tag:?}").replace("\\0", "\\u0000")
}

/// leejet/stable-diffusion.cpp#1875, ml-explore/mlx#3363: a product that wraps to the right size.
#[test]
fn sizes_do_not_overflow() {
    for (dtype, shape) in [
        ("F32", "[4611686018427387904,4611686018427387904]"),
        ("F64", "[2305843009213693952]"),
        ("U8", "[18446744073709551615,2,0]"),
        ("U8", "[18446744073709551615]"),
    ] {
        let error = fields(&format!(r#""dtype":"{dtype}","shape":{shape},"data_offsets":[0,0]"#), &[]);
        assert!(matches!(error.kind(), ErrorKind::SizeOverflow { .. }), "{error}");
    }
}

#[test]
fn numbers_are_unsigned_integers() {
    for (number, found) in [
        ("-2", Found::Negative(-2)),
        ("2.0", Found::Float(2.0)),
        ("2e0", Found::Float(2.0)),
        ("-0", Found::Float(-0.0)),
        ("18446744073709551616", Found::Float(18446744073709551616.0)),
        ("\"2\"", Found::Text("2".into())),
        ("[2]", Found::Array),
        ("null", Found::Null),
        ("true", Found::Bool(true)),
    ] {
        for text in [
            format!(r#""dtype":"F32","shape":[1,{number}],"data_offsets":[0,8]"#),
            format!(r#""dtype":"F32","shape":[2],"data_offsets":[0,{number}]"#),
        ] {
            let error = fields(&text, &ONE_DATA);
            let ErrorKind::WrongType { found: what, .. } = error.kind() else { panic!("{error}") };
            assert_eq!(what, &found);
        }
    }
}

#[test]
fn offsets_are_a_pair() {
    for (offsets, count) in [("[]", 0), ("[0]", 1), ("[0,8,8]", 3)] {
        let error = fields(&format!(r#""dtype":"F32","shape":[2],"data_offsets":{offsets}"#), &ONE_DATA);
        assert_eq!(error.kind(), &ErrorKind::OffsetCount { tensor: "a".into(), count });
    }
}

/// Two tensors with these offsets, 12 bytes of data.
fn two(a: [u64; 2], b: [u64; 2]) -> ErrorKind {
    let json = format!(
        r#"{{"a":{{"dtype":"U8","shape":[{}],"data_offsets":{a:?}}},"b":{{"dtype":"U8","shape":[{}],"data_offsets":{b:?}}}}}"#,
        a[1].saturating_sub(a[0]),
        b[1].saturating_sub(b[0]),
    );
    error(json, &[0; 12]).kind().clone()
}

/// ml-explore/mlx#3363: offsets that cross or leave something out.
#[test]
fn data_is_contiguous() {
    let tensor = |name: &str| -> Box<str> { name.into() };
    let cases = [
        (two([0, 8], [4, 12]), ErrorKind::Overlap { tensor: tensor("b"), begin: 4, expected: 8 }),
        (two([4, 12], [0, 8]), ErrorKind::Overlap { tensor: tensor("a"), begin: 4, expected: 8 }),
        (two([0, 4], [0, 12]), ErrorKind::Overlap { tensor: tensor("b"), begin: 0, expected: 4 }),
        (two([0, 4], [8, 12]), ErrorKind::Hole { tensor: tensor("b"), begin: 8, expected: 4 }),
        (two([1, 4], [4, 12]), ErrorKind::Hole { tensor: tensor("a"), begin: 1, expected: 0 }),
        (two([8, 0], [8, 12]), ErrorKind::ReversedOffsets { tensor: tensor("a"), begin: 8, end: 0 }),
    ];
    for (found, expected) in cases {
        assert_eq!(found, expected);
    }
}

/// safetensors/safetensors#254 and Trail of Bits' audit: what follows the data could be another file's content.
#[test]
fn data_is_covered() {
    let whole = frame(ONE, &ONE_DATA);
    for more in [&b"\0"[..], b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"] {
        let error = parse_error(&[&whole, more].concat());
        let extra = more.len() as u64;
        assert_eq!((error.at(), error.kind()), (whole.len() as u64, &ErrorKind::TrailingBytes { extra }));
    }
    for have in 0..8 {
        let error = parse_error(&whole[..whole.len() - 8 + have]);
        let kind = ErrorKind::DataTruncated { tensor: "a".into(), need: 8, have: have as u64 };
        assert_eq!(error.kind(), &kind);
    }
    assert_eq!(parse_error(&frame("{}", &[1])).kind(), &ErrorKind::TrailingBytes { extra: 1 });
}

#[test]
fn sizes_agree() {
    for (shape, need) in [("[1000,1000]", 4_000_000), ("[1]", 4), ("[3]", 12), ("[]", 4), ("[0]", 0)] {
        let error = fields(&format!(r#""dtype":"F32","shape":{shape},"data_offsets":[0,8]"#), &ONE_DATA);
        let ErrorKind::SizeMismatch { need: n, have: 8, .. } = *error.kind() else { panic!("{error}") };
        assert_eq!(n, need);
    }
}

#[test]
fn sub_byte_elements_fill_bytes() {
    for (dtype, count, bits) in [("F4", 3, 12), ("F6_E2M3", 2, 12), ("F6_E3M2", 5, 30)] {
        let bytes = vec![0; bits / 8];
        let text = format!(r#""dtype":"{dtype}","shape":[{count}],"data_offsets":[0,{}]"#, bytes.len());
        let error = fields(&text, &bytes);
        let ErrorKind::SubByte { bits: found, .. } = *error.kind() else { panic!("{error}") };
        assert_eq!(found, bits as u64);
    }
}

/// safetensors/safetensors#226: equal offsets are a tensor too. An empty shape is one element.
#[test]
fn empty_tensors_and_scalars_are_kept() {
    let bytes = varied();
    let file = SafeTensors::parse(&bytes).unwrap();
    let names: Vec<_> = file.tensors().map(|t| t.name()).collect();
    assert_eq!(names, ["w", "sé", "none", "f4"]);
    let none = file.tensor("none").unwrap();
    assert_eq!((none.shape(), none.data().len(), none.info().elements()), (&[3, 0][..], 0, 0));
    let scalar = file.tensor("sé").unwrap();
    assert_eq!((scalar.shape(), scalar.data(), scalar.info().elements()), (&[][..], &[9, 10][..], 1));
    assert_eq!(file.tensor("f4").unwrap().data(), [11, 12]);
    assert!(file.tensor("s\\u00e9").is_none());
    assert_eq!(file.header().metadata().collect::<Vec<_>>(), [("format", "pt"), ("k\n", "v")]);
    assert_eq!(file.header().metadata_value("k\n"), Some("v"));
}

/// safetensors/safetensors#601: a file without tensors is a file.
#[test]
fn no_tensors_is_legal() {
    for json in ["{}", r#"{"__metadata__":{}}"#, r#"{"__metadata__":{"k":"v"}}"#] {
        let bytes = frame(json, &[]);
        let file = SafeTensors::parse(&bytes).unwrap();
        assert!(file.is_empty());
        assert_eq!(file.header().has_metadata(), json != "{}");
    }
}

/// safetensors/safetensors#231, #607: neither the header nor an odd tensor aligns what follows.
#[test]
fn data_may_lie_anywhere() {
    let json = concat!(
        r#"{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"#,
        r#""b":{"dtype":"F32","shape":[1],"data_offsets":[3,7]}}"#
    );
    let bytes = frame(json, &[1, 2, 3, 0, 0, 128, 63]);
    let file = SafeTensors::parse(&bytes).unwrap();
    let data = file.tensor("b").unwrap().data();
    assert_eq!(f32::from_le_bytes(data.try_into().unwrap()), 1.0);
}

#[test]
fn order_of_the_json_is_free() {
    let json = concat!(
        r#"{"b":{"data_offsets":[8,12],"shape":[1],"dtype":"F32"},"#,
        r#""__metadata__":{"k":"v"},"#,
        r#""a":{"shape":[2],"dtype":"F32","data_offsets":[0,8]}}"#
    );
    let bytes = frame(json, &[0; 12]);
    let file = SafeTensors::parse(&bytes).unwrap();
    assert_eq!(file.tensors().map(|t| t.name()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(file.tensor("b").unwrap().info().offsets(), 8..12);
}

#[test]
fn every_dtype_is_read() {
    for &dtype in DTYPES {
        let len = dtype.bits();
        let json = format!(r#"{{"a":{{"dtype":"{dtype}","shape":[8],"data_offsets":[0,{len}]}}}}"#);
        let bytes = frame(json, &vec![0; len as usize]);
        assert_eq!(SafeTensors::parse(&bytes).unwrap().tensor("a").unwrap().dtype(), dtype);
    }
    assert_eq!((DTYPES.len(), Dtype::from_tag("BF16")), (22, Some(Dtype::BF16)));
}

/// Many tensors, and many duplicates: time grows with the text, not with its square.
#[test]
fn many_tensors_take_linear_time() {
    let entry = |i: usize| format!(r#""t{i}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#);
    let mut entries: Vec<String> = (0..100_000).map(|i| entry(i * 7919 % 100_000)).collect();
    let bytes = frame(format!("{{{}}}", entries.join(",")), &[]);
    let file = SafeTensors::parse(&bytes).unwrap();
    assert_eq!(file.len(), 100_000);
    assert!((0..100_000).all(|i| file.tensor(&format!("t{i}")).is_some()));
    entries.push(entry(4711));
    let error = error(format!("{{{}}}", entries.join(",")), &[]);
    assert!(matches!(error.kind(), ErrorKind::DuplicateKey { .. }), "{error}");
}

//! The builder, the layout and the stream, and every way to get them wrong.

use std::fmt::Write as _;

use gguf_format::{ALIGNMENT_KEY, Builder, GgmlType, Gguf, IoSink, Sink, StreamError, Value, WriteError};

use crate::raw::Raw;

fn keys(builder: &Builder) -> Vec<String> {
    let layout = builder.layout().unwrap();
    Gguf::parse_with(layout.header(), &crate::HEADER).unwrap().metadata().map(|e| e.key().into()).collect()
}

#[test]
fn keys_keep_their_place() {
    let mut b = Builder::new();
    b.set("a", 1_u8).set("b", 2_u16).set("c", "three").set("d", [true, false]);
    assert_eq!(keys(&b), ["a", "b", "c", "d"]);
    b.set("b", 2.5_f32);
    assert!(b.remove("a"));
    assert!(!b.remove("a"));
    b.set("a", 1_i64).set("d", "last");
    assert_eq!(keys(&b), ["b", "c", "d", "a"]);
    let layout = b.layout().unwrap();
    let gguf = Gguf::parse(layout.header()).unwrap();
    assert_eq!(gguf.get("b"), Some(Value::F32(2.5)));
    assert_eq!(gguf.get("d").unwrap().as_str(), Some("last"));
    assert_eq!(gguf.get("a"), Some(Value::I64(1)));
}

#[test]
fn the_rust_type_picks_the_wire_type() {
    let mut b = Builder::new();
    let owned = String::from("s");
    b.set("0", 1_u8).set("1", 1_i8).set("2", 1_u16).set("3", 1_i16).set("4", 1_u32).set("5", 1_i32);
    b.set("6", 1_f32).set("7", true).set("8", &owned).set("10", 1_u64).set("11", 1_i64).set("12", 1_f64);
    let layout = b.layout().unwrap();
    let gguf = Gguf::parse(layout.header()).unwrap();
    for entry in gguf.metadata() {
        assert_eq!(entry.key(), entry.value_type().id().to_string());
    }
    let (bytes, names) = (vec![1_u8], [String::from("x")]);
    let mut b = Builder::new();
    b.set("n", &[1_i16, 2][..]).set("e", Vec::<f64>::new()).set("t", [&owned]).set("o", &owned);
    b.set("v", &bytes).set("w", bytes).set("r", &names).set("q", names).set("s", vec![owned]);
    let layout = b.layout().unwrap();
    let gguf = Gguf::parse(layout.header()).unwrap();
    let types = gguf.metadata().map(|e| e.value().as_array().map(|a| a.element_type().name()));
    let (string, u8_) = (Some("string"), Some("u8"));
    assert!(types.eq([Some("i16"), Some("f64"), string, None, u8_, u8_, string, string, string]));
}

/// Key and layout cannot disagree: tools that copied the key but laid out by 32 wrote files that
/// their own reader refuses.
#[test]
fn the_alignment_is_what_the_key_says() {
    let offsets = |b: &mut Builder| {
        b.tensor("a", &[3], GgmlType::F32).unwrap().tensor("b", &[1], GgmlType::F32).unwrap();
        let layout = b.layout().unwrap();
        let file = layout.whole(&[&[1; 12], &[2; 4]]).unwrap();
        let gguf = Gguf::parse(&file).unwrap();
        assert_eq!(gguf.alignment(), u64::from(layout.alignment()));
        let written = gguf.get(ALIGNMENT_KEY).and_then(|v| v.as_u64());
        (written, gguf.tensors().map(|t| t.offset()).collect::<Vec<_>>())
    };
    assert_eq!(offsets(&mut Builder::new()), (None, vec![0, 32]));
    assert_eq!(offsets(Builder::new().align(32)), (Some(32), vec![0, 32]));
    assert_eq!(offsets(Builder::new().align(64)), (Some(64), vec![0, 64]));
    assert_eq!(offsets(Builder::new().set(ALIGNMENT_KEY, 16_u32)), (Some(16), vec![0, 16]));
    let source = Raw::new().align(4096).bytes();
    let mut copied = Builder::from_gguf(&Gguf::parse(&source).unwrap());
    assert_eq!(offsets(&mut copied), (Some(4096), vec![0, 4096]));
    let mut removed = Builder::from_gguf(&Gguf::parse(&source).unwrap());
    removed.remove(ALIGNMENT_KEY);
    assert_eq!(offsets(&mut removed), (None, vec![0, 32]));
}

/// A huge alignment in a small file costs nothing until the file is written.
#[test]
fn a_layout_is_numbers() {
    let mut b = Builder::new();
    b.align(1 << 31).tensor("a", &[8], GgmlType::F32).unwrap();
    let layout = b.layout().unwrap();
    assert!(layout.header().len() < 200);
    assert_eq!(layout.header().len() as u64 + layout.header_padding(), 1 << 31);
    assert_eq!(layout.tensors()[0].file_offset, 1 << 31);
    assert_eq!(layout.tensors()[0].padding_after, (1 << 31) - 32);
    assert_eq!(layout.total_len(), 1 << 32);
}

#[test]
fn every_write_error_has_its_text() {
    let layout = |b: &Builder| b.layout().unwrap_err();
    let shape = |dims: &[u64], ty| Builder::new().tensor("w", dims, ty).map(|_| ()).unwrap_err();
    let name = |name: &str| Builder::new().tensor(name, &[8], GgmlType::F32).map(|_| ()).unwrap_err();
    let mut two = Builder::new();
    two.tensor("a", &[1], GgmlType::F32).unwrap().tensor("b", &[2], GgmlType::F32).unwrap();
    let ok = two.layout().unwrap();
    let mut huge = Builder::new();
    for i in 0..3 {
        huge.tensor(&i.to_string(), &[1 << 60], GgmlType::F64).unwrap();
    }
    let mut long = Builder::new();
    let allowed = long.allow_long_names().tensor(&"x".repeat(65_536), &[8], GgmlType::F32);
    let write = |e: StreamError<_>| -> WriteError { e.into_write() };
    let mut over = ok.stream(Vec::new());
    let mut part = ok.stream(Vec::new());
    part.write(&[0; 5]).unwrap();
    let errors = [
        layout(Builder::new().set("", 1_u8)),
        layout(Builder::new().set(&"k".repeat(65_536), 1_u8)),
        layout(Builder::new().set(ALIGNMENT_KEY, 64_u64)),
        layout(Builder::new().set(ALIGNMENT_KEY, "64")),
        layout(Builder::new().align(0)),
        layout(Builder::new().align(48)),
        layout(&huge),
        name(""),
        name(&"x".repeat(64)),
        allowed.map(|_| ()).unwrap_err(),
        two.tensor("a", &[1], GgmlType::F32).map(|_| ()).unwrap_err(),
        shape(&[1; 5], GgmlType::F32),
        shape(&[1 << 63], GgmlType::I8),
        shape(&[1 << 40, 1 << 40], GgmlType::I8),
        shape(&[100], GgmlType::Q4_K),
        shape(&[], GgmlType::Q4_K),
        shape(&[1 << 62], GgmlType::F64),
        shape(&[32], GgmlType::Q4_2),
        shape(&[32], GgmlType(137)),
        ok.whole(&[&[0; 4]]).unwrap_err(),
        ok.whole(&[&[0; 4], &[0; 9]]).unwrap_err(),
        write(over.write(&[0; 20]).unwrap_err()),
        write(part.finish().unwrap_err()),
        write(ok.stream(Vec::new()).finish().unwrap_err()),
    ];
    let mut text = String::new();
    for error in errors {
        writeln!(text, "{error}").unwrap();
    }
    insta::assert_snapshot!("write_errors", text);
}

/// Takes this many bytes, then fails, as a full disk does.
struct Full(usize);

impl Sink for Full {
    type Error = &'static str;

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or("disk full")?;
        Ok(())
    }
}

#[test]
fn a_stream_never_ends_well_after_a_failure() {
    let mut b = Builder::new();
    b.tensor("a", &[8], GgmlType::F32).unwrap().tensor("b", &[3], GgmlType::F32).unwrap();
    let layout = b.layout().unwrap();
    for room in 0..layout.total_len() as usize {
        let mut stream = layout.stream(Full(room));
        let first = stream.write(&[0; 20]).and_then(|()| stream.write(&[0; 24]));
        let last = stream.finish();
        assert!(matches!(&first, Err(StreamError::Sink("disk full"))), "{room}");
        assert!(matches!(&last, Err(StreamError::Write(WriteError::Broken))), "{room}");
    }
    let mut stream = layout.stream(Full(layout.total_len() as usize));
    assert_eq!(stream.current().unwrap().name, "a");
    stream.write(&[0; 44]).unwrap();
    assert!(stream.current().is_none());
    assert_eq!(stream.finish().unwrap().0, 0);
}

#[test]
fn a_surplus_is_refused_and_none_of_it_written() {
    let mut b = Builder::new();
    b.tensor("a", &[8], GgmlType::F32).unwrap();
    let layout = b.layout().unwrap();
    let mut stream = layout.stream(Vec::new());
    stream.write(&[1; 30]).unwrap();
    let error = stream.write(&[2; 3]).unwrap_err();
    assert_eq!(error, StreamError::Write(WriteError::TooMuch { bytes: 1 }));
    let file = stream.finish().unwrap();
    assert_eq!(file.len() as u64, layout.total_len());
}

#[test]
fn files_without_data_are_streamed_too() {
    let layout = Builder::new().set("a", 1_u8).layout().unwrap();
    assert_eq!(layout.stream(Vec::new()).finish().unwrap(), layout.header());
    let mut b = Builder::new();
    b.tensor("z", &[0, 5], GgmlType::F32).unwrap();
    let layout = b.layout().unwrap();
    let file = layout.stream(Vec::new()).finish().unwrap();
    assert_eq!(file.len() as u64, layout.total_len());
    assert_eq!(Gguf::parse(&file).unwrap().findings(), []);
}

#[test]
fn a_stream_writes_to_io() {
    let mut b = Builder::new();
    b.tensor("a", &[8], GgmlType::F32).unwrap();
    let layout = b.layout().unwrap();
    let mut out = std::io::Cursor::new(Vec::new());
    let mut stream = layout.stream(IoSink(&mut out));
    stream.write(&[7; 32]).unwrap();
    stream.finish().unwrap();
    assert_eq!(out.into_inner(), layout.whole(&[&[7; 32]]).unwrap());
    // Errors pass through with their kind.
    let mut short = [0; 10];
    let error = layout.stream(IoSink(&mut short[..])).write(&[7; 32]).unwrap_err();
    let StreamError::Sink(io) = &error else { panic!("{error}") };
    assert_eq!(io.kind(), std::io::ErrorKind::WriteZero);
    assert!(std::error::Error::source(&error).is_some());
}

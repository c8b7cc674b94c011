//! Written, read, written again: the same bytes.

use gguf_format::{Builder, GgmlType, Gguf, ValueType};
use proptest::prelude::*;

use crate::raw::{Raw, string};

/// The file that its own content makes when written again.
pub(crate) fn reemit(gguf: &Gguf<'_>) -> Vec<u8> {
    let mut builder = Builder::from_gguf(gguf);
    for tensor in gguf.tensors() {
        builder.copy_tensor(&tensor).unwrap();
    }
    let data: Vec<_> = gguf.tensors().map(|t| gguf.data(&t).unwrap()).collect();
    builder.layout().unwrap().whole(&data).unwrap()
}

/// A file with every wire type alone and in arrays, every value where a copy could go wrong.
pub(crate) fn all_types() -> Raw {
    let mut raw = Raw::new();
    for ty in ValueType::ALL {
        let Some(size) = ty.size() else { continue };
        let size = usize::from(size);
        // Among floats this is a NaN with a payload, among bools a true that is not 1.
        let odd = &[0x02, 0x00, 0x00, 0xa0, 0x7f, 0x01, 0xf8, 0xff][8 - size..];
        raw = raw.key(ty.name().as_bytes(), ty.id(), odd);
        for n in [0, 1, 3] {
            raw = raw.array(&format!("{ty}[{n}]"), ty.id(), n, &odd.repeat(n as usize));
        }
    }
    raw = raw.string("empty", b"").string("latin", b"caf\xe9\0");
    raw.array("strings", 8, 3, &[string(b"a"), string(b""), string(b"\xff")].concat())
        .info("z", &[256, 0], GgmlType::Q4_K.0, 0)
        .info("q", &[256, 2], GgmlType::Q4_K.0, 0)
        .info("s", &[], GgmlType::F32.0, 288)
        .info("last", &[3], GgmlType::F16.0, 320)
        .data(352)
}

#[test]
fn every_wire_type_is_copied_bit_by_bit() {
    let mut raw = all_types();
    raw.data[288 + 4..320].fill(0);
    raw.data[320 + 6..].fill(0);
    let file = raw.bytes();
    let gguf = Gguf::parse(&file).unwrap();
    assert_eq!(gguf.findings(), []);
    assert_eq!(gguf.metadata().len(), 11 * 4 + 3);
    assert_eq!(reemit(&gguf), file);
    // The typed way gives the same bytes, except that a bool becomes 0 or 1.
    let mut typed = Builder::new();
    for entry in gguf.metadata() {
        typed.set(entry.key(), entry.value());
    }
    let typed = typed.layout().unwrap();
    let typed = Gguf::parse(typed.header());
    assert!(typed.is_ok_and(|t| t.metadata().zip(gguf.metadata()).all(|(a, b)| {
        a.raw() == b.raw() || (a.key() == "bool" && a.payload() == [1] && b.payload() == [0xff])
    })));
}

#[test]
fn a_written_file_reads_back() {
    let mut builder = Builder::new();
    builder
        .set("general.architecture", "llama")
        .set("llama.block_count", 1_u32)
        .set("tokenizer.ggml.tokens", ["a", "b"])
        .align(64);
    builder.tensor("a.weight", &[32, 2], GgmlType::Q8_0).unwrap();
    builder.tensor("b.bias", &[3], GgmlType::F32).unwrap();
    let layout = builder.layout().unwrap();
    let (a, b) = ([7; 68], [1; 12]);
    let file = layout.whole(&[&a, &b]).unwrap();
    assert_eq!(file.len() as u64, layout.total_len());

    let gguf = Gguf::parse(&file).unwrap();
    assert_eq!(gguf.get("general.architecture").unwrap().as_str(), Some("llama"));
    assert_eq!(gguf.alignment(), 64);
    assert_eq!(gguf.findings(), []);
    for (tensor, place) in gguf.tensors().zip(layout.tensors()) {
        assert_eq!((tensor.name(), tensor.file_offset()), (&*place.name, place.file_offset));
        assert_eq!(tensor.file_offset() % 64, 0);
    }
    assert_eq!(gguf.data(&gguf.tensor("b.bias").unwrap()), Some(&b[..]));
    assert_eq!(reemit(&gguf), file);
}

#[derive(Debug, Clone)]
enum Val {
    U8(u8),
    I16(i16),
    U64(u64),
    F32(u32),
    F64(f64),
    Bool(bool),
    Text(String),
    Numbers(Vec<i32>),
    Strings(Vec<String>),
    Bools(Vec<bool>),
}

fn val() -> impl Strategy<Value = Val> {
    prop_oneof![
        any::<u8>().prop_map(Val::U8),
        any::<i16>().prop_map(Val::I16),
        any::<u64>().prop_map(Val::U64),
        any::<u32>().prop_map(Val::F32),
        any::<f64>().prop_map(Val::F64),
        any::<bool>().prop_map(Val::Bool),
        ".{0,20}".prop_map(Val::Text),
        prop::collection::vec(any::<i32>(), 0..5).prop_map(Val::Numbers),
        prop::collection::vec(".{0,9}", 0..5).prop_map(Val::Strings),
        prop::collection::vec(any::<bool>(), 0..5).prop_map(Val::Bools),
    ]
}

fn set(builder: &mut Builder, key: &str, val: &Val) {
    match val {
        Val::U8(v) => builder.set(key, *v),
        Val::I16(v) => builder.set(key, *v),
        Val::U64(v) => builder.set(key, *v),
        Val::F32(bits) => builder.set(key, f32::from_bits(*bits)),
        Val::F64(v) => builder.set(key, *v),
        Val::Bool(v) => builder.set(key, *v),
        Val::Text(v) => builder.set(key, v),
        Val::Numbers(v) => builder.set(key, v),
        Val::Strings(v) => builder.set(key, v),
        Val::Bools(v) => builder.set(key, &v[..]),
    };
}

fn same(read: gguf_format::Value<'_>, val: &Val) -> bool {
    use gguf_format::Value as V;
    match (read, val) {
        (V::U8(a), Val::U8(b)) => a == *b,
        (V::I16(a), Val::I16(b)) => a == *b,
        (V::U64(a), Val::U64(b)) => a == *b,
        (V::F32(a), Val::F32(b)) => a.to_bits() == *b,
        (V::F64(a), Val::F64(b)) => a.to_bits() == b.to_bits(),
        (V::Bool(a), Val::Bool(b)) => a == *b,
        (V::String(a), Val::Text(b)) => a.as_bytes() == b.as_bytes(),
        (V::Array(a), Val::Numbers(b)) => a.to_vec::<i32>().as_ref() == Some(b),
        (V::Array(a), Val::Bools(b)) => a.to_vec::<bool>().as_ref() == Some(b),
        (V::Array(a), Val::Strings(b)) => {
            a.strings().is_some_and(|s| s.map(|s| s.as_str()).eq(b.iter().map(|b| Some(&b[..]))))
        }
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// What was set is what is read, and both ways out give the same bytes, whatever the chunks.
    #[test]
    fn whatever_is_written_reads_back(
        keys in prop::collection::btree_map("[a-z.]{1,12}", val(), 0..8),
        tensors in prop::collection::btree_map("[a-z.]{1,12}", (0_usize..4, 0_u64..4, 0_u64..3), 0..6),
        alignment in prop::option::of((0_u32..13).prop_map(|n| 1 << n)),
        chunk in 1_usize..300,
    ) {
        let types = [GgmlType::F32, GgmlType::Q8_0, GgmlType::Q4_K, GgmlType::I8];
        let mut builder = Builder::new();
        for (key, val) in &keys {
            set(&mut builder, key, val);
        }
        if let Some(alignment) = alignment {
            builder.align(alignment);
        }
        let mut data = Vec::new();
        for (name, (ty, rows, blocks)) in &tensors {
            let row = blocks * u64::from(types[*ty].info().unwrap().block_len);
            builder.tensor(name, &[row, *rows], types[*ty]).unwrap();
            let len = types[*ty].row_bytes(row).unwrap() * rows;
            data.push((0..len).map(|i| (i % 251) as u8).collect::<Vec<u8>>());
        }
        let layout = builder.layout().unwrap();
        let parts: Vec<&[u8]> = data.iter().map(|d| &d[..]).collect();
        let file = layout.whole(&parts).unwrap();
        prop_assert_eq!(file.len() as u64, layout.total_len());

        let mut stream = layout.stream(Vec::new());
        for piece in data.concat().chunks(chunk) {
            stream.write(piece).unwrap();
        }
        prop_assert_eq!(&stream.finish().unwrap(), &file);

        let gguf = Gguf::parse(&file).unwrap();
        prop_assert_eq!(gguf.metadata().len(), keys.len() + usize::from(alignment.is_some()));
        for (key, val) in &keys {
            prop_assert!(same(gguf.get(key).unwrap(), val), "{} {:?}", key, val);
        }
        for (name, bytes) in tensors.keys().zip(&data) {
            prop_assert_eq!(gguf.data(&gguf.tensor(name).unwrap()), Some(&bytes[..]));
        }
        prop_assert_eq!(reemit(&gguf), file);
    }
}

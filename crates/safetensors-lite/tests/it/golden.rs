//! Files of the PyPI package, written again: the same bytes. See `golden/safetensors/MANIFEST`.

use safetensors_lite::{Builder, Dtype, SafeTensors, Tensor, fs, serialize};
use std::path::PathBuf;

fn golden(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../golden/safetensors").join(name);
    std::fs::read(path).unwrap()
}

/// The data that the script gives a tensor of this many bytes.
fn pattern(size: usize) -> Vec<u8> {
    (0..size).map(|i| (i * 37 + size * 11) as u8).collect()
}

/// Declared here, in an order of its own, this is the golden file.
fn check(name: &str, tensors: &[(&str, Dtype, &[u64])], metadata: Option<&[(&str, &str)]>) {
    let bytes = golden(name);
    let file = SafeTensors::parse(&bytes).unwrap();
    assert_eq!(file.len(), tensors.len());
    let data: Vec<Vec<u8>> = tensors
        .iter()
        .map(|(_, dtype, shape)| pattern((shape.iter().product::<u64>() * dtype.bits() / 8) as usize))
        .collect();
    let tensors: Vec<Tensor<'_>> = tensors
        .iter()
        .zip(&data)
        .map(|(&(name, dtype, shape), data)| Tensor { name, dtype, shape, data })
        .collect();
    for tensor in &tensors {
        let read = file.tensor(tensor.name).unwrap();
        assert_eq!((read.dtype(), read.shape(), read.data()), (tensor.dtype, tensor.shape, tensor.data));
    }
    assert_eq!(serialize(&tensors, metadata).unwrap(), bytes, "{name}");

    let layout = Builder::from_header(file.header()).unwrap().layout().unwrap();
    let mut stream = fs::Stream::new(layout, Vec::new()).unwrap();
    let data = &bytes[file.header().data_offset() as usize..];
    data.chunks(5).for_each(|piece| stream.write(piece).unwrap());
    assert_eq!(stream.finish().unwrap(), bytes, "{name}, streamed");
}

#[test]
fn empty() {
    check("empty.safetensors", &[], None);
    check("metadata_only.safetensors", &[], Some(&[("format", "pt")]));
    check("metadata_empty.safetensors", &[("a", Dtype::F32, &[1])], Some(&[]));
}

#[test]
fn shapes() {
    let tensors: &[(&str, Dtype, &[u64])] = &[
        ("cube", Dtype::F32, &[2, 3, 4]),
        ("deep", Dtype::BF16, &[1, 2, 1, 2, 1, 2]),
        ("none", Dtype::F32, &[0]),
        ("none.inside", Dtype::I64, &[3, 0, 2]),
        ("odd", Dtype::U8, &[3]),
        ("row", Dtype::F16, &[3]),
        ("scalar", Dtype::F32, &[]),
    ];
    check("shapes.safetensors", tensors, Some(&[("format", "np")]));
}

#[test]
fn order() {
    use Dtype::{BF16, Bool, F16, F32, F64, I64, U8};
    let tensors = [
        ("a", F32),
        ("a.10", F32),
        ("a.2", F32),
        ("B", F32),
        ("b", F32),
        ("c", BF16),
        ("d", F16),
        ("e", U8),
        ("f", Bool),
        ("g", I64),
        ("z", F64),
        ("ü", F32),
    ];
    check("order.safetensors", &tensors.map(|(name, dtype)| (name, dtype, &[2][..])), None);
}

#[test]
fn names() {
    let names = [
        "model.layers.0.self_attn.q_proj.weight",
        "",
        " ",
        "quote\"",
        "back\\slash",
        "tab\t",
        "new\nline",
        "nul\0",
        "bell\x07",
        "del\x7f",
        "/slash",
        "café",
        "模型",
        "😀",
        "\u{2028}",
    ];
    let metadata = [("k\né\"", "v\\\t")];
    check("names.safetensors", &names.map(|name| (name, Dtype::U8, &[1][..])), Some(&metadata));
}

/// All that the package can write; it has no name for the two F6. Of F4 it counts pairs, so 16 elements.
#[test]
fn dtypes() {
    use Dtype::{BF16, Bool, C64, F4, F8E4M3, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F8E8M0, F16, F32, F64};
    use Dtype::{I8, I16, I32, I64, U8, U16, U32, U64};
    let tensors = [
        ("bool", Bool),
        ("float4_e2m1fn_x2", F4),
        ("uint8", U8),
        ("int8", I8),
        ("float8_e5m2", F8E5M2),
        ("float8_e4m3fn", F8E4M3),
        ("float8_e8m0fnu", F8E8M0),
        ("float8_e4m3fnuz", F8E4M3Fnuz),
        ("float8_e5m2fnuz", F8E5M2Fnuz),
        ("int16", I16),
        ("uint16", U16),
        ("float16", F16),
        ("bfloat16", BF16),
        ("int32", I32),
        ("uint32", U32),
        ("float32", F32),
        ("complex64", C64),
        ("float64", F64),
        ("int64", I64),
        ("uint64", U64),
    ];
    let of = |(name, dtype)| (name, dtype, if dtype == F4 { &[16][..] } else { &[8][..] });
    check("dtypes.safetensors", &tensors.map(of), None);
}

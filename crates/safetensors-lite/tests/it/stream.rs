//! Writing without the data at hand.

use safetensors_lite::{Builder, Dtype, Layout, Tensor, fs::Stream, serialize};
use std::io::{self, Write};

fn layout() -> Layout {
    let mut builder = Builder::new();
    builder.metadata("format", "pt");
    builder.tensor("small", Dtype::U8, &[3]).unwrap();
    builder.tensor("none", Dtype::F32, &[0]).unwrap();
    builder.tensor("large", Dtype::F32, &[100]).unwrap();
    builder.tensor("next", Dtype::F32, &[2]).unwrap();
    builder.layout().unwrap()
}

fn data(name: &str) -> Vec<u8> {
    match name {
        "small" => vec![1, 2, 3],
        "large" => (0..400).map(|i| i as u8).collect(),
        "next" => vec![9; 8],
        _ => Vec::new(),
    }
}

fn whole() -> Vec<u8> {
    let parts = ["next", "small", "large", "none"].map(|name| (name, data(name)));
    let tensors = parts.each_ref().map(|(name, data)| {
        let (dtype, shape): (_, &[u64]) = match *name {
            "small" => (Dtype::U8, &[3]),
            "large" => (Dtype::F32, &[100]),
            "next" => (Dtype::F32, &[2]),
            _ => (Dtype::F32, &[0]),
        };
        Tensor { name, dtype, shape, data }
    });
    serialize(&tensors, Some(&[("format", "pt")])).unwrap()
}

#[test]
fn pieces_of_any_size_make_the_same_file() {
    let layout = layout();
    let all: Vec<u8> = layout.tensors().flat_map(|info| data(info.name())).collect();
    for size in [1, 2, 3, 7, 399, 400, 401, 1000] {
        let mut stream = Stream::new(layout.clone(), Vec::new()).unwrap();
        all.chunks(size).for_each(|piece| stream.write(piece).unwrap());
        assert!(stream.current().is_none());
        assert_eq!(stream.finish().unwrap(), whole());
    }
}

#[test]
fn one_tensor_at_a_time() {
    let mut stream = Stream::new(layout(), Vec::new()).unwrap();
    let mut asked = Vec::new();
    let fill = |info: safetensors_lite::TensorInfo<'_>, sink: &mut dyn Write| {
        asked.push(info.name().to_owned());
        data(info.name()).chunks(3).try_for_each(|piece| sink.write_all(piece))
    };
    stream.write_each(fill).unwrap();
    assert_eq!(asked, ["large", "next", "none", "small"]);
    assert_eq!(stream.finish().unwrap(), whole());
}

#[test]
fn the_current_tensor_is_known() {
    let mut stream = Stream::new(layout(), Vec::new()).unwrap();
    assert_eq!(stream.current().unwrap().name(), "large");
    stream.write(&data("large")[..399]).unwrap();
    assert_eq!(stream.current().unwrap().name(), "large");
    // Half a tensor cannot be completed by `write_each`.
    let error = stream.write_each(|_, _| Ok(())).unwrap_err();
    assert_eq!(error.to_string(), "tensor \"large\": data needs 400 bytes, 399 given");
    stream.write(&data("large")[399..]).unwrap();
    assert_eq!(stream.current().unwrap().name(), "next");
    stream.write_each(|info, sink| sink.write_all(&data(info.name()))).unwrap();
    assert_eq!(stream.finish().unwrap(), whole());
}

#[test]
fn too_much_writes_nothing() {
    let mut stream = Stream::new(layout(), Vec::new()).unwrap();
    stream.write(&[0; 410]).unwrap();
    assert!(stream.write(&[0; 2]).is_err());
    stream.write(&[0]).unwrap();
    assert_eq!(stream.finish().unwrap().len(), whole().len());
}

/// A sink that fails after some bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let len = whole().len();
    for room in 0..=len {
        let written = Stream::new(layout(), Full(room)).and_then(|mut stream| {
            stream.write_each(|info, sink| sink.write_all(&data(info.name())))?;
            stream.finish().map(drop)
        });
        assert_eq!(written.is_ok(), room == len, "{room}");
    }
}

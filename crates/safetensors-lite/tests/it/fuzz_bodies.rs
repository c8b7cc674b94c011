//! What the fuzz targets do with any bytes. The tests run the same on seeds and changes of them.

use safetensors_lite::{Builder, DTYPES, Header, SafeTensors, Tensor, fs, serialize};
use std::collections::BTreeMap;

/// Parses the bytes in every way there is, and reads all that was accepted.
pub(crate) fn parse(bytes: &[u8]) {
    let parsed = SafeTensors::parse(bytes);
    let frame = fs::read_prefix(bytes);
    let header = Header::parse_frame(bytes);
    if let Err(error) = &parsed {
        assert!(!error.to_string().contains('\n'));
        assert!(error.at() <= bytes.len() as u64, "{error}");
    }
    // A frame is accepted where the bytes begin with a file.
    if let Ok(frame) = &frame {
        assert_eq!(bytes.get(..frame.bytes().len()), Some(frame.bytes()));
        assert_eq!(parsed.is_ok(), frame.bytes().len() == bytes.len());
        assert_eq!(header.as_ref().unwrap().total_len(), frame.bytes().len() as u64);
    } else {
        assert!(parsed.is_err());
    }
    let Ok(file) = parsed else { return };
    let mut end = file.header().data_offset();
    for tensor in file.tensors() {
        let range = tensor.info().file_range();
        assert_eq!(range.start, end);
        end = range.end;
        assert_eq!(tensor.data().len() as u64 * 8, tensor.info().elements() * tensor.dtype().bits());
        let found = file.tensor(tensor.name()).unwrap();
        assert_eq!(found.info().offsets(), tensor.info().offsets());
        let halves: Vec<_> = tensor.shape().iter().map(|dim| dim / 2..*dim).collect();
        if let Ok(part) = tensor.slice(&halves) {
            let elements: u64 = part.shape.iter().product();
            assert_eq!(part.data.len() as u64 * 8, elements * tensor.dtype().bits());
        }
    }
    assert_eq!(end, bytes.len() as u64);
    rewrite(&file);
}

/// Writes what was read, in two ways, and reads it again.
fn rewrite(file: &SafeTensors<'_>) {
    let tensors: Vec<Tensor<'_>> = file.tensors().map(Into::into).collect();
    let metadata: Vec<_> = file.header().metadata().collect();
    let metadata = file.header().has_metadata().then_some(&metadata[..]);
    let bytes = serialize(&tensors, metadata).unwrap();
    let again = SafeTensors::parse(&bytes).unwrap();
    assert_eq!(again.len(), file.len());
    for tensor in &tensors {
        let read = again.tensor(tensor.name).unwrap();
        assert_eq!((read.dtype(), read.shape(), read.data()), (tensor.dtype, tensor.shape, tensor.data));
    }
    let layout = Builder::from_header(file.header()).unwrap().layout().unwrap();
    let mut stream = fs::Stream::new(layout, Vec::new()).unwrap();
    stream.write_each(|info, sink| sink.write_all(file.tensor(info.name()).unwrap().data())).unwrap();
    assert_eq!(stream.finish().unwrap(), bytes);
}

/// Reads the bytes as a recipe for tensors: writes these, and reads them back.
pub(crate) fn roundtrip(bytes: &[u8]) {
    let mut rest = bytes.iter().copied();
    let mut made = BTreeMap::new();
    let mut metadata = Vec::new();
    while let Some(first) = rest.next() {
        let mut next = || rest.next().unwrap_or(0);
        let name = String::from_utf8_lossy(&[next(), next(), next()][..usize::from(first & 3)]).into_owned();
        if first & 0x80 != 0 {
            metadata.push((name, char::from(next()).to_string()));
            continue;
        }
        let dtype = DTYPES[usize::from(next()) % DTYPES.len()];
        let mut shape: Vec<u64> = (0..first >> 2 & 3).map(|_| u64::from(next() % 6)).collect();
        if dtype.bits() < 8 {
            shape.push(4);
        }
        let len = shape.iter().product::<u64>() * dtype.bits() / 8;
        let fill = next();
        made.insert(
            name,
            (dtype, shape, (0..len).map(|i| (i as u8).wrapping_add(fill)).collect::<Vec<u8>>()),
        );
    }
    metadata.sort();
    metadata.dedup_by(|a, b| a.0 == b.0);
    made.remove("__metadata__");
    let metadata: Vec<_> = metadata.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let tensors: Vec<Tensor<'_>> =
        made.iter().map(|(name, (dtype, shape, data))| Tensor { name, dtype: *dtype, shape, data }).collect();
    let written = serialize(&tensors, Some(&metadata)).unwrap();
    let file = SafeTensors::parse(&written).unwrap();
    assert_eq!(file.header().metadata().collect::<Vec<_>>(), metadata);
    assert_eq!(file.len(), tensors.len());
    parse(&written);
}

#[cfg(test)]
mod tests {
    use crate::make::varied;

    /// Bytes that look random and are the same in every run.
    fn noise(seed: u64) -> impl Iterator<Item = u8> {
        let mut state = seed | 1;
        std::iter::repeat_with(move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
    }

    #[test]
    fn parse_on_seeds() {
        let whole = varied();
        super::parse(&whole);
        super::parse(&[&whole[..], &whole[..]].concat());
        for seed in 0..3000 {
            let mut bytes = whole.clone();
            for pair in noise(seed).take(2 * (1 + seed as usize % 5)).collect::<Vec<_>>().chunks(2) {
                let at = usize::from(pair[0]) % bytes.len();
                // Half of the changes put a byte there that JSON cares about.
                bytes[at] =
                    if pair[1] < 128 { b"{}[]\",:0129\\e-"[usize::from(pair[1]) % 14] } else { pair[1] };
            }
            super::parse(&bytes);
        }
    }

    #[test]
    fn roundtrip_on_seeds() {
        super::roundtrip(&[]);
        for seed in 0..500 {
            super::roundtrip(&noise(seed).take(seed as usize % 97).collect::<Vec<_>>());
        }
    }
}

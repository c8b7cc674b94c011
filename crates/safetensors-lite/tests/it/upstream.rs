//! Random tensors through this crate and through `safetensors`: equal bytes, equal tensors, the same verdict.

use proptest::prelude::*;
use safetensors_lite::{Builder, DTYPES, Dtype, SafeTensors, Tensor, fs, serialize};
use std::collections::{BTreeMap, HashMap};

type Made = BTreeMap<String, (Dtype, Vec<u64>, Vec<u8>)>;

fn tensors() -> impl Strategy<Value = Made> {
    let shape = prop::collection::vec(0u64..5, 0..4);
    let one = (prop::sample::select(DTYPES), shape, any::<u8>()).prop_map(|(dtype, mut shape, seed)| {
        if dtype.bits() < 8 {
            // Four elements of 6 bits fill bytes.
            shape.push(4);
        }
        let len = shape.iter().product::<u64>() * dtype.bits() / 8;
        let data = (0..len).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed)).collect();
        (dtype, shape, data)
    });
    prop::collection::btree_map("[ -~é\\n]{0,12}", one, 0..12)
}

fn list(made: &Made) -> Vec<Tensor<'_>> {
    made.iter().map(|(name, (dtype, shape, data))| Tensor { name, dtype: *dtype, shape, data }).collect()
}

/// Upstream's view of the same tensor.
fn theirs<'d>(dtype: Dtype, shape: &[u64], data: &'d [u8]) -> safetensors::tensor::TensorView<'d> {
    let dtype: safetensors::Dtype = serde_json::from_str(&format!("{:?}", dtype.tag())).unwrap();
    let shape = shape.iter().map(|&dim| dim as usize).collect();
    safetensors::tensor::TensorView::new(dtype, shape, data).unwrap()
}

proptest! {
    #[test]
    fn bytes_equal_upstreams(made in tensors(), pair in prop::option::of(("[ -~]{0,9}", "[ -~ü]{0,9}"))) {
        let list = list(&made);
        let metadata = pair.as_ref().map(|(key, value)| vec![(key.as_str(), value.as_str())]);
        let ours = serialize(&list, metadata.as_deref()).unwrap();
        let views = made.iter().map(|(name, (dtype, shape, data))| (name, theirs(*dtype, shape, data)));
        let map = pair.map(|pair| HashMap::from([pair]));
        prop_assert_eq!(&ours, &safetensors::serialize(views, map).unwrap());

        let read = safetensors::SafeTensors::deserialize(&ours).unwrap();
        for tensor in &list {
            prop_assert_eq!(read.tensor(tensor.name).unwrap(), theirs(tensor.dtype, tensor.shape, tensor.data));
        }
    }

    #[test]
    fn written_is_read(made in tensors(), metadata in prop::collection::btree_map("\\PC{0,6}", "\\PC{0,6}", 0..5)) {
        let list = list(&made);
        let metadata: Vec<_> = metadata.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let bytes = serialize(&list, Some(&metadata)).unwrap();
        let file = SafeTensors::parse(&bytes).unwrap();
        prop_assert_eq!(file.len(), list.len());
        prop_assert_eq!(file.header().metadata().collect::<Vec<_>>(), metadata);
        for tensor in &list {
            let read = file.tensor(tensor.name).unwrap();
            prop_assert_eq!(
                (read.dtype(), read.shape(), read.data()),
                (tensor.dtype, tensor.shape, tensor.data)
            );
        }
        // A copy through the header gives the same layout; a frame in a stream the same bytes.
        let layout = Builder::from_header(file.header()).unwrap().layout().unwrap();
        prop_assert_eq!(layout.head(), &bytes[..layout.head().len()]);
        let framed = fs::read_prefix(&bytes[..]).unwrap();
        prop_assert_eq!(framed.bytes(), &bytes);
    }

    /// What this crate takes upstream takes, with the same tensors. The reverse need not hold: upstream lets
    /// duplicate keys pass, and space before the brace.
    #[test]
    fn never_laxer_than_upstream(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = crate::make::varied();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(file) = SafeTensors::parse(&bytes) {
            let upstream = safetensors::SafeTensors::deserialize(&bytes).unwrap();
            prop_assert_eq!(upstream.len(), file.len());
            for tensor in file.tensors() {
                let same = theirs(tensor.dtype(), tensor.shape(), tensor.data());
                prop_assert_eq!(upstream.tensor(tensor.name()).unwrap(), same);
            }
        }
    }
}

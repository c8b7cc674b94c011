//! Every prefix of a file, and every byte of it changed: an error or an equal reading, never a panic.

use crate::make::varied;
use safetensors_lite::{Header, SafeTensors, fs};

#[test]
fn no_prefix_is_a_file() {
    let whole = varied();
    for cut in 0..whole.len() {
        assert!(SafeTensors::parse(&whole[..cut]).is_err(), "{cut}");
        assert!(fs::read_prefix(&whole[..cut]).is_err(), "{cut}");
        assert_eq!(fs::read_next(&whole[..cut]).is_ok_and(|frame| frame.is_none()), cut == 0, "{cut}");
        let header = Header::parse(&whole[..cut], whole.len() as u64);
        assert_eq!(header.is_ok(), cut >= whole.len() - 12, "{cut}");
    }
}

#[test]
fn no_byte_breaks_the_reader() {
    let whole = varied();
    let data = whole.len() - 12;
    let mut taken = 0;
    for at in 0..whole.len() {
        for byte in 0..=255 {
            let mut changed = whole.clone();
            changed[at] = byte;
            let parsed = SafeTensors::parse(&changed);
            assert_eq!(parsed.is_ok(), fs::read_prefix(&changed[..]).is_ok_and(|f| f.bytes() == changed));
            assert!(at < data || parsed.is_ok());
            let Ok(file) = parsed else { continue };
            taken += 1;
            // Whatever is accepted is consistent, and can be written and read again.
            assert_eq!(file.tensors().map(|t| t.data().len()).sum::<usize>(), 12);
            let tensors: Vec<_> = file.tensors().map(Into::into).collect();
            let metadata: Vec<_> = file.header().metadata().collect();
            let again = safetensors_lite::serialize(&tensors, Some(&metadata)).unwrap();
            let again = SafeTensors::parse(&again).unwrap();
            for tensor in file.tensors() {
                let other = again.tensor(tensor.name()).unwrap();
                assert_eq!((tensor.shape(), tensor.data()), (other.shape(), other.data()));
            }
        }
    }
    assert!(taken > 12 * 256, "{taken}");
}

/// A header may announce anything; memory is for bytes that are there.
#[test]
fn announced_sizes_allocate_nothing() {
    let json = r#"{"a":{"dtype":"U8","shape":[1152921504606846976],"data_offsets":[0,1152921504606846976]}}"#;
    let bytes = crate::make::frame(json, &[1, 2, 3]);
    assert!(SafeTensors::parse(&bytes).is_err());
    assert!(fs::read_prefix(&bytes[..]).is_err());
    let header = Header::parse_frame(&bytes).unwrap();
    assert_eq!(header.data_len(), 1 << 60);
    assert!(header.tensor("a").unwrap().view(&bytes).is_none());
}

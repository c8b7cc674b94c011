//! Files on disk.

use crate::make::{ONE, ONE_DATA, frame, varied};
use safetensors_lite::{
    Header, SafeTensors,
    fs::{ErrorKind, load, load_header},
};
use std::fs;

#[test]
fn all_ways_in_agree() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let bytes = varied();
    fs::write(&path, &bytes).unwrap();
    let loaded = load(&path).unwrap();
    let owned = SafeTensors::parse_owned(bytes.clone()).unwrap();
    let borrowed = SafeTensors::parse(&bytes).unwrap();
    let header = load_header(&path).unwrap();
    let prefix = Header::parse(&bytes[..bytes.len() - 12], bytes.len() as u64).unwrap();
    let all = [loaded.header(), owned.header(), borrowed.header(), &header, &prefix];
    assert!(all.windows(2).all(|pair| format!("{:?}", pair[0]) == format!("{:?}", pair[1])));
    assert_eq!(loaded.into_bytes(), bytes);
    for info in header.tensors() {
        let range = info.file_range();
        let data = &bytes[range.start as usize..range.end as usize];
        assert_eq!(borrowed.tensor(info.name()).unwrap().data(), data);
    }
}

#[test]
fn the_header_is_checked_before_the_data_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    for (bytes, what) in [
        (frame(ONE, &ONE_DATA[..7]), "truncated"),
        (frame(ONE, &[0; 9]), "trailing"),
        (b"version https://git-lfs.github.com/spec/v1".to_vec(), "Git LFS"),
        (Vec::new(), "too short"),
    ] {
        fs::write(&path, bytes).unwrap();
        for error in [load(&path).unwrap_err(), load_header(&path).unwrap_err()] {
            assert!(matches!(error.kind(), ErrorKind::Format(_)), "{error}");
            assert!(error.to_string().contains(what), "{error}");
            assert_eq!(error.path(), Some(&*path));
        }
    }
    // A sparse file of the announced terabyte has a header all the same.
    let json = r#"{"a":{"dtype":"U8","shape":[1099511627776],"data_offsets":[0,1099511627776]}}"#;
    fs::write(&path, frame(json, &[])).unwrap();
    let file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.set_len(8 + json.len() as u64 + (1 << 40)).unwrap();
    assert_eq!(load_header(&path).unwrap().data_len(), 1 << 40);
}

/// Opening a pipe could wait for ever.
#[cfg(unix)]
#[test]
fn only_regular_files_are_opened() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    for path in [&*pipe, folder.path(), "/dev/zero".as_ref()] {
        assert!(matches!(load(path).unwrap_err().kind(), ErrorKind::NotAFile), "{path:?}");
    }
}

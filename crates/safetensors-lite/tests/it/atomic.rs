//! Files appear whole or not at all.

use crate::make::{ONE, ONE_DATA, frame};
use safetensors_lite::{
    Builder, Dtype, Layout, Tensor, WriteError,
    fs::{ErrorKind, load, save, save_atomic},
};
use std::{
    fs,
    io::{self, Write},
    path::Path,
};

const TENSOR: Tensor<'static> = Tensor { name: "a", dtype: Dtype::F32, shape: &[2], data: &ONE_DATA };

fn layout() -> Layout {
    let mut builder = Builder::new();
    builder.tensor("a", Dtype::U8, &[3]).unwrap().tensor("b", Dtype::U8, &[5]).unwrap();
    builder.layout().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_saved_file_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.safetensors");
    save(&path, &[TENSOR], Some(&[("k", "v")])).unwrap();
    let file = load(&path).unwrap();
    assert_eq!(file.tensor("a").unwrap().data(), ONE_DATA);
    assert_eq!(file.header().metadata_value("k"), Some("v"));
    save(&path, &[], None).unwrap();
    assert!(load(&path).unwrap().is_empty());
    assert_eq!(names(folder.path()), ["a.safetensors"]);
}

#[test]
fn a_failure_keeps_the_old_file() {
    type Fill = fn(&str, &mut dyn Write) -> io::Result<()>;
    let fills: [Fill; 4] = [
        |name, sink| if name == "a" { sink.write_all(&[1; 3]) } else { Err(io::Error::other("no more")) },
        |_, sink| sink.write_all(&[1; 3]),
        |_, sink| sink.write_all(&[1; 5]),
        |_, _| Ok(()),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.safetensors");
    for old in [None, Some(frame(ONE, &ONE_DATA))] {
        if let Some(old) = &old {
            fs::write(&path, old).unwrap();
        }
        for fill in fills {
            assert!(save_atomic(&path, &layout(), |info, sink| fill(info.name(), sink)).is_err());
            assert_eq!(fs::read(&path).ok(), old);
            assert_eq!(names(folder.path()).len(), usize::from(old.is_some()), "nothing is left over");
        }
    }
    let error = save(&path, &[TENSOR, TENSOR], None).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Write(WriteError::Duplicate { .. })), "{error}");
    assert_eq!(load(&path).unwrap().len(), 1);
}

#[test]
fn a_panic_keeps_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.safetensors");
    fs::write(&path, frame(ONE, &ONE_DATA)).unwrap();
    let result =
        std::panic::catch_unwind(|| save_atomic(&path, &layout(), |_, _| panic!("the caller's own")));
    assert!(result.is_err());
    assert_eq!(fs::read(&path).unwrap(), frame(ONE, &ONE_DATA));
    assert_eq!(names(folder.path()), ["a.safetensors"]);
}

/// A reader that has the old file open, or mapped, keeps it: its bytes are never written over.
#[test]
fn an_open_reader_keeps_the_old_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.safetensors");
    let old = frame(ONE, &ONE_DATA);
    fs::write(&path, &old).unwrap();
    let mut reader = fs::File::open(&path).unwrap();
    save_atomic(&path, &layout(), |info, sink| sink.write_all(&vec![7; info.byte_len() as usize])).unwrap();
    let mut kept = Vec::new();
    io::Read::read_to_end(&mut reader, &mut kept).unwrap();
    assert_eq!(kept, old);
    assert_eq!(load(&path).unwrap().len(), 2);
}

#[cfg(unix)]
#[test]
fn permissions_stay_and_links_are_replaced() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.safetensors");
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;

    // A new file has what any new file has, not the 0600 of a temporary one.
    let plain = folder.path().join("plain");
    fs::write(&plain, "").unwrap();
    save(&path, &[TENSOR], None).unwrap();
    assert_eq!(mode(&path), mode(&plain));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    save(&path, &[TENSOR], None).unwrap();
    assert_eq!(mode(&path), 0o640);

    let link = folder.path().join("link");
    symlink("plain", &link).unwrap();
    save(&link, &[TENSOR], None).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_file());
    assert_eq!(fs::read(&plain).unwrap(), b"");
}

#[test]
fn places_that_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    assert!(save(folder.path().join("no/such/folder"), &[TENSOR], None).is_err());
    fs::create_dir(folder.path().join("full")).unwrap();
    fs::write(folder.path().join("full/x"), "").unwrap();
    assert!(save(folder.path().join("full"), &[TENSOR], None).is_err());
    assert!(save("/", &[TENSOR], None).is_err());
    assert_eq!(names(folder.path()), ["full"]);
}

//! Frames one after the other in a stream.

use crate::make::{ONE, ONE_DATA, frame, varied};
use safetensors_lite::fs::{read_next, read_prefix};
use std::io::{self, Read};

/// A reader that gives a byte at a time and is interrupted now and then.
struct Slow<R>(R, bool);

impl<R: Read> Read for Slow<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.1 = !self.1;
        if self.1 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let len = into.len().min(1);
        self.0.read(&mut into[..len])
    }
}

#[test]
fn the_reader_stands_after_the_frame() {
    let stream = [&frame(ONE, &ONE_DATA)[..], b"what follows"].concat();
    let mut reader = &stream[..];
    assert_eq!(read_prefix(&mut reader).unwrap().tensor("a").unwrap().data(), ONE_DATA);
    assert_eq!(reader, b"what follows");
    let mut slow = Slow(&stream[..], false);
    assert_eq!(read_prefix(&mut slow).unwrap().bytes(), frame(ONE, &ONE_DATA));
    assert_eq!(slow.0, b"what follows");
}

#[test]
fn frames_concatenate() {
    let frames = [frame(ONE, &ONE_DATA), varied(), frame("{}", &[]), varied()];
    let stream = frames.concat();
    let mut reader = &stream[..];
    for frame in &frames {
        assert_eq!(read_next(&mut reader).unwrap().unwrap().into_bytes(), *frame);
    }
    assert!(read_next(&mut reader).unwrap().is_none());
    assert!(read_prefix(&mut reader).is_err());
}

#[test]
fn a_cut_frame_says_what_is_missing() {
    let whole = frame(ONE, &ONE_DATA);
    let error = read_prefix(&whole[..whole.len() - 3]).unwrap_err().to_string();
    assert!(error.starts_with("data truncated: 8 bytes announced, 5 left, tensor \"a\""), "{error}");
    let error = read_next(&whole[..5]).unwrap_err().to_string();
    assert!(error.starts_with("file too short"), "{error}");
}

#[test]
fn a_failing_reader_is_an_error() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("cable cut"))
        }
    }
    let whole = frame(ONE, &ONE_DATA);
    for cut in 0..whole.len() {
        let error = read_prefix(whole[..cut].chain(Broken)).unwrap_err().to_string();
        assert_eq!(error, "cannot read: cable cut");
    }
}

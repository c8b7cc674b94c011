//! Parts of tensors against the same parts taken element by element.

use crate::make::frame;
use safetensors_lite::{SafeTensors, SliceError};
use std::{borrow::Cow, ops::Range};

/// A U16 tensor of this shape whose elements are their own positions.
fn counted(shape: &[u64]) -> Vec<u8> {
    let len = shape.iter().product::<u64>();
    let data: Vec<u8> = (0..len).flat_map(|i| (i as u16).to_le_bytes()).collect();
    frame(format!(r#"{{"t":{{"dtype":"U16","shape":{shape:?},"data_offsets":[0,{}]}}}}"#, len * 2), &data)
}

/// The positions of a part, from the definition.
fn expected(shape: &[u64], ranges: &[Range<u64>]) -> Vec<u16> {
    let mut positions = vec![0u64];
    for (axis, &dim) in shape.iter().enumerate() {
        let range = ranges.get(axis).cloned().unwrap_or(0..dim);
        positions = positions.iter().flat_map(|p| range.clone().map(move |i| p * dim + i)).collect();
    }
    positions.iter().map(|&p| p as u16).collect()
}

/// Every part of every tensor of three short axes.
#[test]
fn parts_are_their_elements() {
    let mut gathered = 0;
    for shape in [[2, 3, 4], [1, 3, 2], [3, 1, 3], [2, 0, 2]] {
        let bytes = counted(&shape);
        let file = SafeTensors::parse(&bytes).unwrap();
        let tensor = file.tensor("t").unwrap();
        let ranges = |dim: u64| (0..=dim).flat_map(move |end| (0..=end).map(move |start| start..end));
        for a in ranges(shape[0]) {
            for b in ranges(shape[1]) {
                for c in ranges(shape[2]) {
                    let part = [a.clone(), b.clone(), c];
                    let slice = tensor.slice(&part).unwrap();
                    let found: Vec<u16> =
                        slice.data.chunks(2).map(|b| u16::from_le_bytes(b.try_into().unwrap())).collect();
                    let expected = expected(&shape, &part);
                    assert_eq!(found, expected, "{part:?} of {shape:?}");
                    assert_eq!(slice.shape, part.iter().map(|r| r.end - r.start).collect::<Vec<_>>());
                    // Together exactly where the positions follow one another.
                    let together = expected.windows(2).all(|pair| pair[0] + 1 == pair[1]);
                    assert_eq!(matches!(slice.data, Cow::Borrowed(_)), together, "{part:?} of {shape:?}");
                    gathered += usize::from(!together);
                }
            }
        }
    }
    assert!(gathered > 100, "{gathered}");
}

#[test]
fn rows_are_borrowed() {
    let bytes = counted(&[4, 3]);
    let file = SafeTensors::parse(&bytes).unwrap();
    let tensor = file.tensor("t").unwrap();
    assert_eq!(tensor.rows(1..3).unwrap(), &tensor.data()[6..18]);
    assert_eq!(tensor.rows(4..4).unwrap(), &[0u8; 0]);
    assert_eq!(tensor.slice(&[]).unwrap().data, tensor.data());
    assert_eq!(tensor.slice(std::slice::from_ref(&(2..3))).unwrap().shape, [1, 3]);
}

#[test]
fn wrong_parts_are_errors() {
    let bytes = counted(&[4, 3]);
    let file = SafeTensors::parse(&bytes).unwrap();
    let tensor = file.tensor("t").unwrap();
    let shape = vec![4, 3];
    let out = |axis, range: Range<u64>| SliceError::OutOfBounds { axis, range, shape: shape.clone() };
    assert_eq!(tensor.rows(3..5), Err(out(0, 3..5)));
    assert_eq!(tensor.slice(&[0..4, 2..4]), Err(out(1, 2..4)));
    #[expect(clippy::reversed_empty_ranges, reason = "reversed on purpose")]
    let reversed = 3..2;
    assert_eq!(tensor.rows(reversed.clone()), Err(out(0, reversed)));
    assert_eq!(tensor.rows(0..u64::MAX), Err(out(0, 0..u64::MAX)));
    let too_many = tensor.slice(&[0..1, 0..1, 0..1]).unwrap_err();
    assert_eq!(too_many.to_string(), "3 ranges for a tensor of shape [4, 3]");
    assert_eq!(out(1, 2..4).to_string(), "range 2..4 is out of bounds of axis 1 of [4, 3]");
}

#[test]
fn a_scalar_has_no_rows() {
    let bytes = frame(r#"{"t":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}"#, &[7]);
    let file = SafeTensors::parse(&bytes).unwrap();
    let tensor = file.tensor("t").unwrap();
    assert_eq!(tensor.slice(&[]).unwrap().data[..], [7]);
    assert!(matches!(tensor.rows(0..1), Err(SliceError::TooManyAxes { ranges: 1, .. })));
}

#[test]
fn sub_byte_parts_fill_bytes() {
    let bytes = frame(r#"{"t":{"dtype":"F4","shape":[3,4],"data_offsets":[0,6]}}"#, &[1, 2, 3, 4, 5, 6]);
    let file = SafeTensors::parse(&bytes).unwrap();
    let tensor = file.tensor("t").unwrap();
    assert_eq!(tensor.rows(1..2).unwrap(), [3, 4]);
    assert_eq!(tensor.slice(&[0..3, 2..4]).unwrap().data[..], [2, 4, 6]);
    for part in [1..2, 0..1, 1..3, 0..3] {
        let error = tensor.slice(&[0..3, part.clone()]).unwrap_err();
        assert!(matches!(error, SliceError::SubByte { .. }), "{part:?}: {error}");
    }
    // Rows of 3 elements of 4 bits begin in the middle of a byte.
    let bytes = frame(r#"{"t":{"dtype":"F4","shape":[4,3],"data_offsets":[0,6]}}"#, &[1, 2, 3, 4, 5, 6]);
    let file = SafeTensors::parse(&bytes).unwrap();
    let tensor = file.tensor("t").unwrap();
    assert_eq!(tensor.rows(2..4).unwrap(), [4, 5, 6]);
    assert_eq!(tensor.rows(1..3), Err(SliceError::SubByte { begin: 12, end: 36 }));
}

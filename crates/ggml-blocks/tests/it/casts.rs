//! Plain floats and integers: all 65,536 patterns, rounding, overflow.

use ggml_blocks::cast::{bf16_to_f32, decode_f64, f16_to_f32, f32_to_bf16, f32_to_f16};
use ggml_blocks::simd::{Level, with_level};
use ggml_blocks::{Bf16, F16, Format};
use gguf_format::GgmlType;

use crate::{Random, bits};

fn on_every_level(f: impl Fn(Level)) {
    for level in Level::supported() {
        with_level(level, || f(level)).unwrap();
    }
}

#[test]
fn every_f16_widens_exactly_and_comes_back() {
    on_every_level(|level| {
        let all: Vec<F16> = (0..=u16::MAX).map(F16::from_bits).collect();
        let mut wide = vec![0.0; all.len()];
        f16_to_f32(&all, &mut wide).unwrap();
        let mut back = vec![F16::default(); all.len()];
        assert_eq!(f32_to_f16(&wide, &mut back), Ok(None));
        for ((&h, x), back) in all.iter().zip(wide).zip(back) {
            let (want, sign) = (half::f16::from(h).to_f32_const(), h.to_bits() & 0x8000);
            if want.is_nan() {
                let quiet = u32::from(h.to_bits() & 0x3FF) << 13 | u32::from(sign) << 16 | 0x7FC0_0000;
                assert_eq!(x.to_bits(), quiet, "{level} {h:?}");
                assert_eq!(back.to_bits(), sign | 0x7E00, "{level} {h:?}");
            } else {
                assert_eq!(x.to_bits(), want.to_bits(), "{level} {h:?}");
                assert_eq!(back, h, "{level}");
            }
        }
    });
}

#[test]
fn every_bf16_widens_exactly_and_comes_back() {
    on_every_level(|level| {
        let all: Vec<Bf16> = (0..=u16::MAX).map(Bf16::from_bits).collect();
        let mut wide = vec![0.0; all.len()];
        bf16_to_f32(&all, &mut wide).unwrap();
        let mut back = vec![Bf16::default(); all.len()];
        assert_eq!(f32_to_bf16(&wide, &mut back), Ok(None));
        for ((&h, x), back) in all.iter().zip(wide).zip(back) {
            assert_eq!(x.to_bits(), u32::from(h.to_bits()) << 16, "{level}");
            let quiet = if x.is_nan() { 0x40 } else { 0 };
            assert_eq!(back.to_bits(), h.to_bits() | quiet, "{level} {h:?}");
        }
    });
}

#[test]
fn rounding_is_to_nearest_even_over_the_whole_range() {
    // Each f16 and bf16, its neighbours in f32, the ties between two of them, and random bits.
    let mut values = Vec::new();
    for h in 0..=u16::MAX {
        for base in [half::f16::from_bits(h).to_f32_const().to_bits(), u32::from(h) << 16] {
            for step in [0u32, 1, 0x0FFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001] {
                values.push(f32::from_bits(base.wrapping_add(step)));
            }
        }
    }
    let mut random = Random(1);
    values.extend((0..100_000).map(|_| f32::from_bits(random.next() as u32)));
    values.retain(|x| !x.is_nan());
    on_every_level(|level| {
        let (mut h, mut b) = (vec![F16::default(); values.len()], vec![Bf16::default(); values.len()]);
        f32_to_f16(&values, &mut h).unwrap();
        f32_to_bf16(&values, &mut b).unwrap();
        for ((x, h), b) in values.iter().zip(h).zip(b) {
            assert_eq!(h.to_bits(), half::f16::from_f32_const(*x).to_bits(), "{level} {x:e}");
            assert_eq!(b.to_bits(), half::bf16::from_f32_const(*x).to_bits(), "{level} {x:e}");
        }
    });
}

#[test]
fn overflow_is_counted_and_can_be_clamped() {
    let f16 = Format::of(GgmlType::F16).unwrap();
    let mut values = vec![1.0; 10_000];
    for (i, x) in [(4099, 65519.9), (5000, -65520.0), (5001, f32::INFINITY), (9000, 1e6), (9001, f32::NAN)] {
        values[i] = x;
    }
    let found = f16.overflow(&values).unwrap();
    assert_eq!((found.count, found.first, found.largest), (2, 5000, 1e6));
    let mut out = vec![F16::default(); values.len()];
    assert_eq!(f32_to_f16(&values, &mut out), Ok(Some(found)));
    assert_eq!(out[5000].to_bits(), 0xFC00);
    assert_eq!(out[4099].to_bits(), 0x7BFF);
    f16.clamp(&mut values);
    assert_eq!(f16.overflow(&values), None);
    assert_eq!(
        [values[4099], values[5000], values[5001], values[9000]],
        [65519.9, -65504.0, f32::INFINITY, 65504.0]
    );
    assert!(values[9001].is_nan());

    let bf16 = Format::of(GgmlType::BF16).unwrap();
    let mut values = [f32::MAX, f32::from_bits(0x7F7F_7FFF), f32::from_bits(0xFF7F_8000)];
    let found = bf16.overflow(&values).unwrap();
    assert_eq!((found.count, found.first, found.largest), (2, 0, f32::MAX));
    bf16.clamp(&mut values);
    assert_eq!(values.map(|x| x.to_bits()), [0x7F7F_0000, 0x7F7F_7FFF, 0xFF7F_0000]);
    assert_eq!(Format::of(GgmlType::F32).unwrap().overflow(&[f32::MAX]), None);
}

#[test]
fn wide_numbers_round_to_f32_and_f64_has_a_way_without_loss() {
    let decode = |ty, bytes: &[u8], n: usize| {
        let mut out = vec![0.0; n];
        Format::of(ty).unwrap().decode_rows(bytes, n, &mut out).unwrap();
        out
    };
    let long = [i64::MIN, -1, 16_777_217, i64::MAX];
    let bytes: Vec<u8> = long.iter().flat_map(|x| x.to_le_bytes()).collect();
    assert_eq!(decode(GgmlType::I64, &bytes, 4), [-9.223_372e18, -1.0, 16_777_216.0, 9.223_372e18]);
    let int = [i32::MIN, 5, 16_777_219];
    let bytes: Vec<u8> = int.iter().flat_map(|x| x.to_le_bytes()).collect();
    assert_eq!(decode(GgmlType::I32, &bytes, 3), [-2_147_483_648.0, 5.0, 16_777_220.0]);
    assert_eq!(decode(GgmlType::I16, &[0, 0x80, 0xFF, 0x7F], 2), [-32768.0, 32767.0]);
    assert_eq!(decode(GgmlType::I8, &[0x80, 0x7F], 2), [-128.0, 127.0]);

    let double = [0.1f64, -1e300, f64::NAN, 5e-324];
    let bytes: Vec<u8> = double.iter().flat_map(|x| x.to_le_bytes()).collect();
    let rounded = decode(GgmlType::F64, &bytes, 4);
    assert_eq!(bits(&rounded[..2]), bits(&[0.1f32, f32::NEG_INFINITY]));
    assert!(rounded[2].is_nan() && rounded[3] == 0.0);
    let mut exact = [0.0; 4];
    decode_f64(&bytes, &mut exact).unwrap();
    assert_eq!(exact.map(f64::to_bits), double.map(f64::to_bits));
    assert_eq!(decode_f64(&bytes[1..], &mut exact).unwrap_err().to_string(), "32 bytes needed, 31 given");
}

#[test]
fn slices_of_different_lengths_are_refused() {
    let (mut h, mut x) = ([F16::default(); 2], [0.0; 3]);
    assert!(f32_to_f16(&x, &mut h).is_err());
    assert!(f16_to_f32(&h, &mut x).is_err());
    assert_eq!(f32_to_f16(&[], &mut []), Ok(None));
    assert_eq!(f16_to_f32(&[], &mut []), Ok(()));
}

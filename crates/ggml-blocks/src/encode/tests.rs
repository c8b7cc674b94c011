//! Every level against one lane, on weights chosen to hurt; rows alone against rows together; and
//! what happens where ggml writes scales that are not finite.

use super::EncodeLanes;
use crate::block::{Rows, cast_blocks_mut};
use crate::error::EncodeError;
use crate::format::{FORMATS, Format};
use crate::formats::*;
use crate::simd::{Level, with_level};
use gguf_format::{Importance, Kind};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Uniform in -1..1.
    fn uniform(&mut self) -> f32 {
        self.below(1 << 24) as f32 / 8_388_608.0 - 1.0
    }

    /// Roughly normal with variance 1.
    fn normal(&mut self) -> f32 {
        (0..3).map(|_| self.uniform()).sum()
    }
}

const KINDS: u64 = 16;

/// Sixteen weights of one kind at scale `s`.
fn weights(kind: u64, s: f32, r: &mut Random) -> [f32; 16] {
    let constant = r.normal() * s;
    let tiny = 2f32.powi(-(100 + r.below(50) as i32));
    core::array::from_fn(|i| {
        let g = r.normal();
        match kind {
            0 => g * s,
            1 => g * s / (r.uniform().abs() + 1e-3), // heavy tails
            2 => constant,
            3 => 0.0,
            4 => -0.0,
            5 => (g * 8.0).round() * s * 0.125,         // equal maxima
            6 => ((g * 8.0).round() + 0.5) * s * 0.125, // rounding ties
            7 => -g.abs() * s - s,
            8 => g.abs() * s + s,
            9 => {
                if r.below(8) == 0 {
                    g * s
                } else {
                    0.0
                }
            }
            10 => {
                if r.below(2) == 0 {
                    s
                } else {
                    -s
                }
            }
            11 => {
                if i == 0 {
                    s * 1000.0
                } else {
                    g * s * 1e-3
                }
            }
            12 => -s * (1.0 + 1e-6 * g), // nearly constant: `min` comes near `max`
            13 => f32::from_bits(s.to_bits() + r.below(3) as u32), // neighbouring floats
            14 => g * tiny,              // down to subnormals
            _ => {
                if r.below(2) == 0 {
                    0.0
                } else {
                    -0.0
                }
            }
        }
    })
}

/// Whole rows; some 256 weights are of one kind, some mix them.
fn adversarial(len: usize, seed: u64) -> Vec<f32> {
    let r = &mut Random(seed);
    let mut out = Vec::with_capacity(len + 256);
    while out.len() < len {
        let (kind, mixed) = (r.below(KINDS), r.below(4) == 0);
        let s = 2f32.powi(r.below(36) as i32 - 30);
        for _ in 0..16 {
            let kind = if mixed { r.below(KINDS) } else { kind };
            out.extend(weights(kind, s, r));
        }
    }
    out.truncate(len);
    out
}

fn importances(len: usize) -> Vec<(&'static str, Vec<f32>)> {
    let r = &mut Random(77);
    let mut of =
        |f: &mut dyn FnMut(usize, f32) -> f32| (0..len).map(|i| f(i, r.normal())).collect::<Vec<_>>();
    vec![
        ("uniform", of(&mut |_, _| 1.0)),
        ("realistic", of(&mut |_, g| g * g + 1e-3)),
        ("zeros", of(&mut |i, g| if i % 7 == 0 || i % 256 / 32 == 1 { 0.0 } else { g * g })),
        ("all zero", of(&mut |_, _| 0.0)),
        ("dominating", of(&mut |i, _| if i == len / 3 { 1e6 } else { 1e-6 })),
        ("overflowing", of(&mut |_, g| (g * g).max(1e-3) * 1e37)),
    ]
}

/// An importance vector, or none, with a name.
type Named = (&'static str, Option<Vec<f32>>);

/// The block formats that encode, and the importance vectors to try each with.
fn cases(row_blocks: usize) -> impl Iterator<Item = (&'static Format, Vec<Named>)> {
    let codecs =
        FORMATS.iter().filter(|f| f.can_encode() && matches!(f.info().kind, Kind::Block | Kind::Activation));
    // The codebook formats of `crate::iq` have tests of their own.
    let codecs = codecs.filter(|f| !["IQ1", "IQ2", "IQ3"].contains(&&f.name()[..3]));
    codecs.filter(|f| f.importance() != Importance::Required).map(move |f| {
        let mut vectors = vec![("none", None)];
        if f.importance() == Importance::Optional {
            let len = row_blocks * f.block_len();
            vectors.extend(importances(len).into_iter().map(|(name, w)| (name, Some(w))));
        }
        (f, vectors)
    })
}

fn encode(f: &Format, x: &[f32], row_len: usize, w: Option<&[f32]>) -> Result<Vec<u8>, EncodeError> {
    let mut out = vec![0xA5; x.len() / f.block_len() * f.block_bytes()];
    f.encode_rows(x, row_len, w, &mut out).map(|()| out)
}

/// The one-lane form of the lane encoders.
fn reference<B: EncodeLanes>(x: &[f32], row_len: usize, w: Option<&[f32]>) -> Vec<u8> {
    let mut out = vec![0xA5; x.len() / B::LEN * size_of::<B>()];
    let src = Rows { values: x, row_len, importance: w };
    B::encode_lanes(0f32, src, cast_blocks_mut(&mut out).expect("whole blocks"));
    out
}

type Reference = fn(&[f32], usize, Option<&[f32]>) -> Vec<u8>;

const REFERENCES: [(&str, Reference); 12] = [
    ("Q4_0", reference::<q4_0::Q4_0>),
    ("Q4_1", reference::<q4_1::Q4_1>),
    ("Q5_0", reference::<q5_0::Q5_0>),
    ("Q5_1", reference::<q5_1::Q5_1>),
    ("Q1_0", reference::<q1_0::Q1_0>),
    ("Q2_K", reference::<q2_k::Q2K>),
    ("Q3_K", reference::<q3_k::Q3K>),
    ("Q4_K", reference::<q4_k::Q4K>),
    ("Q5_K", reference::<q5_k::Q5K>),
    ("Q6_K", reference::<q6_k::Q6K>),
    ("IQ4_NL", reference::<iq4_nl::Iq4Nl>),
    ("IQ4_XS", reference::<iq4_xs::Iq4Xs>),
];

#[test]
fn every_level_gives_the_bytes_of_one_lane() {
    for (f, vectors) in cases(3) {
        let row_len = 3 * f.block_len();
        // 41 rows of 3 blocks leave a tail in every width.
        let x = adversarial(41 * row_len, 0x9E37_79B9_7F4A_7C15);
        for (kind, w) in vectors.iter().filter(|(kind, _)| *kind != "overflowing") {
            let one = REFERENCES.iter().find(|(name, _)| *name == f.name());
            let portable = || with_level(Level::Portable, || encode(f, &x, row_len, w.as_deref()));
            let expect = one.map_or_else(
                || portable().expect("always there").expect("finite scales"),
                |(_, reference)| reference(&x, row_len, w.as_deref()),
            );
            for level in Level::supported() {
                let bytes = with_level(level, || encode(f, &x, row_len, w.as_deref())).expect("supported");
                assert!(bytes.as_ref() == Ok(&expect), "{} on {level}, importance {kind}", f.name());
            }
        }
    }
}

#[test]
fn rows_encode_alone_as_together() {
    for (f, vectors) in cases(2) {
        let row_len = 2 * f.block_len();
        let x = adversarial(19 * row_len, 0xD1B5_4A32_D192_ED03);
        for (kind, w) in &vectors {
            let w = w.as_deref();
            let alone: Result<Vec<_>, _> = x.chunks(row_len).map(|row| encode(f, row, row_len, w)).collect();
            assert!(encode(f, &x, row_len, w) == alone.map(|rows| rows.concat()), "{}, {kind}", f.name());
        }
    }
}

#[test]
fn any_importance_gives_finite_scales() {
    for (f, vectors) in cases(2) {
        let row_len = 2 * f.block_len();
        let x = adversarial(16 * row_len, 3);
        for (kind, w) in &vectors {
            let bytes = encode(f, &x, row_len, w.as_deref()).expect("a scale within f16");
            assert_eq!(f.check_finite(&bytes), Ok(()), "{}, {kind}", f.name());
        }
    }
}

#[test]
fn weights_beyond_the_scale_are_refused_with_their_block() {
    for (f, vectors) in cases(3) {
        let (len, row_len) = (f.block_len(), 3 * f.block_len());
        let mut x = adversarial(2 * row_len, 5);
        x[4 * len..5 * len].fill(-1e10);
        for (kind, w) in &vectors {
            match encode(f, &x, row_len, w.as_deref()) {
                Ok(bytes) => assert_eq!(f.check_finite(&bytes), Ok(()), "{}, {kind}", f.name()),
                Err(error) => {
                    let name = f.name();
                    assert_eq!(error, EncodeError::Unrepresentable { name, index: 4 * len }, "{kind}");
                }
            }
        }
        let refused = encode(f, &x, row_len, None).is_err();
        let f16_scale = !["MXFP4", "NVFP4", "Q8_K"].contains(&f.name());
        assert_eq!(refused, f16_scale, "{}", f.name());
    }
}

#[test]
fn a_weight_that_is_not_finite_is_found_wherever_it_stands() {
    let bad = [f32::NAN, -f32::NAN, f32::from_bits(0x7F80_0001), f32::INFINITY, f32::NEG_INFINITY];
    for (f, _) in cases(1) {
        let len = f.block_len();
        for (base, level) in [adversarial(11 * len, 9), vec![0.0; 11 * len]]
            .iter()
            .flat_map(|base| Level::supported().map(move |level| (base, level)))
        {
            let mut x = base.clone();
            // Within eight blocks, and among those that are left.
            for at in [3 * len, 10 * len].into_iter().flat_map(|start| start..start + len) {
                for bad in bad {
                    x[at] = bad;
                    let error = with_level(level, || encode(f, &x, len, None)).expect("supported");
                    let Err(EncodeError::NonFinite { index, value }) = error else {
                        panic!("{} on {level}: {bad} at {at} is not found", f.name());
                    };
                    assert_eq!((index, value.to_bits()), (at, bad.to_bits()), "{} on {level}", f.name());
                }
                x[at] = base[at];
            }
        }
    }
}

#[test]
fn a_weight_that_is_not_finite_comes_before_a_scale_that_is_too_large() {
    for f in FORMATS.iter().filter(|f| ["Q4_0", "Q4_1", "Q8_0", "TQ2_0"].contains(&f.name())) {
        let len = f.block_len();
        let mut x = vec![1.0; 40 * len];
        x[len] = 1e10;
        x[39 * len] = f32::INFINITY;
        let error = encode(f, &x, len, None);
        assert_eq!(
            error,
            Err(EncodeError::NonFinite { index: 39 * len, value: f32::INFINITY }),
            "{}",
            f.name()
        );
    }
}

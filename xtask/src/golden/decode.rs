//! The decoders' goldens: random block bytes, and blocks whose scales are every odd kind of f16.

use super::rng::Rng;
use super::{Files, Oracles, folder};
use crate::oracle::{CONFIGS, Oracle, le_bytes};
use crate::util::Outcome;
use gguf_format::{GgmlType, Kind, TypeInfo};

/// f16 bits: infinities, NaNs (one signalling), zeros, subnormals, the smallest normal, the largest.
const SPECIAL: [u16; 12] =
    [0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7c01, 0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x7bff, 0xfbff];

/// Where a block keeps a scale.
#[derive(Clone, Copy)]
enum Scale {
    /// An f16 at this byte.
    Half(usize),
    /// An f32 at this byte.
    Single(usize),
    /// An f16 in the high four bits of four u16 from this byte on.
    Nibbles(usize),
}

impl Scale {
    fn put(self, bits: u16, block: &mut [u8]) {
        match self {
            Self::Half(at) => block[at..at + 2].copy_from_slice(&bits.to_le_bytes()),
            Self::Single(at) => {
                let value = half::f16::from_bits(bits).to_f32();
                block[at..at + 4].copy_from_slice(&value.to_le_bytes());
            }
            Self::Nibbles(at) => {
                for (n, word) in block[at..at + 8].as_chunks_mut::<2>().0.iter_mut().enumerate() {
                    let nibble = (bits >> (4 * n)) & 15;
                    *word = (u16::from_le_bytes(*word) & 0x0fff | nibble << 12).to_le_bytes();
                }
            }
        }
    }
}

/// Adds `decode.in` and `decode.f32` of one format.
pub(super) fn add(
    oracles: &mut Oracles,
    info: &'static TypeInfo,
    files: &mut Files,
    lines: &mut Vec<String>,
) -> Outcome {
    let mut rng = Rng::new(info.name);
    let size = info.block_bytes as usize;
    let count = match info.block_len {
        1 => 4096,
        256.. => 64,
        _ => 256,
    };
    let mut random = || -> Vec<u8> { (0..size).map(|_| (rng.next() >> 56) as u8).collect() };
    let mut bytes = Vec::new();
    for n in 0..count {
        let mut block = random();
        if count == 256 {
            // One-byte scales stand first: all values of it.
            block[0] = n as u8;
        }
        bytes.extend(block);
    }
    let mut scales = 0;
    if info.kind != Kind::Float {
        let found = find_scales(&mut oracles.agreeing[0], info, &mut random)?;
        scales = found.len();
        for (scale, bits) in found.iter().flat_map(|s| SPECIAL.map(|bits| (s, bits))) {
            let mut block = random();
            scale.put(bits, &mut block);
            bytes.extend(block);
        }
    }
    let weights = bytes.len() / size * info.block_len as usize;
    let [base, others @ ..] = &mut oracles.agreeing;
    let truth = base.dequantize(info.id, &bytes, weights)?;
    for (config, other) in CONFIGS[1..].iter().zip(others) {
        let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        if !truth.iter().zip(&other.dequantize(info.id, &bytes, weights)?).all(same) {
            return Err(format!(
                "decoding {}: {} disagrees with {}",
                info.name, config.name, CONFIGS[0].name
            ));
        }
    }
    lines.push(format!(
        "decode {} {count} random blocks, then {} for each of {scales} scales found",
        info.name,
        SPECIAL.len()
    ));
    files.insert(format!("{}/decode.in", folder(info)), bytes);
    files.insert(format!("{}/decode.f32", folder(info)), le_bytes(&truth));
    Ok(())
}

/// The scales of a format, found by asking the decoder: a NaN there makes every weight of some
/// part of the block a NaN, a 1.0 there makes none.
fn find_scales(
    oracle: &mut Oracle,
    info: &TypeInfo,
    random: &mut impl FnMut() -> Vec<u8>,
) -> Outcome<Vec<Scale>> {
    let size = info.block_bytes as usize;
    let halves = (0..size.saturating_sub(1)).step_by(2).map(Scale::Half);
    let mut found = probe(oracle, info, halves, random)?;
    if found.is_empty() {
        let nibbles = (0..size.saturating_sub(7)).step_by(2).map(Scale::Nibbles);
        found = probe(oracle, info, nibbles, random)?;
    }
    if info.id == GgmlType::Q8_K {
        // The upper half of its f32 scale answers to an f16 as well.
        found = vec![Scale::Single(0)];
    }
    Ok(found)
}

fn probe(
    oracle: &mut Oracle,
    info: &TypeInfo,
    places: impl Iterator<Item = Scale>,
    random: &mut impl FnMut() -> Vec<u8>,
) -> Outcome<Vec<Scale>> {
    // Scales of 1 wherever a scale could stand, so that only the probed one can make a NaN.
    let mut quiet = random();
    for pair in quiet.as_chunks_mut::<2>().0 {
        *pair = 0x3c01_u16.to_le_bytes();
    }
    let weights = info.block_len as usize;
    let nans = |oracle: &mut Oracle, block: &[u8]| -> Outcome<usize> {
        Ok(oracle.dequantize(info.id, block, weights)?.iter().filter(|v| v.is_nan()).count())
    };
    let before = nans(oracle, &quiet)?;
    let mut found = Vec::new();
    for place in places {
        let mut block = quiet.clone();
        place.put(0x7e00, &mut block);
        if nans(oracle, &block)? > before {
            found.push(place);
        }
    }
    Ok(found)
}

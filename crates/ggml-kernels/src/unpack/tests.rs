use super::{Flat, FlatUnit, FormatOp, Super, SuperUnit, activations, with_format};
use crate::isa::Portable;
use ggml_blocks::{FORMATS, Kind, cast_blocks};

/// Weights from a unit, in f64.
struct Rebuild<'a>(&'a [u8], &'a mut Vec<f64>);

impl FormatOp for Rebuild<'_> {
    type Output = ();

    fn flat<B: Flat>(self) {
        for block in cast_blocks::<B>(self.0).unwrap() {
            for index in 0..B::LEN / 32 {
                let mut unit = FlatUnit::ZERO;
                block.unit(Portable, index, &mut unit);
                assert!(B::HALVES || unit.d[0].to_bits() == unit.d[1].to_bits());
                assert!(B::MIN || unit.m == 0.0);
                for i in 0..32 {
                    let (d, m) = (f64::from(unit.d[i / 16]), f64::from(unit.m));
                    self.1.push(d * f64::from(unit.levels[i]) + m);
                }
            }
        }
    }

    fn superblock<B: Super>(self) {
        for block in cast_blocks::<B>(self.0).unwrap() {
            let mut unit = SuperUnit::ZERO;
            block.unit(Portable, &mut unit);
            for i in 0..256 {
                let level = f64::from(unit.levels[i]) * f64::from(unit.head.scales[i / 16]);
                let min =
                    if B::MINS { f64::from(unit.head.dmin) * f64::from(unit.head.mins[i / 16]) } else { 0.0 };
                self.1.push(f64::from(unit.head.d) * level - min);
            }
        }
    }
}

#[test]
fn units_are_what_the_decoders_give() {
    let mut state = 7u64;
    let mut byte = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 56) as u8
    };
    let mut seen = 0;
    for format in FORMATS.iter().filter(|f| f.info().kind == Kind::Block) {
        for _ in 0..400 {
            let bytes: Vec<u8> = (0..format.block_bytes()).map(|_| byte()).collect();
            if format.check_finite(&bytes).is_err() {
                continue;
            }
            let mut decoded = vec![0.0; format.block_len()];
            format.decode_rows(&bytes, format.block_len(), &mut decoded).unwrap();
            let mut rebuilt = Vec::new();
            with_format(format.info().id, Rebuild(&bytes, &mut rebuilt)).expect("a weight format");
            let largest = decoded.iter().fold(0.0f32, |a, b| a.max(b.abs()));
            for (i, (x, y)) in decoded.iter().zip(&rebuilt).enumerate() {
                let off = (f64::from(*x) - y).abs();
                assert!(off <= f64::from(largest) * 1e-6, "{} {i}: {x} {y}", format.name());
            }
        }
        assert!(activations(format.info().id).is_some());
        seen += 1;
    }
    assert_eq!(seen, 25);
}

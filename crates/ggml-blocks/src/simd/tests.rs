use super::{Level, Simd, SimdOp, dispatch, level, with_level};
use crate::F16;

struct LevelOf;
impl SimdOp for LevelOf {
    type Output = (Level, Level);
    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> (Level, Level) {
        (S::LEVEL, S::Narrow::LEVEL)
    }
}

#[test]
fn a_forced_level_holds_inside_its_scope_only() {
    let outside = level();
    for l in Level::supported() {
        let inside = with_level(l, || dispatch(LevelOf)).expect("supported");
        assert_eq!(inside.0, l);
        assert_eq!(inside.1, l.min(Level::Avx2));
        assert_eq!(level(), outside);
    }
    let unsupported = Level::ALL.into_iter().filter(|l| !Level::supported().any(|s| s == *l));
    for l in unsupported {
        assert_eq!(with_level(l, || ()), None);
    }
}

struct Widen(u16);
impl SimdOp for Widen {
    type Output = (u32, u32, u16);
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Self::Output {
        let x = s.widen8([self.0; 8])[3];
        let h = F16::from_bits(self.0);
        assert_eq!(s.widen_apart(h).to_bits(), s.widen(h).to_bits());
        (s.widen(h).to_bits(), x.to_bits(), s.round8([x; 8])[5])
    }
}

#[test]
fn the_conversions_of_every_level_agree_on_every_f16() {
    for l in Level::supported() {
        for h in 0..=u16::MAX {
            let want = F16::from_bits(h).to_f32();
            let got = with_level(l, || dispatch(Widen(h))).expect("supported");
            let back = F16::from_f32(want).to_bits();
            assert_eq!(got, (want.to_bits(), want.to_bits(), back), "{l} {h:#06x}");
        }
    }
}

struct Round([f32; 8]);
impl SimdOp for Round {
    type Output = [u16; 8];
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> [u16; 8] {
        s.round8(self.0)
    }
}

#[test]
fn rounding_to_f16_agrees_on_every_level() {
    for l in Level::supported() {
        // Every sign and exponent with mantissas around each rounding boundary.
        for exponent in 0..512u32 {
            for low in [0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF, 0x2000, 0x3000, 0x7F_F000, 0x7F_FFFF, 0x40_0001]
            {
                let x = f32::from_bits(exponent << 23 | low);
                let want = F16::from_f32(x).to_bits();
                assert_eq!(with_level(l, || dispatch(Round([x; 8]))), Some([want; 8]), "{l} {x:e}");
            }
        }
    }
}

struct Bytes;
impl SimdOp for Bytes {
    type Output = ([u64; 2], [f32; 16], [f32; 8]);
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Self::Output {
        let table = core::array::from_fn(|i| 3 * i as i8 - 20);
        let levels = s.lookup16(&table, [0x0F01_0203_0405_0607, 0x0809_0A0B_0C0D_0E00]);
        (levels, s.floats16(levels), s.floats8(levels[1]))
    }
}

#[test]
fn look_up_and_conversion_of_bytes_agree_on_every_level() {
    for l in Level::supported() {
        let (levels, sixteen, eight) = with_level(l, || dispatch(Bytes)).expect("supported");
        assert_eq!(levels, [0x19EF_F2F5_F8FB_FE01, 0x0407_0A0D_1013_16EC], "{l}");
        assert_eq!(sixteen[..2], [1.0, -2.0], "{l}");
        assert_eq!(sixteen[14..], [7.0, 4.0], "{l}");
        assert_eq!(sixteen[8..], eight, "{l}");
    }
}

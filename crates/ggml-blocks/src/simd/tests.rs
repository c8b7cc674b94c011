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

struct Packing([i32; 32]);
impl SimdOp for Packing {
    type Output = ([i8; 32], [u8; 16], [u8; 4], [u8; 32]);
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Self::Output {
        let bytes = s.narrow32(bytemuck::must_cast(self.0));
        let levels = s.at_most(bytemuck::must_cast(bytes), 31);
        (bytes, s.nibbles(levels), s.fifth_bits(levels), s.e2m1(bytes))
    }
}

#[test]
fn levels_pack_alike_on_every_level() {
    for l in Level::supported() {
        for start in -128..=96 {
            let levels = core::array::from_fn(|i| start + i as i32);
            let (bytes, nibbles, fifth, _) = with_level(l, || dispatch(Packing(levels))).expect("supported");
            assert_eq!(bytes.map(i32::from), levels, "{l}");
            let levels = bytes.map(|b| (b as u8).min(31));
            for i in 0..16 {
                assert_eq!(nibbles[i], levels[i] & 15 | levels[16 + i] << 4, "{l}, {start}");
            }
            for i in 0..32 {
                assert_eq!(fifth[i / 8] >> (i % 8) & 1, levels[i] >> 4, "{l}, {start}");
            }
        }
    }
}

#[test]
fn e2m1_is_the_nearest_number_on_every_level() {
    // In steps, which are a quarter of the scale.
    let numbers = [0, 2, 4, 6, 8, 12, 16, 24];
    for l in Level::supported() {
        for n in -32..=32_i32 {
            let (_, _, _, index) = with_level(l, || dispatch(Packing([n; 32]))).expect("supported");
            // Rounded away from zero, so that the weight lies a little below the step.
            let size = n.abs() as f32 - 0.25;
            let nearest = (0..8).min_by(|&a, &b| {
                let distance = |i: usize| (numbers[i] as f32 - size).abs();
                distance(a).total_cmp(&distance(b))
            });
            let nearest = nearest.expect("eight") as u8;
            let sign = if n < 0 && nearest > 0 { 8 } else { 0 };
            assert_eq!(index, [nearest | sign; 32], "{l}, {n}");
        }
    }
}

struct Integers([f32; 8]);
impl SimdOp for Integers {
    type Output = ([i32; 8], [i32; 8]);
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Self::Output {
        (s.away(self.0), s.truncate(self.0))
    }
}

#[test]
fn integers_come_out_alike_on_every_level() {
    let x = [0.0, -0.0, 1e-30, -1e-30, 7.0, -7.000001, 30.99, -31.5];
    for l in Level::supported() {
        let integers = |x| with_level(l, || dispatch(Integers(x))).expect("supported");
        assert_eq!(integers(x), ([0, 0, 1, -1, 7, -8, 31, -32], [0, 0, 0, 0, 7, -7, 30, -31]), "{l}");
        assert_eq!(
            integers([f32::NAN, -f32::NAN, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]).1[..2],
            [i32::MIN; 2],
            "{l}"
        );
    }
}

struct Fold([[f32; 8]; 8]);
impl SimdOp for Fold {
    type Output = [f32; 8];
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> [f32; 8] {
        let r = self.0;
        let pair = |[a, b]: [[f32; 8]; 2]| s.add(a, b);
        let two = |i: usize| pair(s.halves_of_fours(r[i], r[i + 1]));
        let four = |i| pair(s.halves_of_twos(two(i), two(i + 2)));
        pair(s.halves_of_eights(four(0), four(4)))
    }
}

#[test]
fn folding_meets_each_lane_once_and_keeps_the_order_of_rows() {
    let rows = core::array::from_fn(|r| core::array::from_fn(|i| (1 << i) as f32 + 256.0 * r as f32));
    let sums = core::array::from_fn(|r| 255.0 + 2048.0 * r as f32);
    for l in Level::supported() {
        assert_eq!(with_level(l, || dispatch(Fold(rows))), Some(sums), "{l}");
    }
}

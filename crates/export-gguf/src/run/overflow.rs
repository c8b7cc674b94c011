//! Values that are finite in the source and would be infinite in the target.

use gguf_format::GgmlType;

use super::Tally;
use crate::Error;
use crate::plan::Plan;

/// What to do with them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Overflow {
    /// Refuse the model, naming tensor, count and largest value.
    #[default]
    Refuse,
    /// Write the target's largest finite value of that sign.
    Clamp,
    /// Write infinities.
    Keep,
}

/// The range of a plain float type that is narrower than f32.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit {
    /// Magnitudes from here on, as f32 bits, round to infinity.
    first_infinite: u32,
    /// The largest finite value.
    largest: f32,
}

impl Limit {
    /// The limit of a type, `None` for one that holds every f32 or has blocks.
    pub(super) fn of(ty: GgmlType) -> Option<Self> {
        match ty {
            // Halfway between 65504 and the next power of two, where ties go up.
            GgmlType::F16 => Some(Self { first_infinite: 65520_f32.to_bits(), largest: 65504.0 }),
            GgmlType::BF16 => {
                Some(Self { first_infinite: 0x7F7F_8000, largest: f32::from_bits(0x7F7F_0000) })
            }
            _ => None,
        }
    }

    /// Counts the values that overflow, and clamps them if asked to.
    pub(super) fn apply(self, values: &mut [f32], policy: Overflow, tally: &mut Tally) {
        let magnitude = |v: &f32| v.to_bits() & 0x7FFF_FFFF;
        // A plain maximum over integers vectorises; nearly always it is all there is to do.
        if values.iter().map(magnitude).max().unwrap_or(0) < self.first_infinite {
            return;
        }
        for v in values {
            if v.is_finite() && magnitude(v) >= self.first_infinite {
                tally.overflows += 1;
                if v.abs() > tally.largest.abs() {
                    tally.largest = *v;
                }
                if policy == Overflow::Clamp {
                    let (before, after) = (f64::from(*v), f64::from(self.largest.copysign(*v)));
                    *v = self.largest.copysign(*v);
                    // What is stored will be compared with the clamped value.
                    tally.error += (before - after).powi(2);
                    tally.power += before.powi(2) - after.powi(2);
                }
            }
        }
    }
}

/// Refuses the first tensor that overflowed, unless that was asked for.
pub(super) fn refuse(plan: &Plan, tallies: &[Tally], policy: Overflow) -> Result<(), Error> {
    if policy != Overflow::Refuse {
        return Ok(());
    }
    let Some((step, tally)) = plan.steps.iter().zip(tallies).find(|(_, t)| t.overflows > 0) else {
        return Ok(());
    };
    let (count, to) = (tally.overflows, step.to);
    let values = if count == 1 { "1 value" } else { &format!("{count} values") };
    let range = Limit::of(to).map_or(f32::MAX, |l| l.largest);
    Err(Error::tensor(
        &step.name,
        format!(
            "{values} out of the range of {to} (the largest is {:e}, {to} ends at {range:e}) would become \
             infinite; use --dtype bf16 or f32, or choose with --overflow clamp|keep",
            tally.largest
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ggml_blocks::Format;

    #[test]
    fn the_limits_are_where_the_encoders_give_infinity() {
        for (ty, inf) in [(GgmlType::F16, 0x7C00_u16), (GgmlType::BF16, 0x7F80)] {
            let limit = Limit::of(ty).unwrap();
            for (bits, infinite) in [(limit.first_infinite, true), (limit.first_infinite - 1, false)] {
                let mut out = [0; 2];
                let value = [f32::from_bits(bits)];
                Format::of(ty).unwrap().encode_rows(&value, 1, None, &mut out).unwrap();
                assert_eq!(u16::from_le_bytes(out) == inf, infinite, "{ty} {bits:#x}");
                let mut tally = Tally::default();
                limit.apply(&mut value.clone(), Overflow::Refuse, &mut tally);
                assert_eq!(tally.overflows == 1, infinite);
            }
        }
    }

    #[test]
    fn clamping_keeps_signs_and_what_is_infinite_already() {
        let mut values = [1e38, -1e38, f32::INFINITY, 1.0];
        let mut tally = Tally::default();
        Limit::of(GgmlType::F16).unwrap().apply(&mut values, Overflow::Clamp, &mut tally);
        assert_eq!(values, [65504.0, -65504.0, f32::INFINITY, 1.0]);
        assert_eq!((tally.overflows, tally.largest), (2, 1e38));
        assert!((tally.error / tally.power - 1.0).abs() < 1e-9, "nearly all is lost: {tally:?}");
    }
}

//! Normally distributed numbers from a counter: element `n` of a stream is a function of the seed
//! and `n` alone, so any thread can make any part, and the same on every machine.

use std::sync::OnceLock;

/// Quantiles of the standard normal distribution at `(i + 1/2) / 65536`.
fn quantiles() -> &'static [f32] {
    static TABLE: OnceLock<Vec<f32>> = OnceLock::new();
    TABLE.get_or_init(make_quantiles)
}

/// Integrates the density with additions and multiplications only: those are exact to the bit
/// everywhere, while `exp` and `ln` are not.
fn make_quantiles() -> Vec<f32> {
    const HALF: usize = 32_768;
    /// Grid points per unit, and units until the tail is negligible.
    const PER_UNIT: usize = 1024;
    const UNITS: usize = 8;
    let h = 1.0 / PER_UNIT as f64;
    // e^-t for tiny t: the fourth term is below the precision.
    let small = |t: f64| 1.0 - t + t * t / 2.0 - t * t * t / 6.0;
    let (step, ratio) = (small(h * h / 2.0), small(h * h));
    let (mut density, mut factor, mut area) = (1.0_f64, 1.0_f64, 0.0_f64);
    let mut areas = vec![0.0];
    for _ in 0..PER_UNIT * UNITS {
        let next = density * factor * step;
        factor *= ratio;
        area += (density + next) / 2.0 * h;
        density = next;
        areas.push(area);
    }
    let mut table = vec![0.0_f32; 2 * HALF];
    let mut k = 0;
    for i in 0..HALF {
        let wanted = (i as f64 + 0.5) / (2 * HALF) as f64 * 2.0 * area;
        while areas[k + 1] < wanted {
            k += 1;
        }
        let z = (k as f64 + (wanted - areas[k]) / (areas[k + 1] - areas[k])) * h;
        table[HALF + i] = z as f32;
        table[HALF - 1 - i] = -(z as f32);
    }
    table
}

/// Fills `out` with elements `start..` of stream `seed`, of this standard deviation and mean.
pub(super) fn fill(seed: u64, start: u64, scale: f32, mean: f32, out: &mut [f32]) {
    let table = quantiles();
    let value = |hash: u64, lane: u64| table[(hash >> (16 * lane)) as usize & 0xFFFF] * scale + mean;
    if !start.is_multiple_of(4) {
        for (at, v) in (start..).zip(out) {
            *v = value(hash(seed, at / 4), at % 4);
        }
        return;
    }
    for (at, four) in (start / 4..).zip(out.chunks_mut(4)) {
        let hash = hash(seed, at);
        for (lane, v) in (0..).zip(four) {
            *v = value(hash, lane);
        }
    }
}

/// `SplitMix64`'s output function over a counter.
fn hash(seed: u64, counter: u64) -> u64 {
    let mut z = seed.wrapping_add(counter.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution_is_normal() {
        let table = quantiles();
        let moment = |n| table.iter().map(|z| f64::from(*z).powi(n)).sum::<f64>() / 65536.0;
        assert!(moment(1).abs() < 1e-9);
        assert!((moment(2) - 1.0).abs() < 1e-3, "{}", moment(2));
        assert!((moment(4) - 3.0).abs() < 1e-2, "{}", moment(4));
        // The 97.5 % quantile, known to every statistician.
        assert!((table[63897] - 1.959_96).abs() < 1e-3, "{}", table[63897]);
    }

    #[test]
    fn any_part_equals_the_whole() {
        let mut whole = [0.0; 64];
        fill(7, 0, 0.02, 1.0, &mut whole);
        for start in [0, 1, 4, 7, 33] {
            let mut part = [0.0; 20];
            fill(7, start as u64, 0.02, 1.0, &mut part);
            assert_eq!(part, whole[start..start + 20]);
        }
        assert_eq!(whole[0].to_bits(), 0x3F77_C62E);
    }
}

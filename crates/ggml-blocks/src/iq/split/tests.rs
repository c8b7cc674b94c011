use super::*;
use crate::simd::Portable;

/// Sums of 16 sorted weights, with the arithmetic of `IQ1_S`.
struct Plain {
    x: [f32; 17],
    w: [f32; 17],
}

impl Sums<2> for Plain {
    fn exact(&self, i1: usize, i2: usize, k: usize) -> (f32, f32) {
        let q = [UP, DOWN][k];
        let three = |s: &[f32; 17]| [s[i1] - s[0], s[i2] - s[i1], s[16] - s[i2]];
        let (x, w) = (three(&self.x), three(&self.w));
        (
            x[0] * q[0] + x[1] * q[1] + x[2] * q[2],
            w[0] * q[0] * q[0] + w[1] * q[1] * q[1] + w[2] * q[2] * q[2],
        )
    }
}

fn estimate(sums: &Plain) -> Estimate<2, 24> {
    let mut e = Estimate {
        at: [0.0; 24],
        x: [0.0; 2],
        w: [0.0; 2],
        first: [[0.0; 24]; 2],
        second: [[f32::NAN; 24]; 2],
    };
    e.at[..17].copy_from_slice(&sums.x);
    for (k, q) in [UP, DOWN].iter().enumerate() {
        e.x[k] = sums.x[16] * q[2];
        e.w[k] = sums.w[16] * q[2] * q[2];
        for i in 0..17 {
            e.first[k][i] = sums.w[i] * (q[0] * q[0] - q[1] * q[1]);
            e.second[k][i] = sums.w[i] * (q[1] * q[1] - q[2] * q[2]);
        }
    }
    e
}

#[test]
fn an_estimate_changes_no_split() {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / 16_777_216.0
    };
    for round in 0..4000 {
        // Coarse numbers in every other round: many splits of equal score.
        let coarse = |x: f32| if round % 2 == 0 { x } else { (x * 4.0).round() / 4.0 };
        let scale = 10.0_f32.powi(round % 41 - 20);
        let mut x: [f32; 16] = std::array::from_fn(|_| scale * (coarse(random()) - 0.5));
        x.sort_by(f32::total_cmp);
        let w: [f32; 16] = std::array::from_fn(|_| coarse(random()));
        let mut sums = Plain { x: [0.0; 17], w: [0.0; 17] };
        for i in 0..16 {
            sums.x[i + 1] = sums.x[i] + w[i] * x[i];
            sums.w[i + 1] = sums.w[i] + w[i];
        }
        let all = best_split::<_, 2, 24>(Portable, &sums, 16, None, sums.w[16]);
        let few = best_split(Portable, &sums, 16, Some(&estimate(&sums)), sums.w[16]);
        let key = |s: Split| (s.bounds, s.shift, s.scale.to_bits(), s.score.to_bits());
        assert_eq!(few.map(key), all.map(key), "round {round}");
    }
}

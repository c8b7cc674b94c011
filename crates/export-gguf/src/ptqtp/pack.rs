//! From scales to blocks: f16 rounds the scales, and the trits are found once more for what is stored.

use ggml_blocks::F16;
use ggml_blocks::formats::tq2_0::Tq2_0;
use ggml_blocks::simd::{F8, Simd, SimdOp};

use super::lanes::nearest;
use super::search::{Tuple, value};
use super::{GROUP, Solution, Statistics};

/// The largest f16.
const MAX_SCALE: f32 = 65504.0;

/// Packs groups into one block per plane each, and compares those with the weights.
pub(super) struct Pack<'a, 'b, const K: usize, const N: usize> {
    /// Whole groups.
    pub(super) weights: &'a [f32],
    /// One for each group.
    pub(super) solutions: &'a [Solution],
    pub(super) tuples: &'a [Tuple; N],
    /// A block for each group, in each plane.
    pub(super) out: &'a mut [&'b mut [Tq2_0]],
}

impl<const K: usize, const N: usize> SimdOp for Pack<'_, '_, K, N> {
    type Output = Statistics;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Statistics {
        let mut codes = [0; N];
        for i in 0..N {
            codes[i] = self.tuples[i].iter().rev().fold(
                0,
                #[inline(always)]
                |code, t| code << 2 | (t + 1) as u32,
            );
        }
        let mut statistics = Statistics::default();
        let groups = self.weights.as_chunks::<GROUP>().0;
        for (g, (group, solution)) in groups.iter().zip(self.solutions).enumerate() {
            let mut stored = [F16::default(); 3];
            let mut scales = [0.0; 3];
            for p in 0..K {
                stored[p] = F16::from_f32(solution.scales[p].abs().min(MAX_SCALE));
                scales[p] = stored[p].to_f32();
            }
            let mut values = [[0.0; 8]; N];
            for i in 0..N {
                values[i] = [value(K, scales, self.tuples[i]); 8];
            }
            let mut trits = [0_u8; GROUP];
            for (x, trits) in group.as_chunks::<8>().0.iter().zip(trits.as_chunks_mut::<8>().0) {
                let code = nearest(simd, *x, &values, &codes);
                for l in 0..8 {
                    trits[l] = code[l] as u8;
                }
            }
            for p in 0..K {
                let block = &mut self.out[p][g];
                block.d = stored[p];
                block.qs = crumbs(&trits, p);
            }
            statistics.add_group::<K>(group, &trits, scales, solution);
        }
        statistics
    }
}

/// The trits of one plane as `TQ2_0` has them: byte `32h + m` holds weights `128h + 32c + m`, the first
/// lowest.
#[inline(always)]
fn crumbs(trits: &[u8; GROUP], plane: usize) -> [u8; 64] {
    let mut out = [0; 64];
    for half in 0..2 {
        for m in 0..32 {
            let mut byte = 0;
            for c in 0..4 {
                byte |= (trits[128 * half + 32 * c + m] >> (2 * plane) & 3) << (2 * c);
            }
            out[32 * half + m] = byte;
        }
    }
    out
}

impl Statistics {
    /// Counts a group. Sums of squares go by eight interleaved parts, so that they are the same
    /// whatever the CPU.
    #[inline(always)]
    fn add_group<const K: usize>(
        &mut self,
        weights: &[f32; GROUP],
        trits: &[u8; GROUP],
        scales: [f32; 3],
        solution: &Solution,
    ) {
        let (mut error, mut power) = ([0.0_f64; 8], [0.0_f64; 8]);
        let (mut zeros, mut lost) = ([[0_u32; 8]; K], [0_u32; 8]);
        for (x, trits) in weights.as_chunks::<8>().0.iter().zip(trits.as_chunks::<8>().0) {
            let mut stored: F8 = [0.0; 8];
            for p in 0..K {
                for l in 0..8 {
                    let trit = (trits[l] >> (2 * p) & 3) as i8 - 1;
                    stored[l] += scales[p] * f32::from(trit);
                    zeros[p][l] += u32::from(trit == 0);
                }
            }
            for l in 0..8 {
                let finite = x[l].abs() < f32::INFINITY;
                let w = if finite { f64::from(x[l]) } else { 0.0 };
                let d = if finite { w - f64::from(stored[l]) } else { 0.0 };
                lost[l] += u32::from(!finite);
                error[l] += d * d;
                power[l] += w * w;
            }
        }
        for l in 0..8 {
            self.not_finite += u64::from(lost[l]);
            self.error += error[l];
            self.power += power[l];
            for p in 0..K {
                self.zeros[p] += u64::from(zeros[p][l]);
            }
        }
        self.groups += 1;
        self.rounds += u64::from(solution.rounds);
        self.unconverged += u64::from(!solution.converged);
    }
}

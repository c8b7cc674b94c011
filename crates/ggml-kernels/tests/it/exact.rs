//! Against arithmetic in f64: the result is off by f32 rounding alone, once the activations are
//! quantized.

use crate::{Random, weight_formats};
use ggml_blocks::Format;
use ggml_kernels::{Kernels, Lhs, Rhs, Scratch};

/// Rounding errors of one output, relative to the sum of the magnitudes of its terms: a few per block,
/// and the decoder's own rounding of each weight.
fn bound(k: usize) -> f64 {
    (k as f64 / 16.0 + 8.0) * f64::from(f32::EPSILON)
}

#[test]
fn products_are_exact_but_for_rounding() {
    let mut random = Random(21);
    for format in weight_formats() {
        let block = format.block_len().max(64);
        let (m, n, k) = (7, 19, 2 * block);
        // Encoded weights, or random bytes without huge scales.
        let bytes = finite(&mut random, format, n, k);
        let w = Rhs::new(format.info().id, &bytes, n, k).unwrap();
        let x = random.values(m * k);
        let mut y = vec![0.0; m * n];
        Kernels::best().matmul(&x, &w, &mut y, &mut Scratch::new()).unwrap();

        let mut weights = vec![0.0; n * k];
        w.decode(&mut weights).unwrap();
        let activations = match w.activations() {
            None => x,
            Some(ty) => {
                let lhs = Lhs::quantize(ty, &x, k).unwrap();
                let mut decoded = vec![0.0; m * k];
                Format::of(ty).unwrap().decode_rows(lhs.as_bytes(), k, &mut decoded).unwrap();
                decoded
            }
        };
        for r in 0..m {
            for c in 0..n {
                let terms = (0..k).map(|i| f64::from(activations[r * k + i]) * f64::from(weights[c * k + i]));
                let (sum, size) = terms.fold((0.0, 0.0), |(s, a): (f64, f64), t| (s + t, a + t.abs()));
                let off = (f64::from(y[r * n + c]) - sum).abs();
                // Q8_1 carries its sum of levels in f16, as in ggml.
                let slack = if format.name().ends_with("_1") { 1e-3 } else { 0.0 };
                assert!(off <= size * (bound(k) + slack), "{} {r} {c}: {off} of {size}", format.name());
            }
        }
    }
}

fn finite(random: &mut Random, format: &Format, n: usize, k: usize) -> Vec<u8> {
    let importance = vec![1.0; k];
    let values = random.values(n * k);
    let mut bytes = vec![0; n * format.row_bytes(k).unwrap()];
    format.encode_rows(&values, k, Some(&importance), &mut bytes).unwrap();
    bytes
}

#[test]
fn the_gradient_is_the_transposed_product() {
    let mut random = Random(22);
    for format in weight_formats() {
        let k = if format.block_len() == 1 { 67 } else { 2 * format.block_len() };
        let n = 35;
        let bytes = finite(&mut random, format, n, k);
        let w = Rhs::new(format.info().id, &bytes, n, k).unwrap();
        let mut weights = vec![0.0; n * k];
        w.decode(&mut weights).unwrap();
        let dy = random.values(3 * n);
        // One row after another, with separate multiplication and addition.
        let mut want = vec![0.0f32; 3 * k];
        for r in 0..3 {
            for j in 0..n {
                for i in 0..k {
                    want[r * k + i] += dy[r * n + j] * weights[j * k + i];
                }
            }
        }
        for kernels in Kernels::supported() {
            let mut dx = vec![f32::NAN; 3 * k];
            kernels.matmul_t(&dy, &w, &mut dx, &mut Scratch::new()).unwrap();
            assert_eq!(crate::bits(&dx), crate::bits(&want), "{} {}", format.name(), kernels.level());
        }
    }
}

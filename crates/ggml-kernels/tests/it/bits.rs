//! Every level, every way to multiply, the bits of the portable reference.

use crate::{Random, bits, rows, shapes, weight_formats};
use ggml_blocks::GgmlType;
use ggml_kernels::{Kernels, Level, Rhs, Scratch};

fn portable() -> Kernels {
    Kernels::at(Level::Portable).expect("always there")
}

fn matmul(kernels: Kernels, x: &[f32], w: &Rhs<'_>) -> Vec<f32> {
    let mut y = vec![f32::NAN; x.len() / w.k() * w.n()];
    kernels.matmul(x, w, &mut y, &mut Scratch::new()).expect("lengths fit");
    y
}

/// Row by row: no tile has more than one.
fn one_by_one(x: &[f32], w: &Rhs<'_>) -> Vec<f32> {
    x.chunks(w.k()).flat_map(|x| matmul(portable(), x, w)).collect()
}

#[test]
fn every_level_and_every_number_of_rows_agree() {
    let mut random = Random(1);
    for format in weight_formats() {
        let block = format.block_len().max(32);
        let (n, k) = (37, 3 * block);
        let bytes = random.bytes(n * format.row_bytes(k).unwrap());
        let w = Rhs::new(format.info().id, &bytes, n, k).unwrap();
        let rows = rows();
        let x = random.values(rows.iter().max().unwrap() * k);
        let want = one_by_one(&x, &w);
        for kernels in Kernels::supported() {
            for &m in &rows {
                let got = matmul(kernels, &x[..m * k], &w);
                assert!(bits(&got) == bits(&want[..m * n]), "{} {} m={m}", format.name(), kernels.level());
            }
        }
    }
}

#[test]
fn odd_tails_of_n_and_k() {
    let mut random = Random(2);
    for format in weight_formats() {
        let all = [(1, 1), (7, 5), (8, 2), (9, 1), (15, 3), (17, 1), (65, 1), (31, 2), (33, 1)];
        for &(n, blocks) in shapes(&all) {
            let k = if format.block_len() == 1 { 8 * blocks + n % 8 } else { blocks * format.block_len() };
            let bytes = random.bytes(n * format.row_bytes(k).unwrap());
            let w = Rhs::new(format.info().id, &bytes, n, k).unwrap();
            let x = random.values(6 * k);
            let want = one_by_one(&x, &w);
            for kernels in Kernels::supported() {
                let at = format!("{} {} n={n} k={k}", format.name(), kernels.level());
                assert!(bits(&matmul(kernels, &x, &w)) == bits(&want), "{at}");
                assert!(bits(&matmul(kernels, &x[..k], &w)) == bits(&want[..n]), "{at}");
            }
        }
    }
}

#[test]
fn random_bytes_are_no_all_nan() {
    let mut random = Random(3);
    let bytes = random.bytes(64 * 144);
    let w = Rhs::new(GgmlType::Q4_K, &bytes, 64, 256).unwrap();
    let y = matmul(Kernels::best(), &random.values(256), &w);
    assert!(y.iter().filter(|y| y.is_finite()).count() > 32);
}

#[test]
fn the_best_level_is_the_first_supported_one() {
    let best = Kernels::best().level();
    if let Ok(expected) = std::env::var("GGML_KERNELS_EXPECT") {
        assert_eq!(best.name(), expected);
    }
    let cap = std::env::var("GGML_KERNELS_SIMD").ok();
    assert!(cap.is_some() || Some(best) == Kernels::supported().map(Kernels::level).next());
    assert_eq!(Kernels::up_to(Level::Portable).level(), Level::Portable);
    assert!(Kernels::supported().all(|k| k.level() >= Level::Portable));
}

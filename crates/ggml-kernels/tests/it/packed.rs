//! Packed weights give the bits of those in the file's form.

use crate::{Random, bits, reduced, rows, shapes, weight_formats};
use ggml_blocks::Kind;
use ggml_kernels::{Error, Kernels, Level, Rhs, Scratch};

#[test]
fn packing_changes_no_bit() {
    let mut random = Random(11);
    let mut scratch = Scratch::new();
    let mut packable = Vec::new();
    for format in weight_formats() {
        for &(n, blocks) in shapes(&[(1, 1), (8, 3), (70, 2), (17, 2), (37, 1)]) {
            let k = blocks * format.block_len().max(32);
            let bytes = random.bytes(n * format.row_bytes(k).unwrap());
            let w = Rhs::new(format.info().id, &bytes, n, k).unwrap();
            // With many rows, some are unpacked first.
            let rows = if reduced() { rows() } else { [rows(), vec![67]].concat() };
            let most = rows.iter().max().unwrap();
            let x = random.values(most * k);
            let mut want = vec![0.0; most * n];
            Kernels::at(Level::Portable).unwrap().matmul(&x, &w, &mut want, &mut scratch).unwrap();
            for kernels in Kernels::supported() {
                let packed = match kernels.pack(&w) {
                    Ok(packed) => packed,
                    Err(e) => {
                        assert!(matches!(e, Error::Type { what: "packing", .. }), "{e}");
                        continue;
                    }
                };
                assert_eq!(packed.level(), kernels.level());
                packable.push(format.name());
                for &m in &rows {
                    let mut y = vec![f32::NAN; m * n];
                    packed.matmul(&x[..m * k], &mut y, &mut scratch).unwrap();
                    let same = bits(&y) == bits(&want[..m * n]);
                    assert!(same, "{} {} m={m} n={n} k={k}", format.name(), kernels.level());
                }
            }
        }
    }
    packable.dedup();
    let blocks: Vec<&str> =
        weight_formats().filter(|f| f.info().kind == Kind::Block).map(|f| f.name()).collect();
    assert_eq!(packable, blocks);
}

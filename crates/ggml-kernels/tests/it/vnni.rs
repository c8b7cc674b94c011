//! AVX-VNNI where the CPU has none: its instructions are emulated.

use crate::{Random, bits, emulator, planes, weight_formats};
use ggml_kernels::{Kernels, Level, Rhs, Scratch};

#[test]
#[expect(unsafe_code, reason = "detection does not see what is emulated")]
fn avx_vnni_gives_the_bits_of_the_reference() {
    let real = Kernels::at(Level::AvxVnni);
    if Kernels::at(Level::Avx2).is_none() {
        // Without AVX2 there is nothing to emulate on: the levels below are tested elsewhere.
        assert!(real.is_none());
        return;
    }
    let kernels = real.unwrap_or_else(|| {
        emulator::install();
        // SAFETY: AVX2 is there (with FMA and F16C), and the handler does what AVX-VNNI would.
        unsafe { Kernels::assume(Level::AvxVnni) }.expect("of this architecture")
    });
    let mut random = Random(31);
    let mut scratch = Scratch::new();
    for format in weight_formats() {
        let (m, n, k) = (7, 33, format.block_len().max(32));
        let bytes = random.bytes(n * format.row_bytes(k).unwrap());
        let w = Rhs::new(format.info().id, &bytes, n, k).unwrap();
        let x = random.values(m * k);
        let (mut want, mut got) = (vec![0.0; m * n], vec![f32::NAN; m * n]);
        Kernels::at(Level::Portable).unwrap().matmul(&x, &w, &mut want, &mut scratch).unwrap();
        kernels.matmul(&x, &w, &mut got, &mut scratch).unwrap();
        assert!(bits(&got) == bits(&want), "{}", format.name());
        if let Ok(packed) = kernels.pack(&w) {
            got.fill(f32::NAN);
            packed.matmul(&x, &mut got, &mut scratch).unwrap();
            assert!(bits(&got) == bits(&want), "{} packed", format.name());
        }
    }
    planes::check(kernels, &mut random, 35, 2, &[1, 7]);
    assert!(real.is_some() || emulator::emulated() > 1000, "the kernels use the instructions");
}

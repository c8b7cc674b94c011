//! What callers see: threads, lengths, joined matrices, look-ups, prepared activations, the cache.

use crate::{Random, bits, weight_formats};
use ggml_blocks::Format;
use ggml_kernels::{Error, GgmlType, Kernels, Lhs, PackCache, Rhs, RhsLifetime, Scratch};

fn encoded(random: &mut Random, ty: GgmlType, n: usize, k: usize) -> Vec<u8> {
    let format = Format::of(ty).unwrap();
    let mut bytes = vec![0; n * format.row_bytes(k).unwrap()];
    format.encode_rows(&random.values(n * k), k, None, &mut bytes).unwrap();
    bytes
}

fn product(x: &[f32], w: &Rhs<'_>) -> Vec<f32> {
    let mut y = vec![f32::NAN; x.len() / w.k() * w.n()];
    Kernels::best().matmul(x, w, &mut y, &mut Scratch::new()).unwrap();
    y
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let mut random = Random(41);
    // Large enough for several tasks, and no multiple of a tile.
    let (n, k) = (1003, 2048);
    for ty in [GgmlType::Q8_0, GgmlType::Q4_K, GgmlType::Q5_1, GgmlType::F16] {
        let bytes = encoded(&mut random, ty, n, k);
        let w = Rhs::new(ty, &bytes, n, k).unwrap();
        let packed = Kernels::best().pack(&w).ok();
        for m in [1, 9] {
            let x = random.values(m * k);
            let dy = random.values(m * n);
            let run = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| {
                    let mut scratch = Scratch::new();
                    let (mut y, mut dx) = (vec![f32::NAN; 2 * m * n], vec![f32::NAN; m * k]);
                    let (plain, tiles) = y.split_at_mut(m * n);
                    Kernels::best().matmul(&x, &w, plain, &mut scratch).unwrap();
                    match &packed {
                        Some(packed) => packed.matmul(&x, tiles, &mut scratch).unwrap(),
                        None => tiles.copy_from_slice(plain),
                    }
                    assert!(bits(plain) == bits(tiles));
                    Kernels::best().matmul_t(&dy, &w, &mut dx, &mut scratch).unwrap();
                    (bits(&y), bits(&dx))
                })
            };
            let one = run(1);
            for threads in [2, 3, 7] {
                assert!(run(threads) == one, "{ty} m={m} threads={threads}");
            }
        }
    }
}

#[test]
fn joined_and_owned_matrices_are_the_same_columns() {
    let mut random = Random(42);
    let (a, b) =
        (encoded(&mut random, GgmlType::Q6_K, 5, 512), encoded(&mut random, GgmlType::Q6_K, 12, 512));
    let parts = [
        Rhs::new(GgmlType::Q6_K, &a, 5, 512).unwrap(),
        Rhs::new(GgmlType::Q6_K, &b, 12, 512).unwrap().into_owned(),
    ];
    let joined = Rhs::concat(&parts).unwrap();
    let x = random.values(512);
    let apart = [product(&x, &parts[0]), product(&x, &parts[1])].concat();
    assert_eq!(bits(&product(&x, &joined)), bits(&apart));

    let other = Rhs::from_vec(GgmlType::Q6_K, b[..12 * 210].to_vec(), 12, 256).unwrap();
    assert_eq!(Rhs::concat(&[parts[0].clone(), other]).unwrap_err(), Error::Concat { index: 1 });
    assert!(matches!(Rhs::concat(&[]), Err(Error::Length { need: 1, have: 0, .. })));
}

#[test]
fn rows_are_looked_up_as_decoded() {
    let mut random = Random(43);
    for format in weight_formats() {
        let (n, k) = (9, 2 * format.block_len().max(32));
        let bytes = random.bytes(n * format.row_bytes(k).unwrap());
        let w = Rhs::new(format.info().id, &bytes, n, k).unwrap();
        let mut all = vec![0.0; n * k];
        w.decode(&mut all).unwrap();
        let mut some = vec![0.0; 3 * k];
        w.get_rows(&[8, 0, 8], &mut some).unwrap();
        let want = [&all[8 * k..], &all[..k], &all[8 * k..]].concat();
        assert_eq!(bits(&some), bits(&want), "{}", format.name());
        assert_eq!(w.get_rows(&[9], &mut some[..k]), Err(Error::Row { row: 9, rows: 9 }));
        assert!(matches!(w.get_rows(&[1], &mut some), Err(Error::Length { .. })));
        assert!(matches!(w.decode(&mut some), Err(Error::Length { .. })));
    }
}

#[test]
fn prepared_activations_give_the_same_product() {
    let mut random = Random(44);
    for (ty, k) in [(GgmlType::Q4_0, 96), (GgmlType::Q4_1, 96), (GgmlType::Q2_K, 256)] {
        let bytes = encoded(&mut random, ty, 21, k);
        let w = Rhs::new(ty, &bytes, 21, k).unwrap();
        let x = random.values(5 * k);
        let meets = w.activations().unwrap();
        let lhs = Lhs::quantize(meets, &x, k).unwrap();
        assert_eq!((lhs.m(), lhs.k(), lhs.ty()), (5, k, meets));
        let again = Lhs::from_bytes(meets, lhs.as_bytes().to_vec(), k).unwrap();
        for lhs in [lhs, again] {
            let mut y = vec![f32::NAN; 5 * 21];
            Kernels::best().matmul_lhs(&lhs, &w, &mut y, &mut Scratch::new()).unwrap();
            assert_eq!(bits(&y), bits(&product(&x, &w)));
            let wrong = Rhs::from_vec(GgmlType::F32, vec![0; 4 * k], 1, k).unwrap();
            let error = Kernels::best().matmul_lhs(&lhs, &wrong, &mut y, &mut Scratch::new());
            assert!(matches!(error, Err(Error::Activations { need: GgmlType::F32, .. })));
        }
    }
    let level = Lhs::from_bytes(GgmlType::Q8_0, [vec![0; 34], vec![0, 0], vec![0x80; 32]].concat(), 32);
    assert_eq!(level.unwrap_err(), Error::Level { block: 1 });
}

#[test]
fn what_does_not_fit_is_an_error() {
    let said = |e: Error| e.to_string();
    let w = Rhs::new(GgmlType::Q4_K, &[0; 288], 2, 256).unwrap();
    let mut scratch = Scratch::new();
    let mut y = [0.0; 2];
    let mut run = |x: &[f32], y: &mut [f32]| Kernels::best().matmul(x, &w, y, &mut scratch).map_err(said);
    assert_eq!(run(&[0.0; 256], &mut y), Ok(()));
    assert_eq!(
        run(&[0.0; 255], &mut y),
        Err("activations: 255 given, not a multiple of 256 per row".to_owned())
    );
    assert_eq!(run(&[0.0; 512], &mut y), Err("output: 4 needed, 2 given".to_owned()));
    let mut x = [0.0; 256];
    x[7] = f32::INFINITY;
    assert_eq!(run(&x, &mut y), Err("activations: value inf at element 7 is not finite".to_owned()));
    let new = |ty, len, n, k| Rhs::new(ty, &[0; 999][..len], n, k).map(|_| ()).map_err(said);
    assert_eq!(new(GgmlType::Q8_K, 292, 1, 256), Err("type Q8_K is not for a weight matrix".to_owned()));
    assert_eq!(new(GgmlType::I32, 4, 1, 1), Err("type I32 is not for a weight matrix".to_owned()));
    assert_eq!(
        new(GgmlType::Q4_0, 18, 1, 31),
        Err("row length 31 is not a positive multiple of Q4_0's 32".to_owned())
    );
    assert_eq!(new(GgmlType::Q4_0, 18, 2, 32), Err("bytes: 36 needed, 18 given".to_owned()));
    let many = format!("{} rows of 64 are more than memory can hold", usize::MAX);
    assert_eq!(new(GgmlType::Q4_0, 0, usize::MAX, 64), Err(many));
    // Nothing to multiply is no error.
    assert_eq!(product(&[], &w), [0.0; 0]);
    let none = Rhs::new(GgmlType::Q4_K, &[], 0, 256).unwrap();
    assert_eq!(product(&[0.0; 256], &none), [0.0; 0]);
}

#[test]
fn the_cache_keeps_stable_matrices_within_its_limit() {
    let mut random = Random(45);
    let bytes: &'static [u8] = encoded(&mut random, GgmlType::Q8_0, 64, 64).leak();
    let stable = Rhs::stable(GgmlType::Q8_0, bytes, 64, 64).unwrap();
    let x = random.values(64);
    let mut scratch = Scratch::new();
    let kernels = Kernels::best();
    let size = kernels.packed_size(&stable).unwrap();
    let cache = PackCache::new(2 * size);
    let mut y = vec![0.0; 64];
    for _ in 0..2 {
        cache.matmul(kernels, &x, &stable, &mut y, &mut scratch).unwrap();
        assert_eq!(bits(&y), bits(&product(&x, &stable)));
        assert_eq!((cache.len(), cache.size()), (1, size));
    }
    // A transient matrix is never kept, whatever its bytes.
    let transient = Rhs::new(GgmlType::Q8_0, bytes, 64, 64).unwrap();
    assert_eq!(transient.lifetime(), RhsLifetime::Transient);
    assert_eq!(stable.clone().into_owned().lifetime(), RhsLifetime::Transient);
    assert!(cache.pack(kernels, &transient).is_none());
    // The least recently used goes.
    let mut other = || {
        let bytes: &'static [u8] = encoded(&mut random, GgmlType::Q8_0, 64, 64).leak();
        Rhs::stable(GgmlType::Q8_0, bytes, 64, 64).unwrap()
    };
    let others = [other(), other()];
    assert!(cache.pack(kernels, &others[0]).is_some() && cache.pack(kernels, &stable).is_some());
    assert!(cache.pack(kernels, &others[1]).is_some());
    assert_eq!(cache.len(), 2);
    let tiny = PackCache::new(size - 1);
    assert!(tiny.pack(kernels, &stable).is_none() && tiny.is_empty());
    cache.clear();
    assert_eq!((cache.len(), cache.limit()), (0, 2 * size));
}

/// Rows so long that no packed or decoded form of some of them can be counted: also where there are none.
#[test]
fn rows_that_no_memory_holds_are_refused() {
    for format in weight_formats() {
        for bits in 40..64 {
            let k = 1usize << bits;
            match Rhs::new(format.info().id, &[], 0, k) {
                Err(Error::Size { n: 0, .. } | Error::RowLength { .. }) => assert!(bits > 50, "{k}"),
                Err(e) => panic!("{} {k}: {e}", format.name()),
                Ok(w) => {
                    let size = Kernels::best().packed_size(&w);
                    let packed = Kernels::best().pack(&w).ok();
                    assert_eq!(packed.map(|p| p.size()), size, "{} {k}", format.name());
                }
            }
        }
    }
}

#[test]
fn debug_output_is_no_dump() {
    let w = Rhs::from_vec(GgmlType::Q4_0, vec![0; 18 * 4096], 4096, 32).unwrap();
    let packed = Kernels::best().pack(&w).unwrap();
    let lhs = Lhs::quantize(GgmlType::Q8_0, &[0.0; 32 * 64], 32).unwrap();
    for text in [format!("{w:?}"), format!("{packed:?}"), format!("{lhs:?}")] {
        assert!(text.len() < 200, "{text}");
    }
}

//! Plane sets: the sum of the planes' products, in one pass; folded ones against plain code.

use crate::{Random, bits, rows, shapes};
use ggml_blocks::formats::{q8_k::Q8K, tq2_0::Tq2_0};
use ggml_blocks::{F16, cast_blocks, cast_blocks_mut};
use ggml_kernels::{Error, GgmlType, Kernels, Level, Lhs, PlaneSet, Rhs, Scratch};

/// Rows and super-blocks per row: none fills its tiles.
const SHAPES: [(usize, usize); 6] = [(1, 1), (8, 3), (37, 1), (70, 1), (17, 2), (45, 2)];

fn portable() -> Kernels {
    Kernels::at(Level::Portable).unwrap()
}

fn plane(bytes: Vec<u8>, n: usize, blocks: usize) -> Rhs<'static> {
    Rhs::from_vec(GgmlType::TQ2_0, bytes, n, 256 * blocks).unwrap()
}

/// Planes without any structure: scales are NaN, infinite, negative, and trits are 2 too.
fn wild(random: &mut Random, count: usize, n: usize, blocks: usize) -> PlaneSet<'static> {
    let planes: Vec<_> = (0..count).map(|_| plane(random.bytes(n * blocks * 66), n, blocks)).collect();
    PlaneSet::new(planes).unwrap()
}

/// Two planes of any trits, whose scales are `3s` and `s` for what `scale` gives.
fn tied(
    random: &mut Random,
    n: usize,
    blocks: usize,
    mut scale: impl FnMut(&mut Random) -> f32,
) -> PlaneSet<'static> {
    let [mut coarse, mut fine] = [0, 1].map(|_| random.bytes(n * blocks * 66));
    let both = cast_blocks_mut::<Tq2_0>(&mut coarse).unwrap().iter_mut();
    for (coarse, fine) in both.zip(cast_blocks_mut::<Tq2_0>(&mut fine).unwrap()) {
        let s = scale(random);
        (coarse.d, fine.d) = (F16::from_f32(3.0 * s), F16::from_f32(s));
    }
    PlaneSet::new([plane(coarse, n, blocks), plane(fine, n, blocks)]).unwrap()
}

/// Scales of every kind: denormal, huge, zero, negative, infinite, NaN.
fn any_scale(random: &mut Random) -> f32 {
    match random.next() >> 60 {
        0 => f32::NAN,
        1 => f32::INFINITY,
        2 => 0.0,
        3 => 1e-6 * random.values(1)[0],
        4 => 2e4 * random.values(1)[0],
        _ => random.values(1)[0],
    }
}

fn sum_of_products(kernels: Kernels, x: &[f32], w: &PlaneSet<'_>) -> Vec<f32> {
    let mut sum: Option<Vec<f32>> = None;
    for plane in w.planes() {
        let mut y = vec![f32::NAN; x.len() / w.k() * w.n()];
        kernels.matmul(x, plane, &mut y, &mut Scratch::new()).unwrap();
        sum = Some(match sum {
            None => y,
            Some(sum) => sum.iter().zip(&y).map(|(sum, y)| sum + y).collect(),
        });
    }
    sum.unwrap()
}

/// A super-block of a folded product: the sums of activations with the trits of both planes, and the scales
/// of the planes and of the activations.
struct Term {
    sums: [i32; 2],
    d: [f32; 2],
    da: f32,
}

/// The super-blocks of each output, in plain code.
fn terms(x: &[f32], w: &PlaneSet<'_>) -> Vec<Vec<Term>> {
    let (n, per_row) = (w.n(), w.k() / 256);
    let lhs = Lhs::quantize(GgmlType::Q8_K, x, w.k()).unwrap();
    let a: &[Q8K] = cast_blocks(lhs.as_bytes()).unwrap();
    let planes = [0, 1].map(|p| cast_blocks::<Tq2_0>(w.planes()[p].as_bytes()).unwrap());
    let mut out = Vec::new();
    for a in a.chunks(per_row) {
        for c in 0..n {
            let row = a.iter().enumerate().map(|(b, a)| {
                let blocks = planes.map(|p| &p[c * per_row + b]);
                let sums = blocks.map(|block| {
                    (0..256)
                        .map(|i| {
                            let byte = block.qs[i / 128 * 32 + i % 32];
                            (i32::from(byte >> (i % 128 / 32 * 2) & 3) - 1) * i32::from(a.qs[i])
                        })
                        .sum()
                });
                Term { sums, d: blocks.map(|b| b.d.to_f32()), da: a.d.get() }
            });
            out.push(row.collect());
        }
    }
    out
}

/// The contract of folded sets: per super-block `acc += f32(3 S0 + S1) * (d1 * da)`.
fn folded(x: &[f32], w: &PlaneSet<'_>) -> Vec<f32> {
    let chain = |terms: &Vec<Term>| {
        let mut acc = 0.0f32;
        for t in terms {
            acc += (3 * t.sums[0] + t.sums[1]) as f32 * (t.d[1] * t.da);
        }
        acc
    };
    terms(x, w).iter().map(chain).collect()
}

type Product<'a> = dyn FnMut(&[f32], &mut [f32], &mut Scratch) + 'a;

/// Sets of one to three planes and a folded one, on one level.
pub(crate) fn check(kernels: Kernels, random: &mut Random, n: usize, blocks: usize, rows: &[usize]) {
    let k = 256 * blocks;
    let x = random.values(rows.iter().max().unwrap() * k);
    let mut scratch = Scratch::new();
    let mut same = |what: &str, want: &[f32], run: &mut Product<'_>| {
        for &m in rows {
            let mut y = vec![f32::NAN; m * n];
            run(&x[..m * k], &mut y, &mut scratch);
            assert!(bits(&y) == bits(&want[..m * n]), "{what}, {} m={m} n={n} k={k}", kernels.level());
        }
    };
    for count in 1..=3 {
        let w = wild(random, count, n, blocks);
        let want = sum_of_products(portable(), &x, &w);
        same(&format!("{count} planes"), &want, &mut |x, y, scratch| {
            kernels.matmul_planes(x, &w, y, scratch).unwrap();
        });
        let packed = kernels.pack_planes(&w).unwrap();
        assert_eq!((packed.ty(), packed.n(), packed.k()), (GgmlType::TQ2_0, n, k));
        same(&format!("{count} planes packed"), &want, &mut |x, y, scratch| {
            packed.matmul(x, y, scratch).unwrap();
        });
    }
    let w = tied(random, n, blocks, any_scale);
    let packed = kernels.pack_folded(&w).unwrap();
    same("folded", &folded(&x, &w), &mut |x, y, scratch| packed.matmul(x, y, scratch).unwrap());
}

#[test]
fn every_level_and_every_number_of_rows_give_the_same_bits() {
    let mut random = Random(61);
    for &(n, blocks) in shapes(&SHAPES) {
        for kernels in Kernels::supported() {
            check(kernels, &mut random, n, blocks, &rows());
        }
    }
}

/// What `docs/kernels.md` says of folded products: they differ from the sums of products by what the coarse
/// scales are off, and by the rounding of all steps.
#[test]
fn a_folded_product_is_within_its_bound_of_the_sum() {
    let mut random = Random(63);
    let (mut differ, mut outputs) = (0, 0);
    for size in [1.0, 1e-2, 1e-5, 1e-7] {
        for (n, blocks) in [(33, 1), (21, 4), (5, 40)] {
            let w = tied(&mut random, n, blocks, |random| size * random.values(1)[0].abs());
            let x = random.values(5 * w.k());
            let sum = sum_of_products(Kernels::best(), &x, &w);
            let mut folded = vec![f32::NAN; sum.len()];
            let packed = Kernels::best().pack_folded(&w).unwrap();
            packed.matmul(&x, &mut folded, &mut Scratch::new()).unwrap();
            for ((terms, sum), folded) in terms(&x, &w).iter().zip(&sum).zip(&folded) {
                let (mut off, mut all, mut tie) = (0.0, 0.0, 0.0);
                for Term { sums, d, da } in terms {
                    let ([s0, s1], [d0, d1], da) = (sums.map(f64::from), d.map(f64::from), f64::from(*da));
                    off += s0.abs() * (d0 - 3.0 * d1).abs() * da.abs();
                    all += ((3.0 * s0 + s1).abs() * d1 + s0.abs() * d0 + s1.abs() * d1) * da.abs();
                    tie += s0.abs() * (d0 * (1.0 / 1024.0 + 1.0 / 1_048_576.0) + 0.5f64.powi(23)) * da.abs();
                }
                let steps = (blocks + 3) as f64 * 0.5f64.powi(24);
                let rounding = all * steps / (1.0 - steps);
                let apart = f64::from(folded - sum).abs();
                assert!(apart <= off + rounding, "{size} {blocks}: {apart}, bound {off} + {rounding}");
                assert!(off <= tie, "what is off is within the tie: {off} of {tie}");
                outputs += 1;
                differ += usize::from(folded != sum);
            }
        }
    }
    assert!(differ > outputs / 2, "the two are different products: {differ} of {outputs}");
}

#[test]
fn the_number_of_threads_changes_no_bit_of_a_set() {
    let mut random = Random(64);
    let (n, blocks) = (1003, 8);
    let sets = [wild(&mut random, 3, n, blocks), tied(&mut random, n, blocks, any_scale)];
    let packs = [Kernels::best().pack_planes(&sets[0]), Kernels::best().pack_folded(&sets[1])];
    let packs = packs.map(Result::unwrap);
    for m in [1, 9] {
        let x = random.values(m * 256 * blocks);
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut scratch = Scratch::new();
                let mut all = vec![vec![f32::NAN; m * n]; 4];
                for i in 0..2 {
                    Kernels::best().matmul_planes(&x, &sets[i], &mut all[i], &mut scratch).unwrap();
                    packs[i].matmul(&x, &mut all[2 + i], &mut scratch).unwrap();
                }
                all.iter().map(|y| bits(y)).collect::<Vec<_>>()
            })
        };
        let one = run(1);
        assert!(one[0] == one[2] && one[3] == bits(&folded(&x, &sets[1])));
        for threads in [2, 3, 7] {
            assert!(run(threads) == one, "m={m} threads={threads}");
        }
    }
}

#[test]
fn prepared_activations_meet_sets() {
    let mut random = Random(65);
    let w = tied(&mut random, 21, 2, |_| 0.25);
    let x = random.values(6 * w.k());
    let lhs = Lhs::quantize(w.activations(), &x, w.k()).unwrap();
    let mut scratch = Scratch::new();
    let mut y = vec![f32::NAN; 6 * 21];
    Kernels::best().matmul_planes_lhs(&lhs, &w, &mut y, &mut scratch).unwrap();
    assert_eq!(bits(&y), bits(&sum_of_products(portable(), &x, &w)));
    let packed = Kernels::best().pack_folded(&w).unwrap();
    assert_eq!(packed.activations(), GgmlType::Q8_K);
    packed.matmul_lhs(&lhs, &mut y, &mut scratch).unwrap();
    assert_eq!(bits(&y), bits(&folded(&x, &w)));

    let other = Lhs::quantize(GgmlType::Q8_0, &x, w.k()).unwrap();
    let error = Kernels::best().matmul_planes_lhs(&other, &w, &mut y, &mut scratch).unwrap_err();
    assert_eq!(error, Error::Activations { need: GgmlType::Q8_K, have: GgmlType::Q8_0 });
}

#[test]
fn what_is_no_set_is_an_error() {
    let said = |e: Error| e.to_string();
    let plane = |n, k| Rhs::from_vec(GgmlType::TQ2_0, vec![0; n * k / 256 * 66], n, k).unwrap();
    let new = |planes: &[Rhs<'static>]| PlaneSet::new(planes).map(|w| (w.n(), w.k())).map_err(said);
    assert_eq!(new(&[plane(2, 256), plane(2, 256)]), Ok((2, 256)));
    assert_eq!(new(&[]), Err("a plane set has 1 to 3 planes, 0 given".to_owned()));
    let four = [0; 4].map(|_| plane(1, 256));
    assert_eq!(new(&four), Err("a plane set has 1 to 3 planes, 4 given".to_owned()));
    let q4_k = Rhs::from_vec(GgmlType::Q4_K, vec![0; 288], 2, 256).unwrap();
    assert_eq!(new(&[plane(2, 256), q4_k]), Err("plane 1 is Q4_K, must be TQ2_0".to_owned()));
    assert_eq!(
        new(&[plane(2, 256), plane(2, 256), plane(1, 512)]),
        Err("plane 2 has 1 rows of 512, plane 0 has 2 of 256".to_owned())
    );

    let fold = |w: &PlaneSet<'_>| Kernels::best().pack_folded(w).map(|_| ()).map_err(said);
    let three = PlaneSet::new(&four[..3]).unwrap();
    assert_eq!(fold(&three), Err("planes to fold: 2 needed, 3 given".to_owned()));
    // Row 1, block 2: 1.5 is not three times 0.75.
    let [mut coarse, mut fine] = [0; 2].map(|_| vec![0; 2 * 3 * 66]);
    coarse[5 * 66 + 64..].copy_from_slice(&F16::from_f32(1.5).to_bits().to_le_bytes());
    fine[5 * 66 + 64..].copy_from_slice(&F16::from_f32(0.75).to_bits().to_le_bytes());
    let untied = [coarse, fine].map(|bytes| Rhs::from_vec(GgmlType::TQ2_0, bytes, 2, 768).unwrap());
    let untied = PlaneSet::new(untied).unwrap();
    assert_eq!(fold(&untied), Err("scales 1.5 and 0.75 are not tied, in block 2 of row 1".to_owned()));

    let mut y = [f32::NAN; 2];
    let run = |x: &[f32], y: &mut [f32]| {
        Kernels::best().matmul_planes(x, &untied, y, &mut Scratch::new()).map_err(said)
    };
    assert_eq!(
        run(&[0.0; 767], &mut y),
        Err("activations: 767 given, not a multiple of 768 per row".to_owned())
    );
    assert_eq!(run(&[0.0; 1536], &mut y), Err("output: 4 needed, 2 given".to_owned()));
    assert!(y.iter().all(|y| y.is_nan()), "nothing was written");
    // No rows at all are no error.
    let none = PlaneSet::new([plane(0, 256), plane(0, 256)]).unwrap();
    let packed = Kernels::best().pack_folded(&none).unwrap();
    assert_eq!(packed.matmul(&[0.0; 256], &mut [], &mut Scratch::new()), Ok(()));
}

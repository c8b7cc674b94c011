//! Planes against those of `golden/ptqtp`, which a script made from the formulas alone.

use std::path::Path;

use export_gguf::ptqtp::{
    Error, GROUP, Options, Quantized, quantize_matrix, reconstruct, reconstruct_reference, solve_group,
};
use ggml_blocks::formats::tq2_0::Tq2_0;
use ggml_blocks::simd::{Level, with_level};
use ggml_blocks::{Format, cast_blocks};
use gguf_format::GgmlType;

use crate::support::weights;

const FITS: [(&str, usize, bool); 5] =
    [("free1", 1, false), ("free2", 2, false), ("free3", 3, false), ("tied2", 2, true), ("tied3", 3, true)];

fn golden(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/ptqtp").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn groups() -> Vec<f32> {
    golden("groups.f32").as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

fn options(planes: usize, tie_scales: bool) -> Options {
    Options { tie_scales, ..Options::with_planes(planes) }
}

/// Rounds of each group in the fit of this column, and whether its scales came to rest.
fn rounds(column: usize) -> Vec<(u32, bool, String)> {
    let manifest = String::from_utf8(golden("MANIFEST")).unwrap();
    let line = |l: &str| {
        let words: Vec<&str> = l.strip_prefix("group ")?.split(' ').collect();
        let rounds: i32 = words[1 + column].parse().unwrap();
        Some((rounds.unsigned_abs(), rounds > 0, words[1 + FITS.len()..].join(" ")))
    };
    manifest.lines().filter_map(line).collect()
}

fn same_bytes(found: &Quantized, fit: &str, level: Level) {
    for (p, plane) in found.planes.iter().enumerate() {
        let bytes = golden(&format!("{fit}.ptqtp{p}"));
        let wanted: &[Tq2_0] = cast_blocks(&bytes).unwrap();
        assert_eq!(plane.len(), wanted.len());
        for (g, (found, wanted)) in plane.iter().zip(wanted).enumerate() {
            assert_eq!(
                (found.d.to_bits(), found.qs),
                (wanted.d.to_bits(), wanted.qs),
                "{fit}, plane {p}, group {g}, {level}"
            );
        }
    }
}

#[test]
fn planes_are_the_golden_ones_on_every_level() {
    let groups = groups();
    assert!(groups.len() >= 100 * GROUP);
    for (column, (fit, planes, tied)) in FITS.into_iter().enumerate() {
        for level in Level::supported() {
            let found = with_level(level, || in_order(&groups, &options(planes, tied))).unwrap();
            same_bytes(&found, fit, level);
            let rounds = rounds(column);
            assert_eq!(found.statistics.groups as usize, rounds.len());
            assert_eq!(found.statistics.rounds, rounds.iter().map(|r| u64::from(r.0)).sum::<u64>());
            assert_eq!(found.statistics.unconverged as usize, rounds.iter().filter(|r| !r.1).count());
        }
    }
}

/// All groups on this thread, for which a level holds, in parts that end within a batch of lanes.
fn in_order(groups: &[f32], options: &Options) -> Quantized {
    let mut all = quantize_matrix(&[], GROUP, options).unwrap();
    for part in groups.chunks(37 * GROUP) {
        let mut planes = vec![vec![EMPTY; part.len() / GROUP]; options.planes];
        let mut out: Vec<&mut [Tq2_0]> = planes.iter_mut().map(Vec::as_mut_slice).collect();
        all.statistics.add(&export_gguf::ptqtp::quantize_groups(part, options, &mut out).unwrap());
        for (all, part) in all.planes.iter_mut().zip(planes) {
            all.extend(part);
        }
    }
    all
}

const EMPTY: Tq2_0 = Tq2_0 { qs: [0xff; 64], d: ggml_blocks::F16::from_bits(0x7e00) };

#[test]
fn one_group_at_a_time_finds_the_same_scales() {
    let groups = groups();
    for (column, (fit, planes, tied)) in FITS.into_iter().enumerate() {
        let rounds = rounds(column);
        for (g, group) in groups.chunks(GROUP).enumerate() {
            let mut trits = [[9; 3]; GROUP];
            let found = solve_group(group, &options(planes, tied), &mut trits).unwrap();
            let (n, rested, name) = &rounds[g];
            assert_eq!((found.rounds, found.converged), (*n, *rested), "{fit}, {name}");
            for p in 0..planes {
                let bytes = golden(&format!("{fit}.ptqtp{p}"));
                let wanted = cast_blocks::<Tq2_0>(&bytes).unwrap()[g].d;
                let scale = ggml_blocks::F16::from_f32(found.scales[p].abs().min(65504.0));
                assert_eq!(scale.to_bits(), wanted.to_bits(), "{fit}, {name}, plane {p}");
            }
            for (w, t) in group.iter().zip(trits) {
                assert!(t[..planes].iter().all(|t| (-1..=1).contains(t)) && t[planes..] == [0; 3][planes..]);
                assert!(w.is_finite() || t == [0; 3], "{fit}, {name}: {w} has trits");
            }
        }
    }
}

/// Groups of several kinds and sizes, among them such as have many equally near levels.
fn many_groups() -> Vec<f32> {
    let mut w: Vec<f32> = weights(400 * GROUP).collect();
    for (g, group) in w.chunks_mut(GROUP).enumerate() {
        let scale = 2_f32.powi([0, -6, -30, -38, -45, -64, 20, 52, 64, 100][g % 10]);
        for (i, x) in group.iter_mut().enumerate() {
            let shape = [*x, *x * *x * *x, (*x * 9.0).round(), (*x * 26.0).round() / 2.0, x.signum() * 0.25];
            *x = shape[g / 10 % 5] * scale;
            if g % 7 == 3 && i % 50 == g % 50 {
                *x = [f32::NAN, f32::INFINITY, 0.0][i % 3];
            }
            if g % 11 == 5 && i == 77 {
                *x *= 3e4;
            }
        }
    }
    w
}

#[test]
fn side_by_side_is_one_after_the_other() {
    let w = many_groups();
    for (fit, planes, tied) in FITS {
        let options = options(planes, tied);
        for level in Level::supported() {
            let found = with_level(level, || in_order(&w, &options)).unwrap();
            let (mut rounds, mut trits) = (0, [[0; 3]; GROUP]);
            for (g, group) in w.chunks(GROUP).enumerate() {
                let alone = solve_group(group, &options, &mut trits).unwrap();
                rounds += u64::from(alone.rounds);
                for p in 0..planes {
                    let scale = ggml_blocks::F16::from_f32(alone.scales[p].abs().min(65504.0));
                    let block = found.planes[p][g].d;
                    assert_eq!(block.to_bits(), scale.to_bits(), "{fit}, group {g}, plane {p}, {level}");
                }
            }
            assert_eq!(found.statistics.rounds, rounds, "{fit}, {level}");
        }
    }
}

#[test]
fn threads_change_nothing() {
    let (rows, row_len) = (700, 512);
    let w: Vec<f32> = weights(rows * row_len).collect();
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| quantize_matrix(&w, row_len, &Options::default()).unwrap())
    };
    let one = run(1);
    for threads in [2, 5] {
        let more = run(threads);
        assert_eq!(one.statistics, more.statistics);
        for (a, b) in one.planes.iter().zip(&more.planes) {
            assert!(a.iter().zip(b).all(|(a, b)| a.d == b.d && a.qs == b.qs));
        }
    }
    let alone = quantize_matrix(&w[512 * 9..512 * 10], row_len, &Options::default()).unwrap();
    assert!(alone.planes[1].iter().zip(&one.planes[1][18..]).all(|(a, b)| a.d == b.d && a.qs == b.qs));
}

#[test]
fn the_error_falls_with_every_plane() {
    let w: Vec<f32> = weights(64 * 256).map(|x| x * x * x).collect();
    let error = |planes, tied| {
        let found = quantize_matrix(&w, 256, &options(planes, tied)).unwrap();
        let mut sum = vec![0.0; w.len()];
        let planes: Vec<&[Tq2_0]> = found.planes.iter().map(Vec::as_slice).collect();
        reconstruct(&planes, &mut sum).unwrap();
        let found = found.statistics.relative_error();
        assert!((relative(&w, &sum) - found).abs() < 1e-12, "what is counted is what is stored");
        found
    };
    let encoder = {
        let format = Format::of(GgmlType::TQ2_0).unwrap();
        let mut bytes = vec![0; format.row_bytes(w.len()).unwrap()];
        format.encode_rows(&w, 256, None, &mut bytes).unwrap();
        let mut stored = vec![0.0; w.len()];
        format.decode_rows(&bytes, 256, &mut stored).unwrap();
        relative(&w, &stored)
    };
    let ladder = [error(3, false), error(2, false), error(1, false), encoder];
    assert!(ladder.is_sorted() && ladder[0] < ladder[3] / 4.0, "{ladder:?}");
    assert!(error(3, true) < error(2, true) && error(2, false) < error(2, true));
}

fn relative(w: &[f32], stored: &[f32]) -> f64 {
    let (mut error, mut power) = (0.0, 0.0);
    for (&a, &b) in w.iter().zip(stored) {
        error += (f64::from(a) - f64::from(b)).powi(2);
        power += f64::from(a).powi(2);
    }
    (error / power).sqrt()
}

#[test]
fn other_groups_keep_their_scales_as_they_are() {
    let w: Vec<f32> = weights(16 * 384).collect();
    let mut out = vec![0.0; w.len()];
    let small = Options { group_len: 128, ..Options::default() };
    let found = reconstruct_reference(&w, 384, &small, &mut out).unwrap();
    assert_eq!(found.statistics.groups, 48);
    assert!((relative(&w, &out) - found.statistics.relative_error()).abs() < 1e-12);
    assert!(found.zero_fractions[0] > 0.0 && found.zero_fractions[2] == 0.0);
    let error = reconstruct_reference(&w, 384, &Options::default(), &mut out).unwrap_err();
    assert_eq!(error.to_string(), "384 weights per row, where 256 or whole multiples of it are wanted");
}

#[test]
fn senseless_options_are_named() {
    let ok = Options::default();
    let cases = [
        Options { planes: 0, ..ok },
        Options { planes: 4, ..ok },
        Options { planes: 1, tie_scales: true, ..ok },
        Options { group_len: 0, ..ok },
        Options { max_rounds: 0, ..ok },
        Options { tolerance: f32::NAN, ..ok },
        Options { ridge: 0.0, ..ok },
        Options { max_ridge: 1e-9, ..ok },
        Options { max_condition: 0.5, ..ok },
        Options { group_len: 128, ..ok },
    ];
    let error = |o: &Options| match quantize_matrix(&[0.0; 256], 256, o) {
        Err(Error::Option { option, .. }) => option,
        other => panic!("{other:?}"),
    };
    let names: Vec<&str> = cases.iter().map(error).collect();
    assert_eq!(
        names,
        [
            "planes",
            "planes",
            "tie_scales",
            "group_len",
            "max_rounds",
            "tolerance",
            "ridge",
            "max_ridge",
            "max_condition",
            "group_len"
        ]
    );
    assert!(matches!(quantize_matrix(&[0.0; 300], 256, &ok), Err(Error::Length { len: 300, .. })));
    assert!(matches!(quantize_matrix(&[], 0, &ok), Err(Error::Length { len: 0, .. })));
    assert!(solve_group(&[1.0], &ok, &mut []).is_err());
}

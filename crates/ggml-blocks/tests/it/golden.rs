//! Every codec against the bytes that ggml gave, which lie in `golden/` (see `docs/golden.md`), on
//! every SIMD level of this CPU.

use ggml_blocks::simd::{Level, with_level};
use ggml_blocks::{FORMATS, Format};
use gguf_format::{Importance, Kind};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

const KINDS: [&str; 6] = ["none", "uniform", "realistic", "zeros", "all-zero", "dominating"];

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden")
}

fn bytes(path: &str) -> Vec<u8> {
    std::fs::read(golden().join(path)).unwrap_or_else(|e| panic!("golden/{path}: {e}"))
}

fn floats(path: &str) -> Vec<f32> {
    bytes(path).as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

/// What the tests need of `golden/MANIFEST`.
struct Manifest {
    /// Name, row length, values.
    inputs: Vec<(String, usize, Vec<f32>)>,
    /// Format, importance, input, row: rows without a golden.
    left_out: HashSet<[String; 4]>,
    /// Format and importance that have inputs sensitive to a fused multiply-add.
    contraction: HashSet<[String; 2]>,
}

impl Manifest {
    fn read() -> Self {
        let text = String::from_utf8(bytes("MANIFEST")).expect("the manifest is text");
        let mut manifest = Self { inputs: Vec::new(), left_out: HashSet::new(), contraction: HashSet::new() };
        for line in text.lines() {
            let own = |s: &str| s.to_owned();
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["input", name, row_len] => {
                    let values = floats(&format!("inputs/{name}.f32"));
                    manifest.inputs.push((own(name), row_len.parse().unwrap(), values));
                }
                ["left-out", format, kind, input, row, ..] => {
                    manifest.left_out.insert([format, kind, input, row].map(own));
                }
                ["contraction", format, kind, rows] if !rows.is_empty() => {
                    manifest.contraction.insert([format, kind].map(own));
                }
                _ => {}
            }
        }
        assert!(!manifest.inputs.is_empty());
        manifest
    }
}

fn folder(format: &Format) -> String {
    format!("blocks/{}", format.name().to_lowercase())
}

/// Formats that must have goldens: every block format, and the 16-bit floats.
fn formats() -> impl Iterator<Item = &'static Format> {
    FORMATS.iter().filter(|f| {
        matches!(f.info().kind, Kind::Block | Kind::Activation) || ["F16", "BF16"].contains(&f.name())
    })
}

fn kinds(format: &Format) -> impl Iterator<Item = &'static str> {
    let importance = format.importance();
    KINDS.into_iter().filter(move |kind| match importance {
        Importance::Ignored => *kind == "none",
        Importance::Required => *kind != "none",
        _ => true,
    })
}

/// Encodes on one level and compares; `names[i]` says what row i is.
fn check_encoder(
    format: &Format,
    level: Level,
    values: &[f32],
    row_len: usize,
    weights: Option<&[f32]>,
    expect: &[u8],
    what: &str,
) -> Result<(), String> {
    let at = format!("{} {what}, {level}", format.name());
    let mut out = vec![0xa5; expect.len()];
    let outcome = with_level(level, || format.encode_rows(values, row_len, weights, &mut out));
    outcome.expect("the level is supported").map_err(|e| format!("{at}: {e}"))?;
    let size = format.block_bytes();
    // A block whose scale ggml's own validation refuses is not copied: ours has to pass it.
    let repaired =
        |ours: &[u8], ggmls: &[u8]| format.check_finite(ggmls).is_err() && format.check_finite(ours).is_ok();
    let bad: Vec<usize> = out
        .chunks(size)
        .zip(expect.chunks(size))
        .enumerate()
        .filter(|(_, (a, b))| a != b && !repaired(a, b))
        .map(|(n, _)| n)
        .collect();
    let Some(&first) = bad.first() else { return Ok(()) };
    Err(format!(
        "{at}: {} of {} blocks differ, first block {first} (row {}):\n  weights {:?}\n  ours {:02x?}\n  ggml {:02x?}",
        bad.len(),
        expect.len() / size,
        first * format.block_len() / row_len,
        &values[first * format.block_len()..][..format.block_len().min(32)],
        &out[first * size..][..size],
        &expect[first * size..][..size],
    ))
}

#[test]
fn encoders_give_ggmls_bytes() {
    let manifest = Manifest::read();
    let mut faults = Vec::new();
    for format in formats() {
        if !format.can_encode() {
            faults.push(format!("{}: no encoder", format.name()));
            continue;
        }
        for kind in kinds(format) {
            let weights = (kind != "none").then(|| floats(&format!("inputs/importance-{kind}.f32")));
            let golden = bytes(&format!("{}/{kind}.bin", folder(format)));
            let mut rest = &golden[..];
            for (input, row_len, values) in &manifest.inputs {
                let left_out = |row: usize| {
                    let key = [format.name(), kind, input, &row.to_string()].map(str::to_owned);
                    manifest.left_out.contains(&key)
                };
                let rows = values.chunks(*row_len).enumerate().filter(|(n, _)| !left_out(*n));
                let kept: Vec<f32> = rows.flat_map(|(_, row)| row.iter().copied()).collect();
                let (expect, tail) = rest.split_at(kept.len() / format.block_len() * format.block_bytes());
                rest = tail;
                let weights = weights.as_deref().map(|w| &w[..*row_len]);
                let what = format!("{kind} {input}");
                for level in Level::supported() {
                    faults
                        .extend(check_encoder(format, level, &kept, *row_len, weights, expect, &what).err());
                }
            }
            assert!(rest.is_empty(), "{} {kind}: {} bytes left", format.name(), rest.len());
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn encoders_fuse_nothing() {
    let manifest = Manifest::read();
    let mut faults = Vec::new();
    for format in formats().filter(|f| f.can_encode()) {
        for kind in kinds(format) {
            if !manifest.contraction.contains(&[format.name(), kind].map(str::to_owned)) {
                continue;
            }
            let weights = (kind != "none").then(|| floats(&format!("inputs/importance-{kind}.f32")));
            let at = format!("{}/contraction-{kind}", folder(format));
            let (values, expect) = (floats(&format!("{at}.f32")), bytes(&format!("{at}.bin")));
            let weights = weights.as_deref().map(|w| &w[..256]);
            for level in Level::supported() {
                faults.extend(check_encoder(format, level, &values, 256, weights, &expect, &at).err());
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn decoders_give_ggmls_values() {
    let mut faults = Vec::new();
    for format in formats() {
        let input = bytes(&format!("{}/decode.in", folder(format)));
        let expect = floats(&format!("{}/decode.f32", folder(format)));
        assert_eq!(input.len() / format.block_bytes() * format.block_len(), expect.len());
        for level in Level::supported() {
            let mut out = vec![0.0; expect.len()];
            let outcome = with_level(level, || format.decode_rows(&input, expect.len(), &mut out));
            outcome.expect("the level is supported").expect("the lengths fit");
            // ggml's NaNs are whatever its compiler made of them.
            let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
            let bad = out.iter().zip(&expect).position(|pair| !same(pair));
            if let Some(i) = bad {
                let (block, name) = (i / format.block_len(), format.name());
                faults
                    .push(format!("{name} {level}: block {block}, weight {i}: {} for {}", out[i], expect[i]));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

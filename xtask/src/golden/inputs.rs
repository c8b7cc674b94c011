//! What is encoded: weights, each row with a word on what it is for, and importance weights.

use super::minilm::MiniLm;
use super::rng::Rng;
use half::{bf16, f16};

/// Longest row of any input; importance weights are this long, and a shorter row takes the first.
pub(super) const LONGEST_ROW: usize = 1536;
/// Row length of the inputs that are not made of longer rows.
pub(super) const ROW: usize = 256;

/// Rows of one length.
pub(super) struct Input {
    pub(super) name: &'static str,
    pub(super) row_len: usize,
    pub(super) rows: Vec<(String, Vec<f32>)>,
}

impl Input {
    pub(super) fn values(&self) -> Vec<f32> {
        self.rows.iter().flat_map(|(_, values)| values.iter().copied()).collect()
    }
}

/// All shared inputs, in the order in which the goldens hold them.
pub(super) fn all(model: &MiniLm) -> Vec<Input> {
    vec![
        adversarial(),
        outliers(),
        ties(),
        scale_limits(),
        constant_noise(),
        gaussian(),
        heavy_tails(),
        minilm(model),
    ]
}

fn row(what: impl Into<String>, len: usize, value: impl FnMut(usize) -> f32) -> (String, Vec<f32>) {
    (what.into(), (0..len).map(value).collect())
}

fn alternate(i: usize) -> f32 {
    if i.is_multiple_of(2) { 1.0 } else { -1.0 }
}

fn adversarial() -> Input {
    let mut rng = Rng::new("adversarial");
    let rows = vec![
        row("ramp", ROW, |i| (i as f32 - 128.0) / 32.0),
        row("ramp down from 2", ROW, |i| 2.0 - i as f32 / 100.0),
        row("alternating", ROW, alternate),
        row("alternating and growing", ROW, |i| alternate(i) * i as f32 / 256.0),
        row("near zero", ROW, |_| rng.signed() * 1e-7),
        row("near zero, one value", ROW, |_| 1e-8),
        row("wide range", ROW, |i| alternate(i) * power(((i * 7) % 33) as i32 - 20)),
        row("all equal", ROW, |_| 0.75),
        row("all equal, negative", ROW, |_| -0.3),
        row("denormals", ROW, |i| f32::from_bits(i as u32 + 1) * alternate(i)),
        row("largest denormals", ROW, |i| f32::from_bits(0x007f_ffff - i as u32) * alternate(i)),
        row("random", ROW, |_| rng.signed()),
        row("random, all positive", ROW, |_| rng.unit() + 0.01),
        row("random, all negative", ROW, |_| -rng.unit() - 0.01),
        row("zeros", ROW, |_| 0.0),
        row("negative zeros", ROW, |_| -0.0),
        row("zeros of both signs", ROW, |i| alternate(i) * 0.0),
        row("zeros of both signs among values", ROW, |i| match i % 3 {
            0 => 0.0,
            1 => -0.0,
            _ => rng.signed(),
        }),
        row("one block of zeros among values", ROW, |i| if i / 32 == 3 { 0.0 } else { rng.signed() }),
    ];
    Input { name: "adversarial", row_len: ROW, rows }
}

fn outliers() -> Input {
    let mut rng = Rng::new("outliers");
    let mut rows = Vec::new();
    for (at, value) in [(0, 8.0), (255, -8.0), (100, 1e-3), (31, -3.0)] {
        rows.push(row(format!("{value} at {at} among zeros"), ROW, |i| if i == at { value } else { 0.0 }));
        rows.push(row(format!("{value} at {at} among noise of 0.02"), ROW, |i| {
            if i == at { value } else { rng.normal() * 0.02 }
        }));
    }
    rows.push(row("one in each 16, of either sign", ROW, |i| {
        if i % 16 == (i / 16) % 16 { alternate(i / 16) * 2.0 } else { rng.normal() * 0.1 }
    }));
    for sign in [1.0f32, -1.0] {
        rows.push(row(format!("two equal largest, the {sign} first"), ROW, |i| match i % 16 {
            5 => 2.0 * sign,
            11 => -2.0 * sign,
            _ => rng.signed(),
        }));
    }
    Input { name: "outliers", row_len: ROW, rows }
}

/// Levels that are whole or half when the largest value is n.
fn ties() -> Input {
    let mut rows = Vec::new();
    for n in [1usize, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 127, 128] {
        for (scale, sign) in [(1.0, 1.0), (0.015_625, -1.0)] {
            let span = 2 * n;
            rows.push(row(format!("halves up to {n}, times {}", scale * sign), ROW, |i| {
                let value = if i % 16 == 0 { n as f32 } else { (i % span) as f32 - n as f32 + 0.5 };
                value * scale * sign
            }));
        }
    }
    rows.push(row("halves from 0 to 15", ROW, |i| if i % 32 == 0 { 15.0 } else { (i % 30) as f32 * 0.5 }));
    rows.push(row("halves from 0 to 31", ROW, |i| if i % 32 == 0 { 31.0 } else { (i % 62) as f32 * 0.5 }));
    Input { name: "ties", row_len: ROW, rows }
}

/// Around the largest, smallest normal and smallest subnormal f16, and beyond them.
fn scale_limits() -> Input {
    let mut rng = Rng::new("scale limits");
    let mut rows = Vec::new();
    for e in [-100, -60, -40, -32, -28, -26, -25, -24, -23, -22, -20, -18, -16, -14, -12, -10, 8, 12, 14, 15]
    {
        rows.push(row(format!("random times 2^{e}"), ROW, |_| rng.signed() * power(e)));
    }
    for largest in [65504.0f32, 65519.0, 65520.0] {
        rows.push(row(format!("up to {largest}"), ROW, |i| {
            if i % 32 == 7 { largest } else { rng.signed() * largest }
        }));
    }
    for e in [17, 18, 19, 20, 22, 24, 60, 120] {
        rows.push(row(format!("random times 2^{e}"), ROW, |_| rng.signed() * power(e)));
    }
    Input { name: "scale-limits", row_len: ROW, rows }
}

fn constant_noise() -> Input {
    let mut rng = Rng::new("constant and noise");
    let mut rows = Vec::new();
    for c in [1.0f32, -1.0, 0.02, -0.02, -37.5] {
        for noise in [1e-2f32, 1e-4, 1e-6] {
            rows.push(row(format!("{c} and noise of {noise} times it"), ROW, |_| {
                c + c * rng.normal() * noise
            }));
        }
    }
    rows.push(row("1 or the next number below", ROW, |_| {
        if rng.signed() < 0.0 { 1.0 } else { 1.0f32.next_down() }
    }));
    rows.push(row("-1 or the next number above", ROW, |_| {
        if rng.signed() < 0.0 { -1.0 } else { (-1.0f32).next_up() }
    }));
    Input { name: "constant-noise", row_len: ROW, rows }
}

fn gaussian() -> Input {
    let mut rng = Rng::new("gaussian");
    let mut rows = Vec::new();
    for n in 0..2 {
        rows.push(row(format!("normal {n}"), 768, |_| rng.normal()));
        rows.push(row(format!("normal of 0.02, rounded to f16 {n}"), 768, |_| {
            round_f16(rng.normal() * 0.02)
        }));
        rows.push(row(format!("normal, rounded to bf16 {n}"), 768, |_| {
            bf16::from_f32(rng.normal()).to_f32()
        }));
    }
    Input { name: "gaussian", row_len: 768, rows }
}

fn heavy_tails() -> Input {
    let mut rng = Rng::new("heavy tails");
    let mut rows = Vec::new();
    for n in 0..3 {
        rows.push(row(format!("normal over uniform {n}"), 768, |_| rng.normal() / (rng.unit() + 1e-4)));
    }
    rows.push(row("cube of a normal", 768, |_| {
        let x = rng.normal();
        x * x * x * 0.02
    }));
    Input { name: "heavy-tails", row_len: 768, rows }
}

/// Rows of a real model, as they are and rounded to f16.
fn minilm(model: &MiniLm) -> Input {
    let mut rows = Vec::new();
    for (n, tensor) in MiniLm::TENSORS.iter().enumerate() {
        let at = n * 7 * LONGEST_ROW;
        let values = model.values(tensor, at, LONGEST_ROW);
        let rounded = values.iter().map(|v| round_f16(*v)).collect();
        rows.push((format!("{tensor} from element {at}"), values));
        rows.push((format!("{tensor} from element {at}, rounded to f16"), rounded));
    }
    Input { name: "minilm", row_len: LONGEST_ROW, rows }
}

/// Importance weights, `None` first: the kind's name, what it is, and [`LONGEST_ROW`] values.
pub(super) fn importances() -> Vec<(&'static str, &'static str, Option<Vec<f32>>)> {
    let mut rng = Rng::new("importance");
    let realistic: Vec<f32> = (0..LONGEST_ROW)
        .map(|_| {
            let x = rng.normal();
            (x * x + 0.05) / (rng.unit() * rng.unit() + 0.01)
        })
        .collect();
    let with_zeros = |i: usize, w: f32| if i % 5 == 1 || (i / 32) % 7 == 2 { 0.0 } else { w };
    let zeros = realistic.iter().enumerate().map(|(i, w)| with_zeros(i, *w)).collect();
    let dominating = (0..LONGEST_ROW).map(|i| if i == 37 { 1e4 } else { 1e-3 }).collect();
    vec![
        ("none", "no importance", None),
        ("uniform", "1 everywhere", Some(vec![1.0; LONGEST_ROW])),
        ("realistic", "positive and heavy-tailed, as squared activations are", Some(realistic)),
        ("zeros", "as realistic, a fifth of them 0 and each seventh group of 32", Some(zeros)),
        ("all-zero", "0 everywhere", Some(vec![0.0; LONGEST_ROW])),
        ("dominating", "0.001 everywhere but 10000 at 37", Some(dominating)),
    ]
}

/// 2^e of a normal number.
fn power(e: i32) -> f32 {
    f32::from_bits(((e + 127) as u32) << 23)
}

pub(super) fn round_f16(value: f32) -> f32 {
    f16::from_f32(value).to_f32()
}

//! Inputs whose bytes a fused multiply-add changes. Without one in the goldens, a stray `mul_add`
//! in an encoder could pass every test.

use super::encode::{Case, differing};
use super::inputs::{ROW, round_f16};
use super::minilm::MiniLm;
use super::rng::Rng;
use super::{Files, Oracles, folder, side_by_side};
use crate::oracle::{CONFIGS, le_bytes};
use crate::util::Outcome;
use std::collections::BTreeMap;

/// Rows kept for each case.
const KEPT: usize = 6;
/// Rows tried: real weights, then numbers of a normal distribution, then levels close to a tie.
const POOL: usize = 16_384;
const REAL: usize = 6_144;
const NORMAL: usize = 6_144;

/// Which rows of the pool stand in the committed goldens, for each format and importance.
pub(super) type Origins = BTreeMap<(String, String), Vec<usize>>;

/// The rows to search in. A row's number is all that the manifest has to say of it.
pub(super) struct Pool(Vec<f32>);

impl Pool {
    pub(super) fn new(model: &MiniLm) -> Self {
        let mut values: Vec<f32> =
            MiniLm::TENSORS[1..].iter().flat_map(|t| model.tensor(t)).map(round_f16).collect();
        values.truncate(REAL * ROW);
        let mut rng = Rng::new("contraction");
        values.resize_with((REAL + NORMAL) * ROW, || round_f16(rng.normal() * 0.02));
        for row in REAL + NORMAL..POOL {
            let levels = [2u64, 3, 7, 8, 15, 16, 31, 127][row % 8];
            let scale = rng.unit() + 0.5;
            let lift = if row.is_multiple_of(3) { 0.0 } else { rng.normal() };
            values.extend((0..ROW).map(|i| match i % 32 {
                0 => lift - scale * levels as f32,
                1 => lift + scale * levels as f32,
                _ => lift + scale * ((rng.next() % (2 * levels)) as f32 - levels as f32 + 0.5),
            }));
        }
        Self(values)
    }

    fn row(&self, n: usize) -> Option<&[f32]> {
        self.0.get(n * ROW..(n + 1) * ROW)
    }
}

/// Adds the rows found, or those known, with their bytes.
pub(super) fn add(
    oracles: &mut Oracles,
    case: &Case<'_>,
    pool: &Pool,
    known: Option<&Origins>,
    files: &mut Files,
    lines: &mut Vec<String>,
) -> Outcome {
    let (name, kind) = (case.info.name, case.kind);
    let rows = match known {
        None => search(oracles, case, pool)?,
        Some(known) => known.get(&(name.to_owned(), kind.to_owned())).cloned().unwrap_or_default(),
    };
    let list: Vec<String> = rows.iter().map(usize::to_string).collect();
    lines.push(format!("contraction {name} {kind} {}", list.join(",")));
    if rows.is_empty() {
        return Ok(());
    }
    let mut values = Vec::new();
    for n in rows {
        values.extend_from_slice(pool.row(n).ok_or(format!("the pool has no row {n}"))?);
    }
    let mut golden = None;
    for (config, oracle) in CONFIGS.iter().zip(&mut oracles.agreeing) {
        let bytes = oracle.quantize(case.info.id, &values, ROW, case.weights)??;
        if golden.get_or_insert_with(|| bytes.clone()) != &bytes {
            return Err(format!("{name} {kind}: {} disagrees with {}", config.name, CONFIGS[0].name));
        }
    }
    let at = format!("{}/contraction-{kind}", folder(case.info));
    files.insert(format!("{at}.f32"), le_bytes(&values));
    files.insert(format!("{at}.bin"), golden.unwrap_or_default());
    Ok(())
}

/// The first rows of the pool in which contraction changes a block.
fn search(oracles: &mut Oracles, case: &Case<'_>, pool: &Pool) -> Outcome<Vec<usize>> {
    let mut found = Vec::new();
    let size = case.row_bytes(ROW);
    for (n, part) in pool.0.chunks(512 * ROW).enumerate() {
        let Oracles { agreeing: [plain, ..], contracted } = oracles;
        let [plain, fused] =
            side_by_side([plain, contracted], |o| o.quantize(case.info.id, part, ROW, case.weights)?)?;
        for (row, (plain, fused)) in plain.chunks(size).zip(fused.chunks(size)).enumerate() {
            if found.len() < KEPT && differing(plain, fused, case.info.block_bytes as usize) > 0 {
                found.push(n * 512 + row);
            }
        }
        if found.len() == KEPT {
            break;
        }
    }
    Ok(found)
}

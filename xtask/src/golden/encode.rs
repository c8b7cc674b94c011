//! The encoders' goldens: every shared input under one kind of importance weights.

use super::inputs::Input;
use super::{Oracles, side_by_side};
use crate::oracle::{CONFIGS, Oracle};
use crate::util::Outcome;
use gguf_format::{GgmlType, Kind, TypeInfo};

/// One format under one kind of importance weights.
pub(super) struct Case<'a> {
    pub(super) info: &'static TypeInfo,
    pub(super) kind: &'a str,
    pub(super) weights: Option<&'a [f32]>,
}

impl Case<'_> {
    /// Bytes of one row.
    pub(super) fn row_bytes(&self, row_len: usize) -> usize {
        row_len / self.info.block_len as usize * self.info.block_bytes as usize
    }

    /// Encodes rows, one after another where ggml aborts on some of them.
    pub(super) fn rows(
        &self,
        oracle: &mut Oracle,
        values: &[f32],
        row_len: usize,
    ) -> Outcome<Vec<Result<Vec<u8>, String>>> {
        if values.is_empty() {
            return Ok(Vec::new());
        }
        match oracle.quantize(self.info.id, values, row_len, self.weights)? {
            Ok(bytes) => Ok(bytes.chunks(self.row_bytes(row_len)).map(|row| Ok(row.to_owned())).collect()),
            Err(_) => values
                .chunks(row_len)
                .map(|row| oracle.quantize(self.info.id, row, row_len, self.weights))
                .collect(),
        }
    }
}

/// The bytes of every row of every input that has a place in the goldens. The others go to the
/// manifest with the reason: ggml aborts, gives a scale that is no finite number, or gives other
/// bytes in another configuration.
pub(super) fn all(
    oracles: &mut Oracles,
    case: &Case<'_>,
    inputs: &[Input],
    lines: &mut Vec<String>,
) -> Outcome<Vec<u8>> {
    let mut golden = Vec::new();
    let (mut sensitive, mut blocks) = (0, 0);
    for input in inputs {
        let values = input.values();
        let Oracles { agreeing: [base, native, o1], contracted } = &mut *oracles;
        let [truth, other1, other2, fused] =
            side_by_side([&mut *base, native, o1, contracted], |o| case.rows(o, &values, input.row_len))?;
        let mut reasons: Vec<Option<String>> = Vec::new();
        for row in &truth {
            reasons.push(match row {
                Err(message) => Some(format!("ggml aborts: {}", tail(message))),
                Ok(bytes) if !finite(base, case.info, bytes, input.row_len)? => {
                    Some("scale not finite".to_owned())
                }
                Ok(_) => None,
            });
        }
        for (config, other) in CONFIGS[1..].iter().zip([other1, other2]) {
            for ((row, reason), truth) in other.iter().zip(&mut reasons).zip(&truth) {
                if reason.is_none() && row != truth {
                    *reason = Some(format!("{} disagrees with {}", config.name, CONFIGS[0].name));
                }
            }
        }
        for (n, ((row, reason), fused)) in truth.iter().zip(&reasons).zip(&fused).enumerate() {
            if let Some(reason) = reason {
                lines.push(format!("left-out {} {} {} {n} {reason}", case.info.name, case.kind, input.name));
            } else if let Ok(row) = row {
                golden.extend_from_slice(row);
                let size = case.info.block_bytes as usize;
                blocks += row.len() / size;
                sensitive += fused.as_ref().map_or(0, |f| differing(row, f, size));
            }
        }
    }
    lines.push(format!(
        "sensitive {} {} {sensitive} of {blocks} blocks of the shared inputs change with contraction",
        case.info.name, case.kind
    ));
    Ok(golden)
}

/// Blocks that are not the same.
pub(super) fn differing(a: &[u8], b: &[u8], block_bytes: usize) -> usize {
    a.chunks(block_bytes).zip(b.chunks(block_bytes)).filter(|(a, b)| a != b).count()
}

/// ggml's message without the path before it.
fn tail(message: &str) -> &str {
    message.rsplit('/').next().unwrap_or(message)
}

/// Whether an encoded row decodes to numbers. A plain cast may overflow: that is its result.
fn finite(oracle: &mut Oracle, info: &TypeInfo, bytes: &[u8], row_len: usize) -> Outcome<bool> {
    if info.kind == Kind::Float {
        return Ok(true);
    }
    // The sum that Q8_1 keeps beside its scale takes no part in decoding.
    let sums = info.id == GgmlType::Q8_1;
    let sum_is_finite = |block: &[u8]| half::f16::from_le_bytes([block[2], block[3]]).is_finite();
    if sums && !bytes.chunks(info.block_bytes as usize).all(sum_is_finite) {
        return Ok(false);
    }
    Ok(oracle.dequantize(info.id, bytes, row_len)?.iter().all(|v| v.is_finite()))
}

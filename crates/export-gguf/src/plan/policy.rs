//! The rules: which tensors transcode, and to what.
//!
//! Only matrices of weights do: names ending in `.weight` without `norm` in them, two or more
//! dimensions, stored as F32, F16 or BF16. A BERT model's type embedding stays, for llama.cpp could
//! not serve it otherwise. What is quantized already is quantized again only on
//! request.

use gguf_format::{GgmlType, Importance, Kind};

use super::obstacle::Obstacles;
use super::{Edit, Experts, MetaValue, Plan, Request, Step, Weighting, Why};
use crate::Error;
use crate::imatrix::Imatrix;
use crate::mix::FileType;
use crate::source::Tensor;

/// The key of a file's type.
pub(crate) const FILE_TYPE: &str = "general.file_type";
/// The key of the version of the quantization formats.
pub(crate) const QUANTIZATION_VERSION: &str = "general.quantization_version";
/// ggml's number for today's formats.
pub(crate) const GGML_QNT_VERSION: u32 = 2;

/// Decides for every tensor of a source. With an importance matrix, encoders that take one use the entry
/// of each tensor's name.
///
/// # Errors
/// When tensors would have to be quantized a second time, or cannot be decoded; when a type needs importance
/// and there is none, or the matrix was made for another shape. All such tensors are named.
pub fn plan(tensors: &[Tensor], request: Request, imatrix: Option<&Imatrix>) -> Result<Plan, Error> {
    let mut obstacles = Obstacles::default();
    let mut steps = Vec::with_capacity(tensors.len());
    for (source, t) in tensors.iter().enumerate() {
        let (to, why) = decide(t, request);
        let transcodes = to != t.ty;
        if transcodes {
            obstacles.meet(t, request.requantize || why == Why::Experts);
        }
        let bytes_after = if transcodes { transcoded_bytes(t, to)? } else { t.bytes };
        steps.push(Step {
            source,
            name: t.name.clone(),
            dims: t.dims.clone(),
            from: t.ty,
            to,
            bytes_before: t.bytes,
            bytes_after,
            why,
            weighting: Weighting::None,
        });
    }
    obstacles
        .check("copy it verbatim (no --dtype), name a type for the experts alone (--experts-dtype), or insist with --allow-requantize")?;
    weigh(&mut steps, imatrix)?;
    let keys = changed_keys(&steps);
    Ok(Plan { steps, keys, ..Plan::default() })
}

/// The type a tensor gets, and why.
fn decide(t: &Tensor, request: Request) -> (GgmlType, Why) {
    let experts = if t.name.ends_with("_exps.weight") { request.experts } else { Experts::Follow };
    let (to, why) = match (experts, request.dtype) {
        (Experts::To(to), _) => (to, Why::Experts),
        (Experts::Follow, Some(to)) => (to, Why::Dtype),
        (Experts::Keep, _) | (Experts::Follow, None) => return (t.ty, Why::NotAsked),
    };
    let kept = |why| (t.ty, why);
    if !t.name.ends_with(".weight") {
        return kept(Why::NotWeight);
    }
    if t.name.contains("norm") {
        return kept(Why::Norm);
    }
    if t.dims.len() < 2 {
        return kept(Why::Vector);
    }
    if t.ty == to {
        return kept(Why::Already);
    }
    if t.name == "token_types.weight" && to != GgmlType::F32 {
        return kept(Why::Added);
    }
    if t.ty.info().is_some_and(|i| i.kind == Kind::Int) {
        return kept(Why::Integers);
    }
    let block = to.info().map_or(1, |i| i.block_len);
    if !t.row_len().is_multiple_of(u64::from(block.max(1))) {
        return kept(Why::Indivisible(t.row_len(), block));
    }
    (to, why)
}

/// Finds each step's importance.
pub(crate) fn weigh(steps: &mut [Step], imatrix: Option<&Imatrix>) -> Result<(), Error> {
    let mut missing = Vec::new();
    for step in steps.iter_mut().filter(|s| s.from != s.to) {
        let takes = step.to.info().map_or(Importance::Ignored, |t| t.importance);
        if takes == Importance::Ignored {
            continue;
        }
        if let Some(imatrix) = imatrix.filter(|m| m.contains(&step.name)) {
            fits(imatrix, &step.name, &step.dims)?;
            step.weighting = Weighting::Entry(step.name.clone());
        } else if takes == Importance::Required {
            missing.push((step.name.as_str(), step.to));
        }
    }
    let Some(&(_, ty)) = missing.first() else { return Ok(()) };
    let names: Vec<&str> = missing.iter().map(|&(name, _)| name).collect();
    Err(Error::Refused(match imatrix {
        None => format!("{ty} needs an importance matrix: give one with --imatrix, or choose another type"),
        Some(_) => format!("{ty} needs importance, and the matrix has none for {}", names.join(", ")),
    }))
}

/// The longest row that is quantized with importance, in elements: such a row is taken whole, as some
/// encoders look at its mean square, so that this bounds memory.
const LONGEST_WEIGHED_ROW: u64 = 1 << 24;

/// Whether the rows of `name` are short enough to be quantized with importance.
pub(crate) fn may_weigh(name: &str, row_len: u64) -> Result<(), Error> {
    if row_len <= LONGEST_WEIGHED_ROW {
        return Ok(());
    }
    Err(Error::tensor(
        name,
        format!(
            "rows of {row_len} are too long to be quantized with importance, {LONGEST_WEIGHED_ROW} is the most"
        ),
    ))
}

/// Whether the entry of `name` has a value for each input channel of each matrix of a tensor of `dims`.
pub(crate) fn fits(imatrix: &Imatrix, name: &str, dims: &[u64]) -> Result<(), Error> {
    let row_len = dims.first().copied().unwrap_or(1);
    may_weigh(name, row_len)?;
    let experts: u64 = dims.iter().skip(2).product();
    let have = imatrix.values_len(name).unwrap_or(0) as u64;
    if row_len.checked_mul(experts) == Some(have) {
        return Ok(());
    }
    let each = if experts == 1 { String::new() } else { format!(" of {experts} matrices") };
    Err(Error::tensor(
        name,
        format!(
            "the importance matrix has {have} values for rows of {row_len}{each}; it was made for another model"
        ),
    ))
}

fn transcoded_bytes(t: &Tensor, to: GgmlType) -> Result<u64, Error> {
    to.row_bytes(t.elements()).ok_or_else(|| Error::tensor(&t.name, format!("{to} would exceed 2^64 bytes")))
}

/// `general.file_type` and `general.quantization_version`, once anything is transcoded.
fn changed_keys(steps: &[Step]) -> Vec<Edit> {
    let by = |why: &Why| steps.iter().find(|s| s.why == *why).map(|s| s.to);
    by(&Why::Dtype).or_else(|| by(&Why::Experts)).map_or_else(Vec::new, keys_of)
}

/// The keys of a file whose weights have become `to`.
pub(crate) fn keys_of(to: GgmlType) -> Vec<Edit> {
    let mut keys = Vec::new();
    if let Some(number) = uniform_file_type(to) {
        keys.push(Edit::Set(FILE_TYPE.into(), MetaValue::U32(number)));
    }
    keys.push(Edit::Set(QUANTIZATION_VERSION.into(), MetaValue::U32(GGML_QNT_VERSION)));
    keys
}

/// The `general.file_type` of a file whose weights all have one type: the file type of that name,
/// or the small mix, which is the uniform one.
pub(super) fn uniform_file_type(ty: GgmlType) -> Option<u32> {
    // No mix has this default, so llama-quantize's list ends without it.
    const MOSTLY_NVFP4: u32 = 39;
    let named = |name: &str| FileType::ALL.iter().find(|f| f.name() == name).map(|f| f.id());
    let name = ty.name()?;
    match ty {
        GgmlType::NVFP4 => Some(MOSTLY_NVFP4),
        _ => named(name).or_else(|| named(&format!("{name}_S"))).or_else(|| named(&format!("{name}_MOE"))),
    }
}

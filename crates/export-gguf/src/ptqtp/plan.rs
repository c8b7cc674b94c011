//! Which tensors become planes.

use gguf_format::{GgmlType, Gguf, Kind, MAX_GGML_NAME};

use super::sets::{Entry, Sets, TIE_KEY, VERSION, VERSION_KEY, parse_plane_name, plane_name};
use super::{Choice, GROUP, Options};
use crate::Error;
use crate::plan::{Edit, MetaValue, Plan, Step, Weighting, Why};
use crate::source::Tensor;

/// What to decompose, and how.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// How many planes, tied or not. The group length is that of the blocks.
    pub options: Options,
    /// If not empty: only tensors in whose name one of these occurs, embeddings and output matrix among
    /// them.
    pub include: Vec<String>,
    /// No tensor in whose name one of these occurs.
    pub exclude: Vec<String>,
}

/// The sets among the tensors of a source whose metadata is `gguf`.
#[must_use]
pub fn sets(gguf: &Gguf<'_>, tensors: &[Tensor]) -> Sets {
    let entries = tensors.iter().map(|t| Entry { name: &t.name, dims: &t.dims, ty: t.ty, bytes: t.bytes });
    Sets::find(gguf, entries)
}

/// Decides for every tensor of a model. Planes take the place of their tensor; planes that are there
/// already stay as they are.
///
/// # Errors
/// [`Error::Refused`] when an option makes no sense, what is to be included or excluded occurs in no name, or the model has planes of a version that is not
/// known here.
pub fn plan(tensors: &[Tensor], gguf: &Gguf<'_>, request: &Request) -> Result<Plan, Error> {
    let Request { options, .. } = request;
    options.check_packable().map_err(|e| Error::Refused(e.to_string()))?;
    let present = sets(gguf, tensors);
    if present.newer {
        return Err(Error::Refused(present.faults.join("; ")));
    }
    for (flag, parts) in [("include", &request.include), ("exclude", &request.exclude)] {
        if let Some(part) = parts.iter().find(|part| !tensors.iter().any(|t| t.name.contains(part.as_str())))
        {
            return Err(Error::Refused(format!("--ptqtp-{flag} {part}: it occurs in no tensor's name")));
        }
    }
    let has_planes = |name: &str| tensors.iter().any(|t| t.name == plane_name(name, 0));
    let mut plan = Plan::default();
    for (source, t) in tensors.iter().enumerate() {
        let step = |name, to, bytes_before, bytes_after, why| Step {
            source,
            name,
            dims: t.dims.clone(),
            from: t.ty,
            to,
            bytes_before,
            bytes_after,
            why,
            weighting: Weighting::None,
        };
        let kept = why_kept(t, request);
        if let Some(why) = kept.or_else(|| has_planes(&t.name).then_some(Why::Trits(Choice::HasPlanes))) {
            plan.steps.push(step(t.name.clone(), t.ty, t.bytes, t.bytes, why));
            continue;
        }
        let (of, tied, to) = (options.planes, options.tie_scales, GgmlType::TQ2_0);
        let too_large = || Error::tensor(&t.name, format!("{to} would exceed 2^64 bytes"));
        let bytes = to.row_bytes(t.elements()).ok_or_else(too_large)?;
        for index in 0..of {
            let why = Why::Trits(Choice::Plane { index, of, tied });
            let before = if index == 0 { t.bytes } else { 0 };
            plan.steps.push(step(plane_name(&t.name, index), to, before, bytes, why));
        }
    }
    if plan.steps.iter().any(|s| matches!(s.why, Why::Trits(Choice::Plane { .. }))) {
        plan.keys = keys(gguf, &present, options.tie_scales);
    }
    Ok(plan)
}

/// The keys of a file to which planes were added.
fn keys(gguf: &Gguf<'_>, present: &Sets, tied: bool) -> Vec<Edit> {
    let one = MetaValue::U32(1);
    let mut keys = vec![Edit::Set(VERSION_KEY.into(), MetaValue::U32(VERSION))];
    if tied && (present.tied || present.sets.is_empty()) {
        keys.push(Edit::Set(TIE_KEY.into(), one));
    } else if gguf.get(TIE_KEY).is_some() {
        keys.push(Edit::Remove(TIE_KEY.into()));
    }
    keys
}

/// Why a tensor is left as it is; `None` if it is to be decomposed.
fn why_kept(t: &Tensor, request: &Request) -> Option<Why> {
    let trits = |choice| Some(Why::Trits(choice));
    let named = |list: &[String]| list.iter().any(|part| t.name.contains(part.as_str()));
    if parse_plane_name(&t.name).is_some() {
        return trits(Choice::IsPlane);
    }
    if !t.name.ends_with(".weight") {
        return Some(Why::NotWeight);
    }
    if t.name.contains("norm") {
        return Some(Why::Norm);
    }
    if t.name == "token_types.weight" {
        return Some(Why::Added);
    }
    match t.dims.len() {
        0 | 1 => return Some(Why::Vector),
        2 => {}
        3 if t.name.ends_with("_exps.weight") => {}
        _ => return trits(Choice::Shape),
    }
    match t.ty {
        GgmlType::TQ1_0 | GgmlType::TQ2_0 => return trits(Choice::Ternary),
        ty if ty.info().is_some_and(|i| i.kind == Kind::Int) => return Some(Why::Integers),
        _ if !t.decodable => return trits(Choice::Undecodable),
        _ => {}
    }
    if !t.row_len().is_multiple_of(GROUP as u64) || t.row_len() == 0 {
        return Some(Why::Indivisible(t.row_len(), GROUP as u32));
    }
    if named(&request.exclude) {
        return trits(Choice::Excluded);
    }
    if request.include.is_empty() {
        if t.name.contains("token_embd") || t.name == "output.weight" {
            return trits(Choice::Ends);
        }
    } else if !named(&request.include) {
        return trits(Choice::NotIncluded);
    }
    if plane_name(&t.name, 0).len() as u64 > MAX_GGML_NAME {
        return trits(Choice::LongName);
    }
    None
}

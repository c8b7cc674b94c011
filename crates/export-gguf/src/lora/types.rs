//! What a merge asks of types: values that were quantized change only where that was asked for.

use std::collections::HashSet;

use gguf_format::{GgmlType, Importance, Kind};

use super::merged::MergedSource;
use crate::Error;
use crate::imatrix::Imatrix;
use crate::plan::{Plan, Weighting, Why, fits, targets};
use crate::source::Source;

/// What the caller asked for besides merging.
#[derive(Debug, Clone, Copy)]
pub struct Conversion {
    /// Types were named: by `--dtype` or by a mix.
    pub named: bool,
    /// What is quantized may be quantized again.
    pub requantize: bool,
}

/// Refuses to merge into quantized tensors unless a type was named and quantizing again was allowed.
///
/// # Errors
/// Names all such tensors.
pub fn check_types(source: &MergedSource<'_>, conversion: Conversion) -> Result<(), Error> {
    if conversion.named && conversion.requantize {
        return Ok(());
    }
    let quantized: Vec<String> = source
        .tensors()
        .iter()
        .enumerate()
        .filter(|(i, t)| source.is_merged(*i) && t.ty.info().is_some_and(|i| i.kind == Kind::Block))
        .map(|(_, t)| format!("{} ({})", t.name, t.ty))
        .collect();
    if quantized.is_empty() {
        return Ok(());
    }
    Err(Error::Refused(format!(
        "the base is quantized, and writing merged values back would quantize them again: {}; merge into the F16, \
         BF16 or F32 file, or name the type to write (--dtype or --mix) and insist with --allow-requantize",
        quantized.join(", ")
    )))
}

/// Says in the plan which tensors are merged without a change of type, and finds what their encoders weigh
/// errors with.
///
/// # Errors
/// When such a tensor's type has no encoder, or one that needs importance and there is none; or when the plan
/// leaves out a tensor that an adapter changes.
pub fn mark(plan: &mut Plan, source: &MergedSource<'_>, imatrix: Option<&Imatrix>) -> Result<(), Error> {
    let written: HashSet<usize> = plan.steps.iter().map(|s| s.source).collect();
    if let Some(lost) = source.merges().find(|m| !written.contains(&m.tensor)) {
        let name = &source.tensors()[lost.tensor].name;
        return Err(Error::tensor(name, "an adapter changes it, and it is left out (--prune-layers)"));
    }
    for step in plan.steps.iter_mut().filter(|s| s.from == s.to && source.is_merged(s.source)) {
        step.why = Why::Merged;
        if !targets().any(|t| t == step.to) {
            return Err(Error::tensor(
                &step.name,
                format!("is merged, and {} has no encoder to write it back; name a type for it", step.to),
            ));
        }
        let stored = &source.tensors()[step.source].name;
        let takes = |ty: GgmlType| ty.info().map_or(Importance::Ignored, |i| i.importance);
        if takes(step.to) == Importance::Ignored {
            continue;
        }
        if let Some(imatrix) = imatrix.filter(|m| m.contains(stored)) {
            fits(imatrix, stored, &step.dims)?;
            step.weighting = Weighting::Entry(stored.clone());
        } else if takes(step.to) == Importance::Required {
            return Err(Error::tensor(
                &step.name,
                format!("is merged, and {} cannot be written back without importance (--imatrix)", step.to),
            ));
        }
    }
    Ok(())
}

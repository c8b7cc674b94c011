//! From a source and a mix to a [`Plan`]: the one whose file is llama-quantize's, byte for byte.

use std::collections::HashSet;
use std::path::Path;

use gguf_format::{GgmlType, Gguf, Importance};

use super::guess::guessed_file_type;
use super::policy::{Choice, HyperParameters, Options, Override, Reason, Subject, assign, processing_order};
use super::prune::Pruning;
use crate::Error;
use crate::imatrix::Imatrix;
use crate::plan::{
    Edit, FILE_TYPE, GGML_QNT_VERSION, MetaValue, Obstacles, Plan, QUANTIZATION_VERSION, Step, Weighting,
    Why, fits, may_weigh,
};
use crate::source::{SPLIT_KEYS, Source, Tensor};

/// What to do about tensors that an importance matrix does not know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Missing {
    /// As llama-quantize: they go without, unless their type cannot.
    #[default]
    AsLlama,
    /// Refuse the model, naming all of them.
    Refuse,
    /// All their input channels count the same.
    Uniform,
    /// They get this type instead.
    Type(GgmlType),
}

/// The order of tensors in the output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// llama-quantize's: by layer, then by name.
    #[default]
    Processing,
    /// As in the source.
    Source,
}

/// Everything that decides what a mix becomes.
#[derive(Debug, Clone)]
pub struct Request {
    /// What decides types.
    pub options: Options,
    /// `COPY`: keep all types, only write the file anew.
    pub copy: bool,
    /// Decode tensors that are quantized already and quantize them again.
    pub allow_requantize: bool,
    /// About tensors that the importance matrix lacks.
    pub missing: Missing,
    /// What to write into `quantize.imatrix.file`; `None` leaves the key out.
    pub imatrix_name: Option<String>,
    /// The order of the output.
    pub order: Order,
    /// Cut the output where the source's parts are cut.
    pub keep_split: bool,
    /// Blocks to leave out.
    pub prune: Vec<u32>,
    /// Metadata to override, in order.
    pub overrides: Vec<(String, MetaValue)>,
}

impl Request {
    /// Nothing but the mix.
    #[must_use]
    pub const fn new(options: Options) -> Self {
        Self {
            options,
            copy: false,
            allow_requantize: false,
            missing: Missing::AsLlama,
            imatrix_name: None,
            order: Order::Processing,
            keep_split: false,
            prune: Vec::new(),
            overrides: Vec::new(),
        }
    }
}

/// A tensor that stays, with the name it gets.
struct Kept<'a> {
    source: usize,
    tensor: &'a Tensor,
    name: String,
    /// The dimensions without trailing ones, as ggml writes them.
    dims: Vec<u64>,
}

/// Plans a mix. `gguf` is the source's metadata.
///
/// # Errors
/// What llama-quantize would stop at, found before any work starts and with all tensors named: types that
/// need importance and have none, tensors that are quantized already, rows that fit no block.
pub fn plan(
    source: &dyn Source,
    gguf: &Gguf<'_>,
    request: &Request,
    imatrix: Option<&Imatrix>,
) -> Result<Plan, Error> {
    let options = Options { importance: imatrix.is_some(), ..request.options.clone() };
    let mut pruning = Pruning::new(&request.prune);
    let kept = kept(source, request, &mut pruning);
    let hyper = hyper_parameters(gguf, &request.overrides)?;
    let subjects: Vec<Subject<'_>> =
        kept.iter().map(|k| Subject { name: &k.name, dims: &k.dims, ty: k.tensor.ty }).collect();
    let choices = if request.copy {
        subjects.iter().map(|s| verbatim(s.ty)).collect()
    } else {
        assign(&subjects, &hyper, &options).map_err(|e| Error::Refused(e.to_string()))?
    };
    let mut steps = Vec::with_capacity(kept.len());
    let mut problems = Problems::default();
    for (k, choice) in kept.iter().zip(choices) {
        steps.push(step(k, choice, request, imatrix, &mut problems)?);
    }
    problems.check(imatrix.is_some())?;
    let notes = unused(&options.overrides, &steps);
    let parts = request.keep_split.then(|| parts(source, &steps));
    if request.order == Order::Source {
        steps.sort_by_key(|s| s.source);
    }
    let file_type = if request.copy { guessed_file_type(gguf, &subjects) } else { options.file_type.id() };
    let mut keys = vec![
        Edit::Append(QUANTIZATION_VERSION.into(), MetaValue::U32(GGML_QNT_VERSION)),
        Edit::Append(FILE_TYPE.into(), MetaValue::U32(file_type)),
    ];
    let there = SPLIT_KEYS.into_iter().filter(|key| gguf.get(key).is_some());
    keys.extend(there.map(|key| Edit::Remove(key.into())));
    keys.extend(request.overrides.iter().map(|(k, v)| Edit::Append(k.clone(), v.clone())));
    keys.extend(imatrix.into_iter().flat_map(|m| provenance(m, request.imatrix_name.as_deref())));
    pruning.check()?;
    if let Some(count) = pruning.block_count() {
        keys.push(Edit::Append(format!("{}.block_count", hyper.architecture), MetaValue::U32(count)));
    }
    Ok(Plan { steps, keys, parts, notes })
}

/// A note on each pattern that decided about no tensor. What stands after the same pattern cannot.
fn unused(overrides: &[Override], steps: &[Step]) -> Vec<String> {
    let mut decided: HashSet<&str> = steps
        .iter()
        .filter_map(|s| match &s.why {
            Why::Mix(Choice { reason: Reason::Override(pattern), .. }) => Some(pattern.as_str()),
            _ => None,
        })
        .collect();
    let unused = overrides.iter().filter(|o| !decided.remove(o.pattern.as_str()));
    let note = |o: &Override| {
        format!("--tensor-type '{}={}' decides about no tensor", o.pattern.as_str().escape_debug(), o.ty)
    };
    unused.map(note).collect()
}

/// The tensors that stay, in the order in which the rules count them.
fn kept<'a>(source: &'a dyn Source, request: &Request, pruning: &mut Pruning) -> Vec<Kept<'a>> {
    let tensors = source.tensors();
    let names: Vec<&str> = tensors.iter().map(|t| t.name.as_str()).collect();
    let mut kept: Vec<Kept<'_>> = processing_order(&names)
        .into_iter()
        .filter_map(|i| {
            let tensor = &tensors[i];
            let rank = tensor.dims.iter().rposition(|&d| d != 1).map_or(1, |last| last + 1);
            let dims = tensor.dims.get(..rank).map_or_else(|| vec![1], <[u64]>::to_vec);
            Some(Kept { source: i, tensor, name: pruning.rename(&tensor.name)?, dims })
        })
        .collect();
    if request.keep_split {
        kept.sort_by_key(|k| (source.part(k.source), k.source));
    }
    kept
}

fn hyper_parameters(gguf: &Gguf<'_>, overrides: &[(String, MetaValue)]) -> Result<HyperParameters, Error> {
    let Some(mut hyper) = HyperParameters::from_metadata(gguf) else {
        return Err(Error::Refused(
            "a mix goes by the architecture, and the file has no key `general.architecture`; use --dtype"
                .into(),
        ));
    };
    for (key, value) in overrides {
        let (Some(key), MetaValue::U32(n)) = (key.strip_prefix(&format!("{}.", hyper.architecture)), value)
        else {
            continue;
        };
        match key {
            "block_count" => hyper.layers = *n,
            "expert_count" => hyper.experts = *n,
            "attention.head_count" => hyper.heads = *n,
            "attention.head_count_kv" => hyper.heads_kv = *n,
            _ => {}
        }
    }
    Ok(hyper)
}

fn verbatim(ty: GgmlType) -> Choice {
    Choice { ty, reason: Reason::Copy, instead_of: None, needs_importance: false }
}

/// Tensors that stand in the way, gathered so that all are named at once.
#[derive(Default)]
struct Problems {
    obstacles: Obstacles,
    without_importance: Vec<String>,
}

impl Problems {
    fn check(self, has_imatrix: bool) -> Result<(), Error> {
        self.obstacles.check("or insist with --allow-requantize")?;
        if !self.without_importance.is_empty() {
            let names = self.without_importance.join(", ");
            return Err(Error::Refused(if has_imatrix {
                format!("no importance in the matrix (see --imatrix-missing) for {names}")
            } else {
                format!("an importance matrix is needed (give one with --imatrix) for {names}")
            }));
        }
        Ok(())
    }
}

fn step(
    k: &Kept<'_>,
    mut choice: Choice,
    request: &Request,
    imatrix: Option<&Imatrix>,
    problems: &mut Problems,
) -> Result<Step, Error> {
    let t = k.tensor;
    let mut weighting = Weighting::None;
    if choice.ty != t.ty {
        let exempt =
            matches!(k.name.as_str(), "token_embd.weight" | "per_layer_token_embd.weight" | "output.weight");
        // The matrix knows tensors by the names they had before pruning.
        let known = imatrix.filter(|m| m.contains(&t.name));
        let fit = known.map(|m| fits(m, &t.name, &t.dims)).transpose();
        weighting = match fit {
            Ok(Some(())) => Weighting::Entry(t.name.clone()),
            Err(error) if !exempt => return Err(error),
            _ => Weighting::None,
        };
        let takes = |ty: GgmlType| ty.info().map_or(Importance::Ignored, |i| i.importance);
        let wants = choice.needs_importance || takes(choice.ty) == Importance::Required;
        if weighting == Weighting::None && (wants || (imatrix.is_some() && !exempt)) {
            match request.missing {
                Missing::Uniform if takes(choice.ty) != Importance::Ignored => {
                    may_weigh(&k.name, t.row_len())?;
                    weighting = Weighting::Uniform;
                }
                Missing::Type(ty) => choice = Choice { ty, reason: Reason::ImportanceMissing, ..choice },
                Missing::Refuse => problems.without_importance.push(k.name.escape_debug().to_string()),
                Missing::AsLlama if wants => {
                    problems.without_importance.push(format!("{} ({})", k.name.escape_debug(), choice.ty));
                }
                Missing::AsLlama | Missing::Uniform => {}
            }
        }
    }
    if choice.ty != t.ty {
        problems.obstacles.meet(t, request.allow_requantize);
    }
    let bytes_after = if choice.ty == t.ty { Some(t.bytes) } else { choice.ty.row_bytes(t.elements()) };
    let Some(bytes_after) =
        bytes_after.filter(|_| choice.ty == t.ty || choice.ty.row_bytes(t.row_len()).is_some())
    else {
        return Err(Error::tensor(
            &k.name,
            format!(
                "rows of {} do not divide into blocks of {}; choose another type",
                t.row_len(),
                choice.ty
            ),
        ));
    };
    Ok(Step {
        source: k.source,
        name: k.name.clone(),
        dims: k.dims.clone(),
        from: t.ty,
        to: choice.ty,
        bytes_before: t.bytes,
        bytes_after,
        why: Why::Mix(choice),
        weighting,
    })
}

/// How many steps each part of the source has, in the parts' order.
fn parts(source: &dyn Source, steps: &[Step]) -> Vec<usize> {
    let mut counts = Vec::new();
    for step in steps {
        let part = source.part(step.source);
        counts.resize(counts.len().max(part + 1), 0);
        counts[part] += 1;
    }
    counts
}

/// The keys that say which importance matrix was used. llama-quantize cuts strings after 127 bytes.
fn provenance(imatrix: &Imatrix, name: Option<&str>) -> Vec<Edit> {
    let text = |key: &str, value: &str| {
        let mut end = value.len().min(127);
        // Cutting inside a character would make the value unreadable; llama-quantize does.
        while !value.is_char_boundary(end) {
            end -= 1;
        }
        Edit::Append(key.into(), MetaValue::String(value[..end].into()))
    };
    let number = |key: &str, value: u32| Edit::Append(key.into(), MetaValue::U32(value));
    let mut keys = Vec::new();
    keys.extend(name.map(|n| text("quantize.imatrix.file", n)));
    keys.extend(imatrix.datasets().first().map(|d| text("quantize.imatrix.dataset", d)));
    keys.push(number("quantize.imatrix.entries_count", u32::try_from(imatrix.len()).unwrap_or(u32::MAX)));
    keys.extend((imatrix.chunks() > 0).then(|| number("quantize.imatrix.chunks_count", imatrix.chunks())));
    keys
}

/// The path as typed, which is what llama-quantize records.
#[must_use]
pub fn recorded_name(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

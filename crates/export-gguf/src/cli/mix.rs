//! The options of llama-quantize, under their names.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use fancy_regex::Regex;
use gguf_format::GgmlType;

use super::dtype::parse_type;
use crate::Error;
use crate::imatrix::Imatrix;
use crate::mix::{self, FileType, Missing, Options, Override};
use crate::plan::MetaValue;

/// What `--mix` cannot stand beside. Its options say so too: clap drops a requirement that a conflict has made
/// impossible, and they would be ignored.
const OTHERS: [&str; 3] = ["dtype", "experts_dtype", "from_ptqtp"];

/// The longest `--tensor-type-file`, in bytes.
const MOST_PATTERNS: u64 = 1 << 20;

/// What decides types beyond `--dtype`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Mixes, as llama-quantize makes them")]
pub struct MixArgs {
    /// Choose a type per tensor as llama-quantize does: Q4_K_M, IQ4_XS, ... or COPY
    ///
    /// The file is the one that llama-quantize writes, byte for byte. docs/quantize.md says which tensor
    /// gets what.
    ///
    /// Example: `export-gguf --from-gguf in-f16.gguf --out out.gguf --mix q4_k_m`
    #[arg(long, value_name = "NAME", value_parser = parse_mix, conflicts_with_all = ["dtype", "experts_dtype"])]
    pub mix: Option<Mix>,

    /// The default type for all tensors, without the mix's exceptions
    ///
    /// Example: `export-gguf --from-gguf in-f16.gguf --out out.gguf --mix q4_k_s --pure`
    #[arg(long, requires = "mix", conflicts_with_all = OTHERS)]
    pub pure: bool,

    /// Keep the type of output.weight
    ///
    /// Example: `export-gguf --from-gguf in-f16.gguf --out out.gguf --mix q4_k_m --leave-output-tensor`
    #[arg(long, requires = "mix", conflicts_with_all = OTHERS)]
    pub leave_output_tensor: bool,

    /// The type of output.weight
    ///
    /// Example: `export-gguf --from-gguf in-f16.gguf --out out.gguf --mix q4_k_m --output-tensor-type q8_0`
    #[arg(long, value_name = "TYPE", requires = "mix", conflicts_with_all = OTHERS, value_parser = parse_type)]
    pub output_tensor_type: Option<GgmlType>,

    /// The type of the token embedding
    ///
    /// Example: `export-gguf --from-gguf in-f16.gguf --out out.gguf --mix q4_k_m --token-embedding-type q8_0`
    #[arg(long, value_name = "TYPE", requires = "mix", conflicts_with_all = OTHERS, value_parser = parse_type)]
    pub token_embedding_type: Option<GgmlType>,

    /// The type of all tensors whose name a pattern occurs in; the first pattern that fits counts
    ///
    /// Example: `export-gguf --from-gguf in-f16.gguf --out out.gguf --mix q4_k_m --tensor-type 'ffn_down=q6_k'`
    #[arg(long, value_name = "REGEX=TYPE", requires = "mix", conflicts_with_all = OTHERS, value_parser = parse_override)]
    pub tensor_type: Vec<Override>,

    /// A file of --tensor-type patterns, separated by white space
    ///
    /// Example: `export-gguf --from-gguf in-f16.gguf --out out.gguf --mix q4_k_m --tensor-type-file types.txt`
    #[arg(long, value_name = "FILE", requires = "mix", conflicts_with_all = OTHERS)]
    pub tensor_type_file: Option<PathBuf>,

    /// Write a split set cut where the source's files are cut
    ///
    /// Example: `export-gguf --from-gguf in-00001-of-00003.gguf --out out.gguf --mix q4_k_m --keep-split`
    #[arg(long, requires = "mix", conflicts_with_all = ["split_max_size", "split_max_tensors", "dtype", "experts_dtype", "from_ptqtp"])]
    pub keep_split: bool,

    /// Leave out these blocks and number the rest anew
    ///
    /// Example: `export-gguf --from-gguf in-f16.gguf --out out.gguf --mix q4_k_m --prune-layers 20,21`
    #[arg(long, value_name = "N[,N]", requires = "mix", conflicts_with_all = OTHERS, value_delimiter = ',')]
    pub prune_layers: Vec<u32>,

    /// Set a metadata key in the output (int, float, bool or str); may be given several times
    ///
    /// An int becomes an unsigned number of 32 bits without its sign, as in llama-quantize.
    ///
    /// Example: `export-gguf --from-gguf in.gguf --out out.gguf --mix copy --override-kv general.name=str:mine`
    #[arg(long, value_name = "KEY=TYPE:VALUE", requires = "mix", conflicts_with_all = OTHERS, value_parser = parse_override_kv)]
    pub override_kv: Vec<(String, MetaValue)>,

    /// Quantize again what is quantized already, with --mix or --dtype
    ///
    /// Example: `export-gguf --from-gguf in-q8_0.gguf --out out.gguf --mix q4_k_m --allow-requantize`
    #[arg(long)]
    pub allow_requantize: bool,

    /// Use only importance of tensors whose name contains this; may be given several times
    ///
    /// Example: `export-gguf ... --mix q4_k_m --imatrix im.gguf --include-weights ffn_down`
    #[arg(long, value_name = "SUB", requires = "imatrix", conflicts_with = "exclude_weights")]
    pub include_weights: Vec<String>,

    /// Do not use importance of tensors whose name contains this; may be given several times
    ///
    /// Example: `export-gguf ... --mix q4_k_m --imatrix im.gguf --exclude-weights attn_output`
    #[arg(long, value_name = "SUB", requires = "imatrix")]
    pub exclude_weights: Vec<String>,

    /// Tensors that the importance matrix lacks: error, uniform or type=T
    ///
    /// Without this they go without importance, and those whose type cannot are an error, as in
    /// llama-quantize. The embedding and the output matrix are only concerned where their type cannot.
    ///
    /// Example: `export-gguf ... --mix iq2_xs --imatrix im.gguf --imatrix-missing type=q4_k`
    #[arg(long, value_name = "WHAT", requires = "mix", conflicts_with_all = OTHERS, value_parser = parse_missing)]
    pub imatrix_missing: Option<Missing>,

    /// What to record as the importance matrix's file name instead of its path; empty leaves it out
    ///
    /// Example: `export-gguf ... --mix q4_k_m --imatrix /tmp/im.gguf --imatrix-name im.gguf`
    #[arg(long, value_name = "NAME", requires_all = ["mix", "imatrix"], conflicts_with_all = OTHERS)]
    pub imatrix_name: Option<String>,

    /// The order of tensors in the output
    ///
    /// Example: `export-gguf --from-gguf in-f16.gguf --out out.gguf --mix q4_k_m --order source`
    #[arg(long, value_name = "ORDER", requires = "mix", conflicts_with_all = OTHERS, default_value = "llama")]
    pub order: OrderArg,
}

/// What `--mix` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// Copies all tensors.
    Copy,
    /// A file type.
    FileType(FileType),
}

/// `--order`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OrderArg {
    /// By layer, then by name
    Llama,
    /// As in the source
    Source,
}

impl MixArgs {
    /// Whether a mix names types, as all do but `COPY`.
    pub(super) fn names_types(&self) -> bool {
        matches!(self.mix, Some(Mix::FileType(_)))
    }

    /// The request that the options spell, `None` without `--mix`.
    pub(super) fn request(&self, imatrix: Option<&Path>) -> Result<Option<mix::Request>, Error> {
        let Some(mix) = self.mix else { return Ok(None) };
        let (file_type, copy) = match mix {
            Mix::Copy => (FileType::F32, true),
            Mix::FileType(t) => (t, false),
        };
        let mut overrides = self.tensor_type.clone();
        if let Some(path) = &self.tensor_type_file {
            overrides.extend(read_overrides(path)?);
        }
        let mut request = mix::Request::new(Options {
            pure: self.pure,
            leave_output: self.leave_output_tensor,
            output_type: self.output_tensor_type,
            token_embedding_type: self.token_embedding_type,
            overrides,
            ..Options::new(file_type)
        });
        request.copy = copy;
        request.allow_requantize = self.allow_requantize;
        request.missing = self.imatrix_missing.unwrap_or_default();
        request.imatrix_name = match &self.imatrix_name {
            Some(name) => Some(name.clone()).filter(|n| !n.is_empty()),
            None => imatrix.map(mix::recorded_name),
        };
        request.order = match self.order {
            OrderArg::Llama => mix::Order::Processing,
            OrderArg::Source => mix::Order::Source,
        };
        request.keep_split = self.keep_split;
        request.prune.clone_from(&self.prune_layers);
        request.overrides.clone_from(&self.override_kv);
        Ok(Some(request))
    }

    /// Drops the entries that `--include-weights` and `--exclude-weights` drop; `None` if none are left.
    pub(super) fn filter(&self, mut imatrix: Imatrix) -> Option<Imatrix> {
        let among = |list: &[String], name: &str| list.iter().any(|sub| name.contains(sub.as_str()));
        imatrix.retain(|name| {
            (self.include_weights.is_empty() || among(&self.include_weights, name))
                && !among(&self.exclude_weights, name)
        });
        Some(imatrix).filter(|m| !m.is_empty())
    }
}

fn parse_mix(text: &str) -> Result<Mix, String> {
    if text.eq_ignore_ascii_case("copy") {
        return Ok(Mix::Copy);
    }
    FileType::from_name(text).map(Mix::FileType).ok_or_else(|| {
        let names: Vec<&str> = FileType::ALL.iter().map(|t| t.name()).collect();
        format!("no such mix; there are: {}, COPY", names.join(", "))
    })
}

fn parse_override(text: &str) -> Result<Override, String> {
    // llama-quantize cuts at the first `=` and lower-cases the pattern.
    let (pattern, ty) = text.split_once('=').ok_or("REGEX=TYPE is needed")?;
    if pattern.is_empty() {
        return Err("the pattern is empty".into());
    }
    let pattern = Regex::new(&pattern.to_lowercase()).map_err(|e| format!("no valid pattern: {e}"))?;
    Ok(Override { pattern, ty: parse_type(ty)? })
}

fn read_overrides(path: &Path) -> Result<Vec<Override>, Error> {
    let mut text = String::new();
    let file = fs::File::open(path).map_err(Error::io("read", path))?;
    file.take(MOST_PATTERNS + 1).read_to_string(&mut text).map_err(Error::io("read", path))?;
    if text.len() as u64 > MOST_PATTERNS {
        return Err(Error::Usage(format!("{}: longer than {MOST_PATTERNS} bytes", path.display())));
    }
    text.split_whitespace()
        .map(|word| {
            parse_override(word).map_err(|e| Error::Usage(format!("{}: `{word}`: {e}", path.display())))
        })
        .collect()
}

fn parse_override_kv(text: &str) -> Result<(String, MetaValue), String> {
    let (key, value) = text.split_once('=').ok_or("KEY=TYPE:VALUE is needed")?;
    let (kind, value) = value.split_once(':').ok_or("KEY=TYPE:VALUE is needed")?;
    if key.is_empty() {
        return Err("the key is empty".into());
    }
    if key.starts_with("split.") {
        return Err("the split.* keys say how the file is cut, and are written by that".into());
    }
    let value = match kind {
        // llama-quantize writes every integer as u32, without its sign.
        "int" => value
            .parse::<i64>()
            .ok()
            .and_then(|n| u32::try_from(n.unsigned_abs()).ok())
            .map(MetaValue::U32)
            .ok_or("no integer of 32 bits")?,
        "float" => match value.parse::<f64>().map_err(|_| "no number")? as f32 {
            value if value.is_finite() => MetaValue::F32(value),
            _ => return Err("no number that 32 bits hold".into()),
        },
        "bool" => MetaValue::Bool(value.parse().map_err(|_| "true or false is needed")?),
        "str" => MetaValue::String(value.into()),
        _ => return Err("the types are int, float, bool and str".into()),
    };
    Ok((key.into(), value))
}

fn parse_missing(text: &str) -> Result<Missing, String> {
    match text {
        "error" => Ok(Missing::Refuse),
        "uniform" => Ok(Missing::Uniform),
        _ => match text.strip_prefix("type=") {
            Some(ty) => parse_type(ty).map(Missing::Type),
            None => Err("error, uniform or type=T is needed".into()),
        },
    }
}

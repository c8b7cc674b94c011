//! The GGUF form: for each weight tensor `NAME` the tensors `NAME.in_sum2` (row length times experts) and
//! `NAME.counts` (experts), both F32. `NAME.in_sum`, which newer files carry too, is not needed.

use std::collections::BTreeMap;
use std::ops::Range;

use gguf_format::{GgmlType, Gguf, TensorInfo, Value};

use super::{Contents, Divisors, Entry, Problem};

const DATASETS: &str = "imatrix.datasets";
const CHUNK_COUNT: &str = "imatrix.chunk_count";
const CHUNK_SIZE: &str = "imatrix.chunk_size";

#[derive(Default)]
struct Parts {
    sums: Option<Range<usize>>,
    counts: Option<Range<usize>>,
}

pub(super) fn parse(bytes: &[u8]) -> Result<Contents, Problem> {
    let gguf = Gguf::parse(bytes).map_err(|e| Problem::Gguf(Box::new(e)))?;
    for key in [DATASETS, CHUNK_COUNT, CHUNK_SIZE] {
        if gguf.get(key).is_none() {
            return Err(Problem::MissingKey(key));
        }
    }
    let mut parts: BTreeMap<&str, Parts> = BTreeMap::new();
    for tensor in gguf.tensors() {
        let name = tensor.name();
        if let Some(stem) = name.strip_suffix(".in_sum2") {
            parts.entry(stem).or_default().sums = Some(range(&tensor, stem)?);
        } else if let Some(stem) = name.strip_suffix(".counts") {
            parts.entry(stem).or_default().counts = Some(range(&tensor, stem)?);
        }
    }
    let mut entries = BTreeMap::new();
    for (name, parts) in parts {
        let mismatch = |what| Problem::Mismatch { tensor: name.into(), what };
        let sums = parts.sums.ok_or_else(|| mismatch("counts without sums"))?;
        let counts = parts.counts.ok_or_else(|| mismatch("sums without counts"))?;
        if counts.is_empty() || sums.is_empty() || sums.len() % counts.len() != 0 {
            return Err(mismatch("the number of sums is not a multiple of the number of counts"));
        }
        entries.insert(name.to_owned(), Entry { sums, divisors: Divisors::Counts(counts) });
    }
    let datasets = match gguf.get(DATASETS) {
        Some(Value::Array(names)) => names
            .strings()
            .into_iter()
            .flatten()
            .map(|s| String::from_utf8_lossy(s.as_bytes()).into_owned())
            .collect(),
        _ => Vec::new(),
    };
    let chunks = gguf.get(CHUNK_COUNT).and_then(|v| v.as_u64()).and_then(|n| u32::try_from(n).ok());
    Ok(Contents { entries, datasets, chunks: chunks.unwrap_or_default() })
}

fn range(tensor: &TensorInfo<'_>, stem: &str) -> Result<Range<usize>, Problem> {
    let mismatch = |what| Problem::Mismatch { tensor: stem.into(), what };
    if tensor.ty() != GgmlType::F32 {
        return Err(mismatch("sums and counts must be F32"));
    }
    let start = usize::try_from(tensor.file_offset()).map_err(|_| mismatch("offset is too large"))?;
    let len = usize::try_from(tensor.byte_len()).map_err(|_| mismatch("length is too large"))?;
    Ok(start..start + len)
}

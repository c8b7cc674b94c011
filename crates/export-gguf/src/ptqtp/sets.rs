//! Plane sets in a file: which tensors belong together, and what is wrong with them.

use gguf_format::{GgmlType, Gguf};

use super::MAX_PLANES;

/// The key that says a file has planes, and by which rules; `u32`.
pub const VERSION_KEY: &str = "fucina.ptqtp.version";
/// The key that says all sets have tied scales; `u32` 1, or missing.
pub const TIE_KEY: &str = "fucina.ptqtp.tie_scales";
/// The only version there is.
pub const VERSION: u32 = 1;

/// What stands between a tensor's name and the number of its plane.
const SUFFIX: &str = ".ptqtp";

/// The name of plane `plane` of a tensor.
#[must_use]
pub fn plane_name(base: &str, plane: usize) -> String {
    format!("{base}{SUFFIX}{plane}")
}

/// The tensor and the plane that a name belongs to, if it is a plane's.
#[must_use]
pub fn parse_plane_name(name: &str) -> Option<(&str, usize)> {
    let (base, digit) = name.split_at_checked(name.len().checked_sub(1)?)?;
    let plane = digit.parse().ok()?;
    Some((base.strip_suffix(SUFFIX).filter(|base| !base.is_empty())?, plane))
}

/// The planes that stand for one tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// The tensor's name.
    pub base: String,
    /// Its dimensions, which each plane has.
    pub dims: Vec<u64>,
    /// The planes' places among the tensors, coarsest first: one to three.
    pub planes: Vec<usize>,
    /// Their bytes together.
    pub bytes: u64,
}

impl Set {
    /// Weights of the tensor, whatever the number of planes.
    #[must_use]
    pub fn weights(&self) -> u64 {
        // Directories hand out only shapes whose product was checked.
        self.dims.iter().product()
    }
}

/// A tensor as a directory lists it.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The name.
    pub name: &'a str,
    /// The dimensions, the row length first.
    pub dims: &'a [u64],
    /// The type.
    pub ty: GgmlType,
    /// The length in bytes.
    pub bytes: u64,
}

/// All sets of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sets {
    /// Those that are sound, in the order of their first planes.
    pub sets: Vec<Set>,
    /// Whether the file says that all scales are tied.
    pub tied: bool,
    /// What is wrong, in words.
    pub faults: Vec<String>,
    /// Whether the file was made by rules that are not known here.
    pub newer: bool,
}

impl Sets {
    /// Finds the sets among a model's tensors, given its metadata. Without the key there are none, whatever
    /// the names.
    pub fn find<'a>(gguf: &Gguf<'_>, tensors: impl Iterator<Item = Entry<'a>>) -> Self {
        let mut found = Self::default();
        let Some(version) = gguf.get(VERSION_KEY) else {
            let planes = tensors.filter(|t| parse_plane_name(t.name).is_some()).count();
            if planes > 0 {
                found
                    .faults
                    .push(format!("{planes} tensors are named as trit-planes, {VERSION_KEY} is missing"));
            }
            return found;
        };
        match version.as_u64() {
            Some(v) if v > u64::from(VERSION) => {
                found.newer = true;
                found.faults.push(format!("{VERSION_KEY} is {v}, known is {VERSION}"));
            }
            Some(v) if v == u64::from(VERSION) => {}
            Some(v) => found.faults.push(format!("{VERSION_KEY} is {v}, must be {VERSION}")),
            None => found.faults.push(format!("{VERSION_KEY} is no count: {}", version.ty())),
        }
        if let Some(tie) = gguf.get(TIE_KEY) {
            found.tied = tie.as_u64() == Some(1);
            if !found.tied {
                found.faults.push(format!("{TIE_KEY} is {tie:?}, must be 1 or missing"));
            }
        }
        found.gather(tensors);
        found
    }

    fn gather<'a>(&mut self, tensors: impl Iterator<Item = Entry<'a>>) {
        let mut bases: Vec<&str> = Vec::new();
        let mut planes: std::collections::HashMap<&str, Vec<(usize, usize, Entry<'a>)>> =
            std::collections::HashMap::new();
        let mut others = std::collections::HashSet::new();
        for (index, entry) in tensors.enumerate() {
            match parse_plane_name(entry.name) {
                Some((base, plane)) => {
                    let set = planes.entry(base).or_default();
                    if set.is_empty() {
                        bases.push(base);
                    }
                    set.push((plane, index, entry));
                }
                None => {
                    others.insert(entry.name);
                }
            }
        }
        for base in bases {
            let mut set = planes.remove(base).unwrap_or_default();
            set.sort_by_key(|(plane, ..)| *plane);
            let before = self.faults.len();
            self.judge(base, &set);
            if others.contains(base) {
                self.fault(base, "stands beside its planes");
            }
            if self.tied && set.len() == 1 {
                self.fault(base, &format!("has one plane, and {TIE_KEY} is set"));
            }
            if self.faults.len() == before && !self.newer {
                self.sets.push(Set {
                    base: base.to_owned(),
                    dims: set[0].2.dims.to_vec(),
                    planes: set.iter().map(|(_, index, _)| *index).collect(),
                    bytes: set.iter().map(|(.., entry)| entry.bytes).sum(),
                });
            }
        }
    }

    /// Notes what is wrong with the planes of one tensor, which stand in their order.
    fn judge(&mut self, base: &str, set: &[(usize, usize, Entry<'_>)]) {
        let last = set.last().map_or(0, |(plane, ..)| *plane);
        for plane in (0..=last.min(MAX_PLANES - 1)).filter(|n| !set.iter().any(|(plane, ..)| plane == n)) {
            self.fault(base, &format!("has plane {last}, but plane {plane} is missing"));
        }
        for (plane, _, entry) in set {
            if *plane >= MAX_PLANES {
                self.fault(base, &format!("has plane {plane}, the last can be {}", MAX_PLANES - 1));
            }
            if entry.ty != GgmlType::TQ2_0 {
                self.fault(base, &format!("plane {plane} is {}, must be TQ2_0", entry.ty));
            }
            if entry.dims != set[0].2.dims {
                let (odd, first) = (entry.dims, set[0].2.dims);
                self.fault(base, &format!("plane {plane} has shape {odd:?}, plane {} {first:?}", set[0].0));
            }
        }
    }

    fn fault(&mut self, base: &str, what: &str) {
        self.faults.push(format!("trit-planes of '{}': {what}", base.escape_debug()));
    }
}

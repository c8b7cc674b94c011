//! Adapters on the command line.

use std::path::PathBuf;

use clap::Args;

use crate::Error;
use crate::lora::{Adapter, Kind};

/// What to merge.
#[derive(Debug, Args)]
#[command(next_help_heading = "LoRA")]
pub struct LoraArgs {
    /// Merge an adapter, SCALE times as strongly; may be given several times, and they apply in order
    ///
    /// A folder of PEFT, a GGUF adapter, or safetensors named `layers.N.q.lora_a` (or a folder with its
    /// adapters.safetensors). Values change, types stay unless --dtype or --mix says otherwise. Whatever does
    /// not fit is named, all of it at once. docs/lora.md says what is understood.
    ///
    /// Example: `export-gguf --from-gguf base-f16.gguf --out out.gguf --adapters peft-dir@0.8 --adapters other.gguf`
    #[arg(long, value_name = "PATH[@SCALE]", value_parser = parse_adapter)]
    pub adapters: Vec<AdapterArg>,

    /// The alpha of adapters that do not say theirs: plain safetensors, and only these
    ///
    /// Example: `export-gguf --from-gguf base-f16.gguf --out out.gguf --adapters ckpt-dir --alpha 16`
    #[arg(long, value_name = "N", requires = "adapters", conflicts_with = "from_ptqtp", value_parser = parse_alpha)]
    pub alpha: Option<f64>,
}

/// An adapter as it was typed.
#[derive(Debug, Clone, PartialEq)]
pub struct AdapterArg {
    /// Where it is.
    pub path: PathBuf,
    /// What multiplies its changes.
    pub scale: f64,
}

impl LoraArgs {
    /// Opens all adapters.
    pub(super) fn open(&self) -> Result<Vec<Adapter>, Error> {
        let any_plain = |list: &[Adapter]| list.iter().any(|a| a.kind() == Kind::Plain);
        let mut adapters = Vec::with_capacity(self.adapters.len());
        for arg in &self.adapters {
            adapters.push(Adapter::open(&arg.path, arg.scale, self.alpha)?);
        }
        if self.alpha.is_some()
            && !any_plain(&adapters)
            && let Some(first) = adapters.first()
        {
            return Err(Error::Usage(format!(
                "--alpha is for adapters that do not say theirs, and {} is a {} adapter, which does; leave it \
                 out, or scale with {}@S",
                first.path().display(),
                first.kind(),
                first.path().display()
            )));
        }
        Ok(adapters)
    }
}

/// Cuts at the last `@` if a number follows.
fn parse_adapter(text: &str) -> Result<AdapterArg, String> {
    let (path, scale) = match text.rsplit_once('@').map(|(path, n)| (path, n.parse::<f64>())) {
        Some((path, Ok(scale))) if scale.is_finite() => (path, scale),
        _ => (text, 1.0),
    };
    if path.is_empty() {
        return Err("the path is empty".into());
    }
    if scale == 0.0 {
        return Err("a scale of 0 merges nothing; leave the adapter out".into());
    }
    Ok(AdapterArg { path: path.into(), scale })
}

fn parse_alpha(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(alpha) if alpha.is_finite() && alpha != 0.0 => Ok(alpha),
        _ => Err("a number other than 0 is needed".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_at_before_a_number_is_the_scale() {
        for (text, path, scale) in [
            ("dir", "dir", 1.0),
            ("dir@0.5", "dir", 0.5),
            ("a@b@-2", "a@b", -2.0),
            ("dir@2@1", "dir@2", 1.0),
            ("me@home", "me@home", 1.0),
            ("dir@nan", "dir@nan", 1.0),
            ("dir@", "dir@", 1.0),
        ] {
            assert_eq!(parse_adapter(text), Ok(AdapterArg { path: path.into(), scale }), "{text}");
        }
        assert!(parse_adapter("@1").is_err() && parse_adapter("dir@0").is_err());
    }
}

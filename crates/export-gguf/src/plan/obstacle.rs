//! What stands between a tensor's stored values and an encoder.

use gguf_format::{GgmlType, Kind};

use crate::Error;
use crate::source::Tensor;

/// Tensors that cannot be encoded anew, gathered so that one error names them all.
#[derive(Debug, Default)]
pub(crate) struct Obstacles {
    quantized: Vec<(String, GgmlType)>,
    unreadable: Vec<(String, GgmlType)>,
}

impl Obstacles {
    /// Notes a tensor that is to change its type if it stands in the way: its values cannot be had, or they
    /// have lost once already and may not `again`.
    pub(crate) fn meet(&mut self, t: &Tensor, again: bool) {
        let list = match t.ty.info().map(|i| i.kind) {
            Some(Kind::Block | Kind::Activation) if t.decodable && again => return,
            Some(Kind::Block | Kind::Activation) if t.decodable => &mut self.quantized,
            _ if t.decodable && matches!(t.ty, GgmlType::F32 | GgmlType::F16 | GgmlType::BF16) => return,
            _ => &mut self.unreadable,
        };
        list.push((t.name.escape_debug().to_string(), t.ty));
    }

    /// Refuses the model if anything was noted. `advice` says how to have it another way.
    pub(crate) fn check(&self, advice: &str) -> Result<(), Error> {
        if let Some((name, ty, others)) = first(&self.unreadable) {
            let problem = format!(
                "is {ty}{others}; only F32, F16, BF16 and quantized tensors can change their type; copy it verbatim"
            );
            return Err(Error::tensor(name, problem));
        }
        if let Some((name, ty, others)) = first(&self.quantized) {
            let problem = format!(
                "is already quantized ({ty}){others}; quantizing again would add a second loss; start from the \
                 F16, BF16 or F32 file, {advice}"
            );
            return Err(Error::tensor(name, problem));
        }
        Ok(())
    }
}

/// The first of a list, and the others in words.
fn first(list: &[(String, GgmlType)]) -> Option<(&str, GgmlType, String)> {
    let ((name, ty), others) = list.split_first()?;
    let others: Vec<String> = others.iter().map(|(name, ty)| format!("{name} ({ty})")).collect();
    let others = match others.len() {
        0 => String::new(),
        1 => format!(", and so is {}", others[0]),
        _ => format!(", and so are {}", others.join(", ")),
    };
    Some((name, *ty, others))
}

//! Type names as arguments, taken from the table of formats.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};
use gguf_format::{GgmlType, Kind};

use super::export::Dtype;
use crate::plan::targets;

/// Parses `verbatim` or the name of a type that can be encoded, in any letter case.
#[derive(Debug, Clone, Copy)]
pub(super) struct DtypeParser;

/// The word for leaving tensors as they are.
const VERBATIM: &str = "verbatim";

/// All names that are taken, in the order of the table.
pub(super) fn names() -> impl Iterator<Item = String> {
    std::iter::once(VERBATIM.to_owned()).chain(targets().map(|t| t.to_string().to_lowercase()))
}

impl TypedValueParser for DtypeParser {
    type Value = Dtype;

    fn parse_ref(&self, cmd: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Dtype, Error> {
        parse(&value.to_string_lossy()).map_err(|problem| {
            let mut error = Error::raw(ErrorKind::ValueValidation, format!("{problem}\n"));
            if let Some(arg) = arg {
                error.insert(ContextKind::InvalidArg, ContextValue::String(arg.to_string()));
            }
            error.with_cmd(cmd)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(names().map(PossibleValue::new)))
    }
}

/// The type of this name or `verbatim`, or what is wrong with it and what there is.
pub(super) fn parse(text: &str) -> Result<Dtype, String> {
    if text.eq_ignore_ascii_case(VERBATIM) {
        return Ok(Dtype::Verbatim);
    }
    parse_type(text).map(Dtype::Type).map_err(|reason| format!("{reason}, {VERBATIM}"))
}

/// The type of this name, or what is wrong with it and what there is.
pub(super) fn parse_type(text: &str) -> Result<GgmlType, String> {
    let ty = GgmlType::from_name(text);
    if let Some(ty) = ty.filter(|t| targets().any(|known| known == *t)) {
        return Ok(ty);
    }
    let reason = match ty.and_then(GgmlType::info).map(|i| i.kind) {
        Some(Kind::Removed) => format!("{text} was removed from ggml and cannot be written"),
        Some(Kind::Activation) => format!("{text} is for activations and not for files"),
        Some(_) => format!("{text} has no encoder"),
        None => format!("{text} is no type"),
    };
    let choices = targets().map(|t| t.to_string().to_lowercase()).collect::<Vec<_>>().join(", ");
    Err(format!("{reason}; there are: {choices}"))
}

//! `verify` of a safetensors checkpoint: the rules of the format, and finite values where they can be read.

use super::super::text::Text;
use super::values::{Bad, scan};
use super::{Log, Report, Severity, VerifyArgs};
use crate::Error;
use crate::st::{Checkpoint, StTensor, format_of};

/// Examines a checkpoint. A file that breaks a rule of the format is a fault, one that cannot be read an error.
pub(super) fn examine(args: &VerifyArgs) -> Result<Report, Error> {
    let mut log = Log::default();
    let mut checked = 0;
    let opened = match args.input.open_checkpoint() {
        Ok(opened) => Some(opened),
        Err(Error::File { path, source }) if path.is_file() => {
            log.fault(&path, source);
            None
        }
        Err(e) => return Err(e),
    };
    if let Some(checkpoint) = &opened {
        for finding in checkpoint.findings() {
            log.warning(&args.input.file, finding);
        }
        if checkpoint.parts().is_empty() {
            log.warning(&args.input.file, "the index names no tensors");
        }
        if !args.no_values {
            checked = checkpoint.tensors().map(|t| check(checkpoint, t, &mut log)).sum();
        }
    }
    Ok(Report {
        faults: log.count(Severity::Fault),
        warnings: log.count(Severity::Warning),
        files: opened.as_ref().map_or(1, |c| c.parts().len()),
        tensors: opened.as_ref().map_or(0, |c| c.tensors().count()),
        bytes_checked: checked,
        log,
    })
}

/// Looks at the values of a tensor whose dtype can be read, and tells how many bytes these were.
fn check(checkpoint: &Checkpoint, tensor: StTensor<'_>, log: &mut Log) -> u64 {
    let (Ok(format), Some(bytes)) = (format_of(tensor.info.dtype()), checkpoint.data(&tensor)) else {
        return 0;
    };
    let Bad { count, first } = scan(format, bytes, |read| {
        checkpoint.release(&tensor, read.start as u64..read.end as u64);
    });
    if let Some(first) = first {
        let mut value = [f32::NAN];
        // The element is one that was just looked at.
        let _ = checkpoint.values(&tensor, first as u64, &mut value);
        let (name, dtype) = (Text(tensor.info.name().as_bytes()), tensor.info.dtype());
        let (all, path) = (tensor.info.elements(), checkpoint.parts()[tensor.part].path());
        let shown = value[0];
        log.fault(
            path,
            format_args!("tensor '{name}' ({dtype}) has {count} non-finite values of {all}, first {shown} at element {first}"),
        );
    }
    bytes.len() as u64
}

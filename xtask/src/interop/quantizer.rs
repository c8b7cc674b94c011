//! llama-quantize as a running process of Python, which calls `llama_model_quantize`.

use super::Tools;
use crate::util::Outcome;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// The process; its working folder is that of the models.
pub(super) struct Quantizer {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

/// What llama.cpp answered.
pub(super) enum Reply {
    /// It worked; after a dry run, each tensor's type.
    Done(BTreeMap<String, String>),
    /// It refused, with its last words.
    Refused(String),
}

impl Quantizer {
    /// Starts it on a library.
    pub(super) fn start(tools: &Tools, folder: &Path, library: &Path) -> Outcome<Self> {
        let mut command = tools.python("quantize.py");
        command.arg(library).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Its progress is of no interest, and its last words come with the answer.
        let mut child = command.stderr(Stdio::null()).spawn().map_err(|e| format!("quantize.py: {e}"))?;
        let (to, from) = child.stdin.take().zip(child.stdout.take()).ok_or("quantize.py has no pipes")?;
        Ok(Self { child, to, from: BufReader::new(from) })
    }

    /// Runs one command line.
    pub(super) fn ask(&mut self, words: &[&str]) -> Outcome<Reply> {
        let failed = |e: std::io::Error| format!("llama-quantize {}: {e}", words.join(" "));
        writeln!(self.to, "{}", Value::from(words)).and_then(|()| self.to.flush()).map_err(failed)?;
        let mut line = String::new();
        self.from.read_line(&mut line).map_err(failed)?;
        if line.is_empty() {
            return Err(format!("llama-quantize {} ended the process", words.join(" ")));
        }
        let answer: Value = serde_json::from_str(&line).map_err(|e| format!("quantize.py: {e}: {line}"))?;
        if answer["code"] != 0 {
            return Ok(Reply::Refused(answer["log"].as_str().unwrap_or_default().to_owned()));
        }
        let types = answer["types"].as_object().into_iter().flatten();
        Ok(Reply::Done(types.map(|(n, t)| (n.clone(), t.as_str().unwrap_or_default().to_owned())).collect()))
    }
}

impl Reply {
    /// How it went.
    pub(super) fn words(&self) -> &str {
        match self {
            Self::Done(_) => "done",
            Self::Refused(said) => said,
        }
    }
}

impl Drop for Quantizer {
    fn drop(&mut self) {
        // It may wait for input for ever, and no one is left to hear of a failure.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

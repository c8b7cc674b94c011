//! What stands in the way of a merge, gathered so that all of it is said at once.

use std::fmt::Display;
use std::path::Path;

use crate::Error;

/// A list of problems.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<String>);

impl Problems {
    /// Adds a problem with something of an adapter: a tensor, or a key of its configuration.
    pub(super) fn add(&mut self, adapter: &Path, what: &str, problem: impl Display) {
        self.0.push(format!("{}: {}: {problem}", adapter.display(), what.escape_debug()));
    }

    /// Adds a problem with a whole adapter.
    pub(super) fn whole(&mut self, adapter: &Path, problem: impl Display) {
        self.0.push(format!("{}: {problem}", adapter.display()));
    }

    /// Whether there is none so far.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All problems as one error, if there is any.
    pub(super) fn check(self) -> Result<(), Error> {
        match self.0.as_slice() {
            [] => Ok(()),
            [one] => Err(Error::Refused(one.clone())),
            all => {
                Err(Error::Refused(format!("{} problems with the adapters: {}", all.len(), all.join("; "))))
            }
        }
    }
}

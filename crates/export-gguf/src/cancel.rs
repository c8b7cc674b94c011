//! Stopping in an orderly way when a signal arrives.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Error, sys};

/// A flag that long work looks at between chunks; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicUsize>);

impl Cancel {
    /// A flag that SIGINT, SIGTERM and SIGHUP set. Signals that this process was told to ignore
    /// (as `nohup` does) stay ignored.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub fn on_signals() -> Result<Self, Error> {
        let cancel = Self::default();
        #[cfg(unix)]
        {
            use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
            let failed = |e| Error::Io { doing: "handle signals of", path: "this process".into(), source: e };
            for signal in [SIGHUP, SIGINT, SIGTERM] {
                if !sys::is_ignored(signal) {
                    let number = usize::try_from(signal).unwrap_or(0);
                    signal_hook::flag::register_usize(signal, Arc::clone(&cancel.0), number)
                        .map_err(failed)?;
                }
            }
            // Passing a file size limit must be an error of `write`, not the end of the process.
            signal_hook::flag::register(SIGXFSZ, Arc::default()).map_err(failed)?;
        }
        Ok(cancel)
    }

    /// Sets the flag, as `signal` would.
    pub fn set(&self, signal: i32) {
        self.0.store(usize::try_from(signal).unwrap_or(1), Ordering::Relaxed);
    }

    /// Answers [`Error::Interrupted`] once the flag is set.
    ///
    /// # Errors
    /// That one.
    pub fn check(&self) -> Result<(), Error> {
        match self.0.load(Ordering::Relaxed) {
            0 => Ok(()),
            signal => Err(Error::Interrupted(i32::try_from(signal).unwrap_or(1))),
        }
    }
}

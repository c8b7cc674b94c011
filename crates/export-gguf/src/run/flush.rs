//! Starting the write-back of finished data while the rest is being made.
//!
//! Left alone, the kernel gathers dirty pages and the final sync waits for all of them; a helper
//! thread that syncs every so often keeps the disk busy from the beginning.

use std::sync::mpsc::{self, Sender};

use crate::atomic::Staged;

/// Written bytes between two calls for write-back.
pub(super) const EVERY: u64 = 64 << 20;

/// Asks for write-back; cheap, callable from any thread.
#[derive(Debug)]
pub(super) struct Flusher(Sender<usize>);

impl Flusher {
    /// Requests that the data of a file be written back soon.
    pub(super) fn flush(&self, file: usize) {
        // The receiver lives as long as any flusher.
        let _ = self.0.send(file);
    }
}

/// Runs `work` with a flusher over `staged`; returns when both are done.
pub(super) fn with_flusher(staged: &Staged, work: impl FnOnce(&Flusher)) {
    std::thread::scope(|scope| {
        let (sender, requests) = mpsc::channel();
        scope.spawn(move || {
            while let Ok(file) = requests.recv() {
                // Requests that gathered meanwhile ask for the same; errors come back at the commit.
                let file = requests.try_iter().last().unwrap_or(file);
                let _ = staged.sync(file);
            }
        });
        let flusher = Flusher(sender);
        work(&flusher);
    });
}

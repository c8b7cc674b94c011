//! Telling people how far the work is: a bar on a terminal, plain lines elsewhere.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::plan::human_bytes;
use crate::run::Observer;

/// One run's progress, on standard error.
#[derive(Debug)]
pub struct Progress {
    total: u64,
    done: AtomicU64,
    shown: Shown,
}

#[derive(Debug)]
enum Shown {
    Nothing,
    Bar(ProgressBar),
    /// A line at every tenth, but not for work that is over in a moment.
    Lines(Instant),
}

impl Progress {
    /// Shows nothing.
    #[must_use]
    pub fn silent() -> Self {
        Self { total: 0, done: AtomicU64::new(0), shown: Shown::Nothing }
    }

    /// Shows `total` bytes being worked off: a bar with rate and remaining time on a `terminal`,
    /// a line at every tenth elsewhere.
    #[must_use]
    pub fn new(total: u64, terminal: bool) -> Self {
        const BAR: &str = "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} ETA {eta}";
        let shown = if terminal {
            let bar = ProgressBar::new(total);
            // The template is a constant that a test renders.
            bar.set_style(ProgressStyle::with_template(BAR).unwrap_or_else(|_| ProgressStyle::default_bar()));
            Shown::Bar(bar)
        } else {
            Shown::Lines(Instant::now())
        };
        Self { total, done: AtomicU64::new(0), shown }
    }

    /// Takes the bar off the screen.
    pub fn finish(&self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

impl Observer for Progress {
    fn advance(&self, bytes: u64) {
        let before = self.done.fetch_add(bytes, Ordering::Relaxed);
        match &self.shown {
            Shown::Nothing => {}
            Shown::Bar(bar) => bar.inc(bytes),
            Shown::Lines(started) => {
                let tenth = |n: u64| u128::from(n) * 10 / u128::from(self.total.max(1));
                let (was, is) = (tenth(before), tenth(before + bytes));
                if was != is && started.elapsed() > Duration::from_secs(2) {
                    let (done, total) = (human_bytes(before + bytes), human_bytes(self.total));
                    // Nobody listening is no reason to stop.
                    let _ = writeln!(std::io::stderr(), "{:3}% {done} of {total}", is * 10);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_drawn_from_a_valid_template() {
        let bar = Progress::new(100, true);
        bar.advance(40);
        let Shown::Bar(shown) = &bar.shown else { panic!("a terminal gets a bar") };
        assert_eq!((shown.position(), shown.length()), (40, Some(100)));
        bar.finish();
    }
}

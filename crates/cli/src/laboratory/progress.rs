//! The progress of a bench or an experiment on standard error.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use deckwatch_probe::laboratory;
use indicatif::{ProgressBar, ProgressStyle};

/// Shows a progress bar on a terminal. Elsewhere, prints a line for each round and every two seconds.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    /// The last line, its round and its time.
    last: Option<(String, usize, Instant)>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(1);
            bar.enable_steady_tick(Duration::from_millis(200));
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}");
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Self { bar, last: None }
    }

    pub(crate) fn show(&mut self, at: &laboratory::Progress) {
        if let Some(bar) = &self.bar {
            bar.set_length(at.rounds as u64);
            bar.set_position(at.round as u64);
            bar.set_message(at.now.clone());
            return;
        }
        let what = at.now.split(':').next().unwrap_or_default();
        let line = format!("{what}: round {} of {}", at.round, at.rounds);
        let is_due = |(last, round, when): &(String, usize, Instant)| {
            // Foreign ORBs are built in round 0. Each build may take minutes.
            let is_new_round = *round != at.round || at.round == 0;
            *last != line && (is_new_round || when.elapsed() > LINE_INTERVAL)
        };
        if self.last.as_ref().is_none_or(is_due) {
            // An error is ignored: the measurement continues if standard error is closed or full.
            let _ = writeln!(anstream::stderr(), "{line}");
            self.last = Some((line, at.round, Instant::now()));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Minimum time between two lines of one round.
const LINE_INTERVAL: Duration = Duration::from_secs(2);

//! The progress of a long command, on a terminal alone.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// A line on standard error, which is removed on drop. Does nothing if standard error is no terminal.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    shown: Instant,
}

/// Time between two changes of the line.
const INTERVAL: Duration = Duration::from_millis(200);

impl Progress {
    /// `events` is the number of events to come, if it is known.
    pub(super) fn new(events: Option<u64>) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| match events {
            None => ProgressBar::new_spinner(),
            Some(events) => {
                let style = ProgressStyle::with_template("{bar:24} {msg}");
                let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
                ProgressBar::new(events).with_style(style)
            }
        });
        Self {
            bar,
            shown: Instant::now(),
        }
    }

    /// Shows the number of events so far, and the words for it.
    pub(super) fn show(&mut self, events: u64, words: impl FnOnce() -> String) {
        if let Some(bar) = &self.bar
            && self.shown.elapsed() >= INTERVAL
        {
            self.shown = Instant::now();
            bar.set_position(events);
            bar.set_message(words());
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

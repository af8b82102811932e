//! The progress of a bench or an experiment on standard error.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use deckwatch_probe::laboratory;
use indicatif::{ProgressBar, ProgressStyle};

/// Shows a progress bar on a terminal. Elsewhere, prints a line for each round and every two seconds. Both begin with
/// how long the whole will probably take.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    /// The last line, its round and its time.
    last: Option<(String, usize, Instant)>,
    is_total_told: bool,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(1);
            bar.enable_steady_tick(Duration::from_millis(200));
            let style = ProgressStyle::with_template("{bar:30} {percent:>3}% {msg}");
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Self {
            bar,
            last: None,
            is_total_told: false,
        }
    }

    pub(crate) fn show(&mut self, at: &laboratory::Progress) {
        if !self.is_total_told && !at.total.is_zero() {
            self.is_total_told = true;
            let total = about(at.total);
            self.print(&format!(
                "This will probably take {total}; Ctrl-C ends it early and keeps what was measured."
            ));
        }
        let left = left(at);
        if let Some(bar) = &self.bar {
            bar.set_length(milliseconds(at.total).max(1));
            bar.set_position(milliseconds(at.total - at.left));
            bar.set_message(format!(
                "{left}: round {} of {}: {}",
                at.round, at.rounds, at.now
            ));
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
            self.print(&format!("{line}, {left}"));
            self.last = Some((line, at.round, Instant::now()));
        }
    }

    fn print(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            // An error is ignored: the measurement continues if standard error is closed or full.
            None => drop(writeln!(anstream::stderr(), "{line}")),
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

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The time left, in words.
fn left(at: &laboratory::Progress) -> String {
    if at.total.is_zero() {
        "time left not known yet".to_owned()
    } else {
        format!("{} left", about(at.left))
    }
}

/// A duration in words, as precise as a forecast can be.
fn about(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..60 => format!("about {} s", seconds.max(1)),
        seconds @ 60..3_600 => format!("about {} min", (seconds + 30) / 60),
        seconds => format!("about {:.1} h", seconds as f64 / 3_600.0),
    }
}

/// Minimum time between two lines of one round.
const LINE_INTERVAL: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_told_in_seconds_minutes_or_hours() {
        let of = |seconds| {
            left(&laboratory::Progress {
                round: 1,
                rounds: 9,
                now: String::new(),
                total: Duration::from_secs(9_000),
                left: Duration::from_secs(seconds),
            })
        };
        let words = [0, 59, 60, 150, 3_599, 5_400].map(of);
        assert_eq!(
            words,
            [
                "about 1 s left",
                "about 59 s left",
                "about 1 min left",
                "about 3 min left",
                "about 60 min left",
                "about 1.5 h left"
            ]
        );
    }
}

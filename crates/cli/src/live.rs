//! The progress of a run on standard error: progress bars on a terminal, plain lines elsewhere.

use std::time::Duration;

use deckwatch_scenario::run::{Observer, Phase, RunProgress, StreamProgress};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::output::errln;
use crate::words;

/// Progress bars, one for each flow over each carrier.
pub(crate) struct Live {
    bars: MultiProgress,
    head: ProgressBar,
    streams: Vec<ProgressBar>,
}

impl Live {
    pub(crate) fn new() -> Self {
        let bars = MultiProgress::new();
        let head = bars.add(ProgressBar::new_spinner());
        head.enable_steady_tick(Duration::from_millis(120));
        Self {
            bars,
            head,
            streams: Vec::new(),
        }
    }
}

impl Observer for Live {
    fn started(&mut self, process: &str, id: u32) {
        tracing::info!(process, id, "started");
    }

    fn phase(&mut self, phase: Phase, words: &str) {
        self.head.set_message(words.to_owned());
        if phase == Phase::Measuring {
            // A variant has flows of its own.
            for bar in self.streams.drain(..) {
                bar.finish_and_clear();
            }
        }
    }

    fn progress(&mut self, progress: &RunProgress) {
        if !progress.left.is_zero() {
            self.head.set_message(format!(
                "Measuring, {} left{}",
                words::duration(progress.left),
                after(progress)
            ));
        }
        // Only the first streams have a bar: a fleet has more streams than a terminal has lines.
        for (index, stream) in progress.streams.iter().enumerate().take(LINES_MAX) {
            if index == self.streams.len() {
                let style = ProgressStyle::with_template("  {prefix:<24} {bar:24} {msg}");
                let bar = ProgressBar::new(stream.scheduled).with_prefix(name(stream));
                self.streams.push(
                    self.bars.add(
                        bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())),
                    ),
                );
            }
            self.streams[index].set_position(stream.sent);
            self.streams[index].set_message(counts(stream));
        }
    }

    fn notice(&mut self, text: &str) {
        // An error is ignored: if the terminal cannot be written to, no other output of the run is seen either.
        let _ = self.bars.println(text);
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.head.finish_and_clear();
        for bar in &self.streams {
            bar.finish_and_clear();
        }
    }
}

/// Prints a line for each phase, and progress lines. Their interval doubles up to a minute, to keep the log of a long
/// run short.
pub(crate) struct Plain {
    after: Duration,
}

impl Plain {
    pub(crate) const fn new() -> Self {
        Self { after: PLAIN_AFTER }
    }

    /// Returns whether a line is due so long after the start of the schedule, and then doubles the interval.
    fn is_due(&mut self, elapsed: Duration) -> bool {
        let is_due = elapsed >= self.after;
        if is_due {
            self.after += self.after.min(PLAIN_INTERVAL_MAX);
        }
        is_due
    }
}

impl Observer for Plain {
    fn started(&mut self, process: &str, id: u32) {
        tracing::info!(process, id, "started");
    }

    fn phase(&mut self, phase: Phase, words: &str) {
        if phase == Phase::Measuring {
            // Each variant of a series has a schedule of its own.
            self.after = PLAIN_AFTER;
        }
        errln!("{words}.");
    }

    fn progress(&mut self, progress: &RunProgress) {
        if progress.left.is_zero() || !self.is_due(progress.elapsed) {
            return;
        }
        let streams: Vec<String> = progress
            .streams
            .iter()
            .map(|stream| format!("{}: {}", name(stream), counts(stream)))
            .collect();
        errln!(
            "{} left{}; {}.",
            words::duration(progress.left),
            after(progress),
            streams.join("; ")
        );
    }

    fn notice(&mut self, text: &str) {
        errln!("{text}");
    }
}

/// Returns the time left with the variants that follow, if any.
fn after(progress: &RunProgress) -> String {
    if progress.after.is_zero() {
        return String::new();
    }
    let all = words::duration(progress.left + progress.after);
    format!(", {all} with the variants that follow")
}

fn name(stream: &StreamProgress) -> String {
    format!("{} over {}", stream.name, stream.carrier)
}

fn counts(stream: &StreamProgress) -> String {
    format!(
        "{} sent, {} Hz, {} received, {} late",
        words::count(stream.sent),
        words::rate((stream.rate_hz * 10.0).round() / 10.0),
        words::count(stream.received),
        words::count(stream.late)
    )
}

const LINES_MAX: usize = 12;
const PLAIN_AFTER: Duration = Duration::from_secs(1);
const PLAIN_INTERVAL_MAX: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_lines_double_and_start_anew_with_each_variant() {
        let mut plain = Plain::new();
        for _ in 0..2 {
            plain.phase(Phase::Measuring, "Measuring");
            let due: Vec<u64> = (0..=300)
                .filter(|second| plain.is_due(Duration::from_secs(*second)))
                .collect();
            assert_eq!(due, [1, 2, 4, 8, 16, 32, 64, 124, 184, 244]);
        }
    }
}

//! The loop of the commands that receive events, and how it ends.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use deckwatch_os::clock::monotonic_ns;
use deckwatch_probe::events::Received;
use deckwatch_probe::events::subscription::{Losses, Next, Subscription};
use serde::Serialize;

use crate::mission_args::duration;
use crate::output::{errln, reader_is_gone};
use crate::{exit, words};

/// When a command ends.
#[derive(clap::Args)]
pub(super) struct UntilArgs {
    /// End after so many events
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) count: Option<u64>,
    /// End after so long, for example 10s
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub(super) time: Option<Duration>,
}

/// Why a loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// All that was asked for.
    Done,
    /// The time is over.
    Time,
    /// A signal.
    Signal(&'static str),
    /// The channel notified its clients that it ends.
    Channel,
    /// The reader of standard output has closed the pipe.
    Reader,
}

/// The windows of a stream, one after the other.
pub(super) struct Windows {
    length_ns: i64,
    end_ns: i64,
}

impl Windows {
    /// Begins the first window now.
    pub(super) fn new(length: Duration) -> Self {
        Self::beginning_at(monotonic_ns(), length)
    }

    fn beginning_at(begin_ns: i64, length: Duration) -> Self {
        let length_ns = i64::try_from(length.as_nanos()).unwrap_or(i64::MAX).max(1);
        Self {
            length_ns,
            end_ns: begin_ns.saturating_add(length_ns),
        }
    }

    /// Returns whether the present window ends before `now_ns`. The next one is that of `now_ns`: windows between the
    /// two had no event.
    pub(super) fn end_by(&mut self, now_ns: i64) -> bool {
        if now_ns < self.end_ns {
            return false;
        }
        let passed = now_ns.saturating_sub(self.end_ns) / self.length_ns;
        let more_ns = self.length_ns.saturating_mul(passed.saturating_add(1));
        self.end_ns = self.end_ns.saturating_add(more_ns);
        true
    }
}

/// Reads the length of a window.
pub(super) fn window(text: &str) -> anyhow::Result<Duration> {
    let length = duration(text)?;
    if length < WINDOW_MIN {
        bail!("{text} is too short: a window has at least 1ms; write for example 100ms");
    }
    Ok(length)
}

/// The shortest window: more than a thousand lines a second are not read.
const WINDOW_MIN: Duration = Duration::from_millis(1);

/// Longest wait without a look at the signals.
pub(super) const STEP: Duration = Duration::from_millis(50);

/// Exit status when fewer events came than were asked for.
const FEWER: u8 = 1;

impl UntilArgs {
    /// Receives events until the end, and disconnects. Calls `each` with every event that was received until then, and
    /// with `None` while there is none. Events beyond the count stay to be read.
    pub(super) fn watch(
        &self,
        subscription: &mut Subscription,
        mut each: impl FnMut(Option<&Received>) -> anyhow::Result<()>,
    ) -> anyhow::Result<ExitCode> {
        let started = Instant::now();
        let mut received = 0;
        let end = loop {
            if let Some(end) = self.end(started) {
                break Ok(end);
            }
            let left = self
                .time
                .map_or(STEP, |time| time.saturating_sub(started.elapsed()));
            match subscription.next(left.min(STEP)) {
                Ok(Next::Event(event)) => {
                    each(Some(&event))?;
                    received += 1;
                    if self.count == Some(received) {
                        break Ok(End::Done);
                    }
                }
                Ok(Next::Nothing) => each(None)?,
                Ok(Next::Ended) => break Ok(End::Channel),
                Err(gone) => break Err(gone),
            }
        };
        subscription.disconnect();
        // Events that were received before the end and not looked at yet.
        while self.count != Some(received)
            && !reader_is_gone()
            && let Ok(Next::Event(event)) = subscription.next(Duration::ZERO)
        {
            each(Some(&event))?;
            received += 1;
        }
        tell(&subscription.losses());
        Ok(self.finish(end?, received))
    }

    /// Returns why a loop that began at `started` must end, if it must.
    pub(super) fn end(&self, started: Instant) -> Option<End> {
        if let Some(signal) = deckwatch_os::signal::ending() {
            Some(End::Signal(signal))
        } else if reader_is_gone() {
            Some(End::Reader)
        } else {
            let is_over = self.time.is_some_and(|time| started.elapsed() >= time);
            is_over.then_some(End::Time)
        }
    }

    /// Returns the exit status, and tells the user why there are fewer events than were asked for.
    pub(super) fn finish(&self, end: End, events: u64) -> ExitCode {
        let is_bounded = self.count.is_some() || self.time.is_some();
        let missing = self.count.filter(|count| events < *count);
        let of = |count| format!("{} of {} events", words::count(events), words::count(count));
        match (end, missing) {
            (End::Signal(signal), _) if is_bounded => {
                errln!(
                    "Ended early by {signal}, after {} events.",
                    words::count(events)
                );
                return exit::ended_by(signal).into();
            }
            (End::Time, Some(count)) => errln!("The time is over after {}.", of(count)),
            (End::Channel, Some(count)) => errln!("The channel has ended after {}.", of(count)),
            (End::Done, Some(count)) => errln!("The input has ended after {}.", of(count)),
            (End::Channel, None) => errln!("The channel has ended."),
            _ => {}
        }
        match (end, missing) {
            (End::Done | End::Time | End::Channel, Some(_)) => FEWER.into(),
            _ => ExitCode::SUCCESS,
        }
    }
}

/// The figures of a window or of a whole stream as JSON. Those of a whole stream have the events that it lacks beside
/// them.
#[derive(Serialize)]
pub(super) struct Figures<'f, F> {
    #[serde(flatten)]
    pub(super) figures: &'f F,
    #[serde(flatten)]
    pub(super) losses: Option<Losses>,
}

/// Prints the events that were lost.
fn tell(losses: &Losses) {
    if losses.dropped > 0 {
        let dropped = words::count(losses.dropped);
        errln!("{dropped} events were dropped here: they came faster than they were written.");
    }
    if let Some(dropped @ 1..) = losses.dropped_by_channel {
        let dropped = words::count(dropped);
        errln!("The channel dropped {dropped} events for this consumer.");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until(count: Option<u64>) -> UntilArgs {
        UntilArgs { count, time: None }
    }

    #[test]
    fn windows_without_an_event_are_passed_over_at_once() {
        let ms = 1_000_000;
        let mut windows = Windows::beginning_at(5, Duration::from_millis(1));
        assert!(!windows.end_by(5) && !windows.end_by(ms + 4));
        assert!(windows.end_by(ms + 5));
        // A second later, the next window ends at once, and the one after it with its own time.
        assert!(windows.end_by(1_000 * ms + 7));
        assert!(!windows.end_by(1_001 * ms + 4));
        assert!(windows.end_by(1_001 * ms + 5));
        let mut forever = Windows::beginning_at(5, Duration::MAX);
        assert!(!forever.end_by(i64::MAX - 1));
    }

    #[test]
    fn a_window_is_not_shorter_than_a_reader_can_follow() {
        let shortest = window("1ms").expect("long enough");
        assert_eq!(shortest, Duration::from_millis(1));
        let told = window("999us").expect_err("too short").to_string();
        assert!(told.contains("at least 1ms"), "{told}");
    }

    #[test]
    fn fewer_events_than_asked_for_are_no_success() {
        let is_success =
            |until: UntilArgs, end, events| until.finish(end, events) == ExitCode::SUCCESS;
        assert!(is_success(until(Some(3)), End::Done, 3));
        assert!(!is_success(until(Some(3)), End::Time, 2));
        assert!(!is_success(until(Some(3)), End::Channel, 2));
        assert!(!is_success(until(Some(3)), End::Signal("SIGINT"), 2));
        assert!(is_success(until(None), End::Time, 0));
        assert!(is_success(until(None), End::Channel, 0));
        assert!(
            is_success(until(None), End::Signal("SIGINT"), 2),
            "that is how it ends"
        );
    }
}

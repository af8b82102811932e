//! The loop of the commands that receive events, and how it ends.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use deckwatch_probe::events::Received;
use deckwatch_probe::events::subscription::{Next, Subscription};

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

/// Longest wait without a look at the signals.
pub(super) const STEP: Duration = Duration::from_millis(50);

/// Exit status when fewer events came than were asked for.
const FEWER: u8 = 1;

impl UntilArgs {
    /// Receives events until the end. Calls `each` with every event, and with `None` while there is none.
    pub(super) fn watch(
        &self,
        subscription: &mut Subscription,
        mut each: impl FnMut(Option<&Received>) -> anyhow::Result<()>,
    ) -> anyhow::Result<ExitCode> {
        let started = Instant::now();
        let mut received = 0;
        let end = loop {
            if let Some(end) = self.end(started) {
                break end;
            }
            let left = self
                .time
                .map_or(STEP, |time| time.saturating_sub(started.elapsed()));
            match subscription.next(left.min(STEP))? {
                Next::Event(event) => {
                    each(Some(&event))?;
                    received += 1;
                    if self.count == Some(received) {
                        break End::Done;
                    }
                }
                Next::Nothing => each(None)?,
                Next::Ended => break End::Channel,
            }
        };
        let counts = subscription.counts();
        if counts.dropped > 0 {
            let dropped = words::count(counts.dropped);
            errln!("{dropped} events were dropped here: they came faster than they were written.");
        }
        Ok(self.finish(end, received))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn until(count: Option<u64>) -> UntilArgs {
        UntilArgs { count, time: None }
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

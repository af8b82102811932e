//! The loop of the commands that send events.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use deckwatch_probe::events::channel::Sink;
use deckwatch_probe::events::sending::{Pacer, SendCounts};
use deckwatch_probe::events::{Event, HEADER_DEFAULT};

use super::watching::{End, UntilArgs};
use crate::output::{errln, outln};
use crate::words;

/// What is sent next.
pub(super) enum Input {
    /// An event, and when it is due: the time from the start.
    Event(Event, Option<Duration>),
    /// No event within a step of waiting.
    Nothing,
    /// There are no more events.
    End,
}

impl UntilArgs {
    /// Sends events until the end, disconnects, and tells the counts. `next` gets the number of events sent.
    pub(super) fn send(
        &self,
        mut sink: Box<dyn Sink>,
        json: bool,
        mut next: impl FnMut(u64) -> anyhow::Result<Input>,
    ) -> anyhow::Result<ExitCode> {
        let (started, mut pacer) = (Instant::now(), Pacer::start());
        let mut is_scheduled = false;
        let end = loop {
            if let Some(end) = self.end(started) {
                break end;
            }
            let sent = pacer.counts().sent;
            if self.count == Some(sent) {
                break End::Done;
            }
            let (event, due) = match next(sent)? {
                Input::Event(event, due) => (event, due),
                Input::Nothing => continue,
                Input::End => break End::Done,
            };
            is_scheduled |= due.is_some();
            let is_over = || self.end(started).is_some();
            if due.is_some_and(|due| !pacer.wait(due, is_over)) {
                continue;
            }
            pacer.count(due);
            let pushed = sink.push(&event);
            pushed.with_context(|| format!("event {} was not sent", sent + 1))?;
        };
        let flushed = sink.flush();
        flushed.context("the last events may not have been sent")?;
        // The supplier disconnects before the counts are printed.
        drop(sink);
        tell(json, is_scheduled, pacer.counts())?;
        Ok(self.finish(end, pacer.counts().sent))
    }
}

/// Warns about a type of a header that no application should send.
pub(super) fn warn_of_type(number: i32) {
    match number {
        0 => errln!("Type 0 is any type: the events reach every consumer of their source."),
        1..EVENT_TYPE_MIN => errln!(
            "Type {number} is reserved for filters, and a consumer cannot ask for it; {EVENT_TYPE_MIN} and above are free."
        ),
        _ => {}
    }
}

/// The first type of events that the real-time event service leaves to applications.
const EVENT_TYPE_MIN: i32 = HEADER_DEFAULT.r#type;

fn tell(json: bool, is_scheduled: bool, counts: SendCounts) -> anyhow::Result<()> {
    if json {
        return outln!("{}", serde_json::to_string(&counts)?);
    }
    let schedule = if is_scheduled {
        format!(
            ", {} of them late; at most {} after the due time",
            words::count(counts.late),
            words::latency(u64::try_from(counts.lateness_ns_max).unwrap_or(0))
        )
    } else {
        String::new()
    };
    let events = usize::try_from(counts.sent).unwrap_or(usize::MAX);
    errln!(
        "Sent {} {}{schedule}.",
        words::count(counts.sent),
        words::plural("event", events)
    );
    Ok(())
}

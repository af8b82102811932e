//! When a call starts and ends: its deadlines, and the times that travel with its request (CORBA 3.3 part 1, clause
//! 17.2.4).

use deckwatch_giop::invocation::Times;

use super::Client;
use super::call::Call;
use super::retry::Failure;
use crate::counters::Counter;
use crate::limits::START_AHEAD_MAX;
use crate::policy::Overrides;
use crate::rt::deadline::{self, Moment};
use crate::transport::Instant64;
use crate::{Completion, SystemException, raise, raise::own};

/// When a call must have its reply, and when its request must have been sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadlines {
    pub(crate) reply: Option<Instant64>,
    pub(crate) request: Option<Instant64>,
}

impl Deadlines {
    /// A call that may take any time.
    pub(crate) const NONE: Self = Self {
        reply: None,
        request: None,
    };

    pub(crate) fn of(client: &Client, call: &Call<'_>, now: Instant64) -> Self {
        let mut reply = call.policies.round_trip().map(|wait| now.after(wait));
        let mut sent = call.policies.request().map(|wait| now.after(wait));
        if let Some(times) = call.times {
            let moment = moment(client, now);
            let instant = |time| moment.instant(time);
            reply = earlier(reply, times.reply_end.map(instant));
            sent = earlier(sent, times.request_end.map(instant));
        }
        Self {
            reply,
            request: earlier(reply, sent),
        }
    }

    /// Waits for the start of a call that has one, and returns its deadlines.
    ///
    /// # Errors
    /// As [`Deadlines::await_start`].
    #[inline(never)]
    pub(super) fn begin(client: &Client, call: &Call<'_>) -> Result<Self, SystemException> {
        let now = client.transport.now();
        let deadlines = Self::of(client, call, now);
        deadlines.await_start(client, call, now)?;
        Ok(deadlines)
    }

    /// Waits for the start of a call that has one.
    ///
    /// # Errors
    /// TIMEOUT for a call that has ended, or ends before it may start; IMP_LIMIT for a start that is too far ahead.
    #[inline]
    pub(super) fn await_start(
        self,
        client: &Client,
        call: &Call<'_>,
        now: Instant64,
    ) -> Result<(), SystemException> {
        if call.is_timed() {
            self.await_start_at(client, &call.times.copied().unwrap_or_default(), now)
        } else {
            Ok(())
        }
    }

    #[inline(never)]
    fn await_start_at(
        self,
        client: &Client,
        times: &Times,
        now: Instant64,
    ) -> Result<(), SystemException> {
        let moment = moment(client, now);
        let instant = |time| moment.instant(time);
        let request = times.request_start.map_or(now, instant).max(now);
        let reply = times.reply_start.map_or(request, instant);
        let is_past = |end: Option<Instant64>, at| end.is_some_and(|end| end <= at);
        if is_past(self.request, request) || is_past(self.reply, reply.max(request)) {
            return Err(end_passed(client));
        }
        if reply.max(request).since(now) > START_AHEAD_MAX {
            return Err(raise::imp_limit(own::START_TOO_FAR, Completion::No));
        }
        if request > now {
            client.transport.sleep_until(request);
        }
        Ok(())
    }
}

fn earlier(one: Option<Instant64>, other: Option<Instant64>) -> Option<Instant64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn moment(client: &Client, now: Instant64) -> Moment {
    Moment {
        now,
        utc_ns: client.transport.utc_ns(),
    }
}

impl Call<'_> {
    /// Whether the time at which its request is sent matters.
    #[inline]
    pub(super) fn is_timed(&self) -> bool {
        self.times.is_some() || self.policies.has_request_end()
    }

    /// Whether it has a deadline or a start.
    #[inline]
    pub(super) fn needs_time(&self) -> bool {
        self.is_timed()
            || !self.policies.is_empty()
                && (self.policies.round_trip().is_some() || self.policies.request().is_some())
    }
}

/// The times that travel with a call of these policies: those that are set and, if the bound of this host's clock is
/// known, the ends that the relative timeouts come to.
#[inline]
pub(crate) fn travelling_times(client: &Client, policies: &Overrides) -> Option<Times> {
    if policies.has_times() || client.clock_bound.is_some() {
        make_times(client, policies)
    } else {
        None
    }
}

#[cold]
fn make_times(client: &Client, policies: &Overrides) -> Option<Times> {
    let mut times = policies.times();
    if let Some(bound) = client.clock_bound {
        let moment = moment(client, client.transport.now());
        let end = |wait| moment.utc_after(wait, bound);
        times.request_end = deadline::earlier(times.request_end, policies.request().map(end));
        times.reply_end = deadline::earlier(times.reply_end, policies.round_trip().map(end));
    }
    (!times.is_empty()).then_some(times)
}

/// Waits until a reply that has arrived may be returned to the caller.
pub(super) fn wait_for_reply_start(client: &Client, times: Option<&Times>) {
    if let Some(start) = reply_start(client, times) {
        client.transport.sleep_until(start);
    }
}

/// When a reply that has arrived may be returned to the caller; `None`: now.
pub(super) fn reply_start(client: &Client, times: Option<&Times>) -> Option<Instant64> {
    let start = times?.reply_start?;
    let now = client.transport.now();
    let at = moment(client, now).instant(start);
    // The start was checked when the call began; a clock set since then must not hold the caller for ever.
    let at = at.min(now.after(START_AHEAD_MAX));
    (at > now).then_some(at)
}

/// # Errors
/// TIMEOUT if the request's own end has passed before it is sent.
#[inline]
pub(super) fn require_end(
    client: &Client,
    call: &Call<'_>,
    deadline: Option<Instant64>,
) -> Result<(), Failure> {
    match deadline {
        Some(deadline) if call.policies.has_request_end() => require_before(client, deadline),
        _ => Ok(()),
    }
}

#[cold]
fn require_before(client: &Client, deadline: Instant64) -> Result<(), Failure> {
    if deadline <= client.transport.now() {
        Err(Failure::unsent(end_passed(client)))
    } else {
        Ok(())
    }
}

#[cold]
fn end_passed(client: &Client) -> SystemException {
    client.counters.count(Counter::RequestsPastEnd);
    Failure::timed_out(client, own::END_TIME_PASSED, Completion::No).exception
}

//! When a call may go out, and until when it must have gone and come back.

use deckwatch_giop::invocation::Times;

use super::Client;
use super::call::{Call, Failure};
use crate::counters::Counter;
use crate::limits::START_AHEAD_MAX;
use crate::policy::Overrides;
use crate::rt::deadline::{self, Moment};
use crate::transport::Instant64;
use crate::{Completion, SystemException, raise, raise::own};

/// Until when a call may take, and until when its request must have gone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadlines {
    pub(crate) reply: Option<Instant64>,
    pub(crate) request: Option<Instant64>,
}

impl Deadlines {
    /// A call that takes as long as it takes.
    pub(crate) const NONE: Self = Self {
        reply: None,
        request: None,
    };

    pub(crate) fn of(client: &Client, call: &Call<'_>, now: Instant64) -> Self {
        let mut reply = call.policies.round_trip().map(|wait| now.after(wait));
        let mut sent = call.policies.request().map(|wait| now.after(wait));
        if let Some(times) = call.times {
            let moment = client.moment(now);
            let instant = |time| moment.instant(time);
            reply = earlier(reply, times.reply_end.map(instant));
            sent = earlier(sent, times.request_end.map(instant));
        }
        Self {
            reply,
            request: earlier(reply, sent),
        }
    }
}

fn earlier(one: Option<Instant64>, other: Option<Instant64>) -> Option<Instant64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

impl Call<'_> {
    /// Whether it may not be sent at any time.
    #[inline]
    pub(super) fn is_timed(&self) -> bool {
        self.times.is_some() || self.policies.has_request_end()
    }

    /// Whether anything of it ends or begins at a time.
    #[inline]
    pub(super) fn needs_time(&self) -> bool {
        self.is_timed()
            || !self.policies.is_empty()
                && (self.policies.round_trip().is_some() || self.policies.request().is_some())
    }
}

impl Client {
    /// Waits for the start of a call that has one, and tells until when it may take.
    ///
    /// # Errors
    /// As [`Client::start`].
    #[inline(never)]
    pub(super) fn begin(&self, call: &Call<'_>) -> Result<Deadlines, SystemException> {
        let now = self.transport.now();
        let deadlines = Deadlines::of(self, call, now);
        self.start(call, now, deadlines)?;
        Ok(deadlines)
    }

    fn moment(&self, now: Instant64) -> Moment {
        Moment {
            now,
            utc_ns: self.transport.utc_ns(),
        }
    }

    /// Whether times may go out with a call of these policies.
    #[inline]
    pub(crate) fn may_say_times(&self, policies: &Overrides) -> bool {
        policies.has_times() || self.clock_bound.is_some()
    }

    /// The times that go out with a call of these policies: those that are set, and the ends that its relative timeouts come to, where
    /// the bound of our clock is known.
    #[cold]
    pub(crate) fn times(&self, policies: &Overrides) -> Option<Times> {
        let mut times = policies.times();
        if let Some(bound) = self.clock_bound {
            let moment = self.moment(self.transport.now());
            let end = |wait| moment.utc_after(wait, bound);
            times.request_end = deadline::earlier(times.request_end, policies.request().map(end));
            times.reply_end = deadline::earlier(times.reply_end, policies.round_trip().map(end));
        }
        (!times.is_empty()).then_some(times)
    }

    /// Waits for the start of a call that has one.
    ///
    /// # Errors
    /// TIMEOUT for a call that has ended or would before it may begin; IMP_LIMIT for a start that lies too far ahead.
    #[inline]
    pub(super) fn start(
        &self,
        call: &Call<'_>,
        now: Instant64,
        deadlines: Deadlines,
    ) -> Result<(), SystemException> {
        match call.is_timed() {
            true => self.start_at(&call.times.copied().unwrap_or_default(), now, deadlines),
            false => Ok(()),
        }
    }

    #[inline(never)]
    fn start_at(
        &self,
        times: &Times,
        now: Instant64,
        deadlines: Deadlines,
    ) -> Result<(), SystemException> {
        let moment = self.moment(now);
        let instant = |time| moment.instant(time);
        let request = times.request_start.map_or(now, instant).max(now);
        let reply = times.reply_start.map_or(request, instant);
        let is_past = |end: Option<Instant64>, at| end.is_some_and(|end| end <= at);
        if is_past(deadlines.request, request) || is_past(deadlines.reply, reply.max(request)) {
            return Err(self.ended());
        }
        if reply.max(request).since(now) > START_AHEAD_MAX {
            return Err(raise::imp_limit(own::START_TOO_FAR, Completion::No));
        }
        if request > now {
            self.transport.sleep_until(request);
        }
        Ok(())
    }

    /// Waits until the reply that has come may be given to the caller.
    pub(super) fn wait_for_reply_start(&self, times: Option<&Times>) {
        if let Some(start) = self.reply_start(times) {
            self.transport.sleep_until(start);
        }
    }

    /// When the reply that has come may be given to the caller; none: now.
    pub(super) fn reply_start(&self, times: Option<&Times>) -> Option<Instant64> {
        let start = times?.reply_start?;
        let now = self.transport.now();
        let at = self.moment(now).instant(start);
        // It was near enough when the call began; a clock set since must not hold the caller for ever.
        let at = at.min(now.after(START_AHEAD_MAX));
        (at > now).then_some(at)
    }

    /// # Errors
    /// TIMEOUT for a request whose own end has come while it was not sent yet.
    #[inline]
    pub(super) fn require_end(
        &self,
        call: &Call<'_>,
        deadline: Option<Instant64>,
    ) -> Result<(), Failure> {
        match deadline {
            Some(deadline) if call.policies.has_request_end() => self.require_before(deadline),
            _ => Ok(()),
        }
    }

    #[cold]
    fn require_before(&self, deadline: Instant64) -> Result<(), Failure> {
        match deadline <= self.transport.now() {
            true => Err(Failure::unsent(self.ended())),
            false => Ok(()),
        }
    }

    #[cold]
    fn ended(&self) -> SystemException {
        self.counters.count(Counter::RequestsPastEnd);
        self.timed_out(own::END_TIME_PASSED, Completion::No)
    }
}

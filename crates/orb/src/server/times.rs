//! Requests that have come too late or too early by the times that travelled with them.

use std::sync::Arc;
use std::time::Duration;

use deckwatch_giop::invocation::Times;
use deckwatch_giop::{Request, Response};

use crate::contexts;
use crate::counters::{Counter, Counters};
use crate::limits::START_AHEAD_MAX;
use crate::rt::deadline::{Verdict, verdict};
use crate::transport::{Instant64, Transport};
use crate::{Completion, SystemException, minor, raise, raise::own};

/// The clock by which the times of requests are judged.
pub(super) struct RequestTimes {
    transport: Arc<dyn Transport>,
    counters: Arc<Counters>,
    /// How far our clock may be off UTC, where that is known.
    clock_bound: Option<Duration>,
}

impl RequestTimes {
    pub(super) const fn new(
        transport: Arc<dyn Transport>,
        counters: Arc<Counters>,
        clock_bound: Option<Duration>,
    ) -> Self {
        Self {
            transport,
            counters,
            clock_bound,
        }
    }

    /// How long a request may wait; none: as long as it takes.
    pub(super) fn left(&self, until: Option<Instant64>) -> Option<Duration> {
        until.map(|until| until.since(self.transport.now()))
    }

    /// When a request that has come too early may be served; none: now.
    ///
    /// # Errors
    /// TIMEOUT for one whose end, or that of its reply, has passed: it is dropped, and counted. TRANSIENT for one whose start lies too far
    /// ahead.
    #[inline]
    pub(super) fn start_of(
        &self,
        request: &Request<'_>,
    ) -> Result<Option<Instant64>, SystemException> {
        match contexts::read::times(request)? {
            None => Ok(None),
            Some(times) => self.start_by(request, &times),
        }
    }

    fn start_by(
        &self,
        request: &Request<'_>,
        times: &Times,
    ) -> Result<Option<Instant64>, SystemException> {
        let Some(bound) = self.clock_bound else {
            self.counters.count(Counter::TimesIgnored);
            return Ok(None);
        };
        let has_reply = request.response == Response::Outcome;
        match verdict(times, has_reply, self.transport.utc_ns(), bound) {
            Verdict::Due => Ok(None),
            Verdict::Early(wait) if wait <= START_AHEAD_MAX => {
                Ok(Some(self.transport.now().after(wait)))
            }
            Verdict::Early(_) => {
                self.counters.count(Counter::RequestsDiscarded);
                let too_far = raise::transient(minor::REQUEST_DISCARDED, Completion::No);
                Err(too_far)
            }
            Verdict::Late => {
                self.counters.count(Counter::RequestsDropped);
                Err(raise::timeout(own::END_TIME_PASSED, Completion::No))
            }
        }
    }

    /// For a request that had its start once, and has waited since.
    ///
    /// # Errors
    /// TIMEOUT where its end has passed meanwhile.
    pub(super) fn require_end(&self, request: &Request<'_>) -> Result<(), SystemException> {
        self.start_of(request).map(drop)
    }

    /// Has the calling thread wait for the start of its own request.
    pub(super) fn await_start(&self, start: Instant64) {
        self.transport.sleep_until(start);
    }
}

//! Requests that arrive before their start time or after their end time.

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

/// Compares the times of requests with the local clock.
pub(super) struct RequestTimes {
    transport: Arc<dyn Transport>,
    counters: Arc<Counters>,
    /// The largest error of the local clock against UTC, if it is known.
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

    /// Returns how long a request may wait; `None` if there is no limit.
    pub(super) fn left(&self, until: Option<Instant64>) -> Option<Duration> {
        until.map(|until| until.since(self.transport.now()))
    }

    /// Returns when an early request may be served; `None` if it may be served now.
    ///
    /// # Errors
    /// TIMEOUT if the end time of the request or of its reply has passed, TRANSIENT if the start time is too far ahead.
    /// Both are counted.
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

    /// Checks the end time again, for a request that has waited.
    ///
    /// # Errors
    /// TIMEOUT if it has passed meanwhile.
    pub(super) fn require_end(&self, request: &Request<'_>) -> Result<(), SystemException> {
        self.start_of(request).map(drop)
    }

    /// Blocks the calling thread until the start time of its own request.
    pub(super) fn await_start(&self, start: Instant64) {
        self.transport.sleep_until(start);
    }
}

//! Requests that have come too late or too early by the times that travelled with them.

use deckwatch_giop::invocation::Times;
use deckwatch_giop::{Request, Response};

use crate::contexts;
use crate::counters::Counter;
use crate::lane::Lane;
use crate::limits::START_AHEAD_MAX;
use crate::rt::deadline::{Verdict, verdict};
use crate::transport::Instant64;
use crate::{Completion, SystemException, minor, raise, raise::own};

impl Lane {
    /// When a request that has come too early may be served; none: now.
    ///
    /// # Errors
    /// TIMEOUT for one whose end, or that of its reply, has passed: it is dropped, and counted. TRANSIENT for one whose start lies too far
    /// ahead.
    #[inline]
    pub(crate) fn start_of(
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
        let Some(bound) = self.shape.clock_bound else {
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
    pub(crate) fn require_end(&self, request: &Request<'_>) -> Result<(), SystemException> {
        self.start_of(request).map(drop)
    }

    /// For a request of the calling thread itself, which waits for its start.
    ///
    /// # Errors
    /// As [`Lane::start_of`].
    pub(crate) fn await_start(&self, request: &Request<'_>) -> Result<(), SystemException> {
        match self.start_of(request)? {
            None => Ok(()),
            Some(start) => {
                self.transport.sleep_until(start);
                self.require_end(request)
            }
        }
    }
}

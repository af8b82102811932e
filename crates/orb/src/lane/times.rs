//! Requests that have come too late or too early by the times that travelled with them.

use deckwatch_giop::invocation::Times;
use deckwatch_giop::{Request, Response, context_id};

use super::Lane;
use crate::counters::Counter;
use crate::limits::START_AHEAD_MAX;
use crate::rt::deadline::{Verdict, verdict};
use crate::{Completion, SystemException, minor, raise, raise::own};

impl Lane {
    /// Holds a request until its start.
    ///
    /// # Errors
    /// TIMEOUT for one whose end, or that of its reply, has passed: it is dropped, and counted. TRANSIENT for one whose start lies too far
    /// ahead, or where no thread can be spared to wait for it.
    #[inline]
    pub(super) fn require_time(&self, request: &Request<'_>) -> Result<(), SystemException> {
        if request.contexts.is_empty() {
            return Ok(());
        }
        match request.contexts.find(context_id::INVOCATION_POLICIES) {
            None => Ok(()),
            Some(data) => self.keep_times(request, data),
        }
    }

    fn keep_times(&self, request: &Request<'_>, data: &[u8]) -> Result<(), SystemException> {
        let times = Times::parse(data)?;
        if times.is_empty() {
            return Ok(());
        }
        let Some(bound) = self.shape.clock_bound else {
            self.counters.count(Counter::TimesIgnored);
            return Ok(());
        };
        let has_reply = request.response == Response::Outcome;
        let now = || verdict(&times, has_reply, self.transport.utc_ns(), bound);
        let mut verdict = now();
        if let Verdict::Early(wait) = verdict {
            let cannot = || {
                self.counters.count(Counter::RequestsDiscarded);
                raise::transient(minor::REQUEST_DISCARDED, Completion::No)
            };
            if wait > START_AHEAD_MAX {
                return Err(cannot());
            }
            let _hold = self.holds.take().ok_or_else(cannot)?;
            self.transport.sleep_until(self.transport.now().after(wait));
            verdict = now();
        }
        if verdict == Verdict::Late {
            self.counters.count(Counter::RequestsDropped);
            return Err(raise::timeout(own::END_TIME_PASSED, Completion::No));
        }
        Ok(())
    }
}

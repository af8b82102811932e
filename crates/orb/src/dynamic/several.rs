//! Several dynamic requests at a time (CORBA 3.3 part 1, clauses 11.3 and 8.2.2.4): the ORB keeps those that are deferred, and gives them
//! back as their replies come.

use std::sync::{Arc, MutexGuard, PoisonError};

use super::request::{Request, RequestError};
use crate::client::ReplySource;
use crate::orb::{Orb, OrbCore};
use crate::transport::Instant64;
use crate::{Completion, SystemException, minor, raise};

impl Orb {
    /// Sends each request as a one-way, whatever its operation is; all are tried.
    ///
    /// # Errors
    /// As [`Request::send_oneway`], of the first that could not be sent.
    pub fn send_multiple_requests_oneway<'r>(
        &self,
        requests: impl IntoIterator<Item = &'r mut Request>,
    ) -> Result<(), SystemException> {
        self.0.require_life()?;
        let mut outcome = Ok(());
        for request in requests {
            outcome = outcome.and(request.send_oneway());
        }
        outcome
    }

    /// Sends requests without waiting for their replies; [`Orb::next_response`] gives them back.
    ///
    /// # Errors
    /// As [`Request::send_deferred`]: those before the first that could not be sent are under way, it and those behind it are not.
    pub fn send_multiple_requests_deferred(
        &self,
        requests: impl IntoIterator<Item = Request>,
    ) -> Result<(), SystemException> {
        self.0.require_life()?;
        for mut request in requests {
            request.send_deferred()?;
            self.0.deferred().push(request);
        }
        Ok(())
    }

    /// Whether [`Orb::next_response`] would not wait.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 11 where no request is under way.
    pub fn poll_next_response(&self) -> Result<bool, SystemException> {
        self.0.require_deferred()?;
        let now = self.0.client.transport.now();
        self.0.await_response(Some(now))
    }

    /// Waits for the reply to any of the requests sent by [`Orb::send_multiple_requests_deferred`], and gives that request with what
    /// it has come to: `get_next_response` of the standard.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 11 where no request is under way, 4 at the end of the ORB; TRANSIENT where the calling
    /// thread is the last that could read the reply.
    pub fn next_response(&self) -> Result<(Request, Result<(), RequestError>), SystemException> {
        loop {
            self.0.require_deferred()?;
            self.0.await_response(None)?;
            let mut requests = self.0.deferred();
            let ready = requests.iter().position(Request::has_ended);
            let Some(ready) = ready else {
                drop(requests);
                // Another thread has taken it, or the ORB ends.
                self.0.require_life()?;
                continue;
            };
            let mut request = requests.swap_remove(ready);
            drop(requests);
            let outcome = request.response();
            return Ok((request, outcome));
        }
    }
}

impl OrbCore {
    fn deferred(&self) -> MutexGuard<'_, Vec<Request>> {
        let requests = self.deferred.lock();
        requests.unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up the requests whose replies nobody has asked for.
    pub(crate) fn forget_deferred(&self) {
        let requests = std::mem::take(&mut *self.deferred());
        drop(requests);
    }

    /// Waits until one of the requests has ended; false: none has by `until`. Who waits looks at them all, so that nobody may hold them.
    fn await_response(self: &Arc<Self>, until: Option<Instant64>) -> Result<bool, SystemException> {
        let Some(replies) = self.client.replies_made() else {
            return Ok(self.has_response());
        };
        replies.wait(self, until, || self.has_response(), || self.deferred_road())
    }

    /// What one of the requests waits on.
    pub(crate) fn deferred_road(&self) -> Option<ReplySource> {
        self.deferred().iter().find_map(Request::road)
    }

    fn has_response(&self) -> bool {
        self.deferred().is_empty() || self.has_response_ready()
    }

    /// Whether the reply to one of the requests has come.
    pub(crate) fn has_response_ready(&self) -> bool {
        self.deferred().iter().any(Request::has_ended)
    }

    fn require_deferred(&self) -> Result<(), SystemException> {
        self.require_life()?;
        match self.deferred().is_empty() {
            true => Err(raise::bad_inv_order(
                minor::REQUEST_NOT_SENT,
                Completion::No,
            )),
            false => Ok(()),
        }
    }
}

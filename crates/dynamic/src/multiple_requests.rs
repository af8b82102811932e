//! Several dynamic requests at a time (CORBA 3.3 part 1, clauses 11.3 and 8.2.2.4).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deckwatch_orb::{Completion, Orb, PendingReply, SystemException, minor};

use crate::raise;
use crate::request::{Request, RequestError};

/// The dynamic requests of an ORB that are sent together. The standard has these operations at the ORB.
///
/// Deferred requests stay here until [`MultipleRequests::next_response`] returns them; those that are left are
/// cancelled when this is dropped.
#[derive(Debug)]
pub struct MultipleRequests {
    orb: Orb,
    deferred: Mutex<Vec<Request>>,
}

impl MultipleRequests {
    /// Returns an empty set of requests of this ORB.
    #[must_use]
    pub fn new(orb: &Orb) -> Self {
        Self {
            orb: orb.clone(),
            deferred: Mutex::default(),
        }
    }

    /// Sends each request as a one-way, whatever its operation is. Tries all of them.
    ///
    /// # Errors
    /// As [`Request::send_oneway`], of the first that could not be sent.
    pub fn send_multiple_requests_oneway<'r>(
        &self,
        requests: impl IntoIterator<Item = &'r mut Request>,
    ) -> Result<(), SystemException> {
        let mut outcome = Ok(());
        for request in requests {
            outcome = outcome.and(request.send_oneway());
        }
        outcome
    }

    /// Sends requests without waiting for their replies; [`MultipleRequests::next_response`] returns them.
    ///
    /// # Errors
    /// As [`Request::send_deferred`]: those before the first that could not be sent are under way, the others are not.
    pub fn send_multiple_requests_deferred(
        &self,
        requests: impl IntoIterator<Item = Request>,
    ) -> Result<(), SystemException> {
        for mut request in requests {
            request.send_deferred()?;
            self.deferred().push(request);
        }
        Ok(())
    }

    /// Whether [`MultipleRequests::next_response`] would not wait.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 11 where no request is under way.
    pub fn poll_next_response(&self) -> Result<bool, SystemException> {
        let is_over = self.wait(Some(Duration::ZERO))?;
        self.require_deferred()?;
        Ok(is_over)
    }

    /// Waits for the reply to any of the deferred requests, and returns that request with its outcome
    /// (`get_next_response`).
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 11 where no request is under way, 4 at the end of the ORB;
    /// TRANSIENT where the calling thread is the last that could read the reply.
    pub fn next_response(&self) -> Result<(Request, Result<(), RequestError>), SystemException> {
        loop {
            self.wait(None)?;
            self.require_deferred()?;
            let mut requests = self.deferred();
            // Another thread may have taken it.
            let Some(ready) = requests.iter().position(has_ended) else {
                continue;
            };
            let mut request = requests.swap_remove(ready);
            drop(requests);
            let outcome = request.response();
            return Ok((request, outcome));
        }
    }

    /// Waits until one of the requests has ended, or none is left. The list is not locked meanwhile: other threads may
    /// add and take.
    fn wait(&self, limit: Option<Duration>) -> Result<bool, SystemException> {
        let is_over = || {
            let requests = self.deferred();
            requests.is_empty() || requests.iter().any(has_ended)
        };
        let next = || {
            let requests = self.deferred();
            let mut replies = requests.iter().filter_map(Request::reply);
            replies.find(|reply| reply.is_sent()).cloned()
        };
        PendingReply::wait_for_any(&self.orb, limit, is_over, next)
    }

    fn require_deferred(&self) -> Result<(), SystemException> {
        if self.deferred().is_empty() {
            Err(raise::bad_inv_order(
                minor::REQUEST_NOT_SENT,
                Completion::No,
            ))
        } else {
            Ok(())
        }
    }

    fn deferred(&self) -> MutexGuard<'_, Vec<Request>> {
        self.deferred.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn has_ended(request: &Request) -> bool {
    request.reply().is_some_and(PendingReply::has_ended)
}

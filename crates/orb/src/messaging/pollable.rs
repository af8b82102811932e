//! One thread that waits for the first of several replies (CORBA 3.3 part 1, clause 7.4).

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::poller::{Poller, not_in_time, until};
use crate::client::ReplySource;
use crate::orb::OrbCore;
use crate::transport::Instant64;
use crate::{Completion, SystemException, minor, raise};

/// Calls of which one thread waits for the first that has ended.
#[derive(Debug, Default)]
pub struct PollableSet {
    pub(super) members: Mutex<Vec<Pollable>>,
}

/// What can be waited for in a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pollable {
    /// A call whose reply is polled for.
    Poller(Poller),
    /// The replies to dynamic requests.
    Dii(DiiPollable),
}

/// The replies to the dynamic requests of an ORB that were sent by [`crate::Orb::send_multiple_requests_deferred`]: ready where one of them has
/// come, which [`crate::Orb::next_response`] gives.
#[derive(Clone)]
pub struct DiiPollable(Arc<OrbCore>);

/// Why a set gives no pollable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollableSetError {
    /// The set is empty.
    NoPossiblePollable,
    /// The pollable is not in the set.
    UnknownPollable,
    /// NO_RESPONSE or TIMEOUT, with the standard's minor code 1: nothing is ready. TRANSIENT as by [`Poller::is_ready`].
    System(SystemException),
}

impl PollableSet {
    /// What waits for dynamic requests in this set, to be added to it.
    ///
    /// # Errors
    /// BAD_INV_ORDER where nothing in the set tells of which ORB.
    pub fn create_dii_pollable(&self) -> Result<DiiPollable, SystemException> {
        let members = self.members();
        let first = members.first();
        let first = first.ok_or_else(|| raise::bad_inv_order(0, Completion::No))?;
        Ok(DiiPollable(Arc::clone(first.orb())))
    }

    /// Adds a pollable, of the same ORB as the others.
    ///
    /// # Errors
    /// BAD_PARAM with the standard's minor code 43 for one that is in the set, without one for another ORB's.
    pub fn add_pollable(&self, pollable: impl Into<Pollable>) -> Result<(), SystemException> {
        let pollable = pollable.into();
        let mut members = self.members();
        if members.contains(&pollable) {
            return Err(raise::bad_param(minor::POLLABLE_TWICE, Completion::No));
        }
        let is_alien = |other: &Pollable| !Arc::ptr_eq(other.orb(), pollable.orb());
        if members.first().is_some_and(is_alien) {
            return Err(raise::bad_param(0, Completion::No));
        }
        members.push(pollable);
        Ok(())
    }

    /// Takes the first that is ready out of the set; waits at most so many milliseconds, `u32::MAX` being for ever.
    ///
    /// # Errors
    /// [`PollableSetError::NoPossiblePollable`]; NO_RESPONSE where nothing is ready and the timeout is 0, TIMEOUT where nothing was in
    /// time, TRANSIENT as by [`Poller::is_ready`], BAD_INV_ORDER at the end of the ORB where only dynamic requests are waited for.
    pub fn ready_pollable(&self, timeout_ms: u32) -> Result<Pollable, PollableSetError> {
        let members = self.members().clone();
        let first = members
            .first()
            .ok_or(PollableSetError::NoPossiblePollable)?;
        let orb = Arc::clone(first.orb());
        let until = until(&orb, timeout_ms);
        let ready = || members.iter().find(|one| one.is_ready());
        let road = || members.iter().find_map(Pollable::road);
        let waited = wait(&orb, until, || ready().is_some(), road);
        waited.map_err(PollableSetError::System)?;
        let late = || PollableSetError::System(not_in_time(timeout_ms));
        let ready = ready().ok_or_else(late)?;
        // Another thread may have had it first.
        self.remove(ready.clone()).map(|()| ready.clone())
    }

    /// Takes a pollable out of the set.
    ///
    /// # Errors
    /// [`PollableSetError::UnknownPollable`].
    pub fn remove(&self, pollable: impl Into<Pollable>) -> Result<(), PollableSetError> {
        let pollable = pollable.into();
        let mut members = self.members();
        let place = members.iter().position(|one| *one == pollable);
        members.remove(place.ok_or(PollableSetError::UnknownPollable)?);
        Ok(())
    }

    /// How many are in the set.
    #[must_use]
    pub fn number_left(&self) -> usize {
        self.members().len()
    }

    fn members(&self) -> MutexGuard<'_, Vec<Pollable>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pollable {
    /// The poller that it is; none where it waits for dynamic requests.
    #[must_use]
    pub const fn poller(&self) -> Option<&Poller> {
        match self {
            Self::Poller(poller) => Some(poller),
            Self::Dii(_) => None,
        }
    }

    fn orb(&self) -> &Arc<OrbCore> {
        match self {
            Self::Poller(poller) => poller.call().orb(),
            Self::Dii(DiiPollable(orb)) => orb,
        }
    }

    fn is_ready(&self) -> bool {
        match self {
            Self::Poller(poller) => poller.call().has_ended(),
            Self::Dii(DiiPollable(orb)) => orb.has_response_ready(),
        }
    }

    fn road(&self) -> Option<ReplySource> {
        match self {
            Self::Poller(poller) => poller.call().road(),
            Self::Dii(DiiPollable(orb)) => orb.deferred_road(),
        }
    }
}

impl DiiPollable {
    /// Whether a reply is there; waits for one at most so many milliseconds, `u32::MAX` being for ever.
    ///
    /// # Errors
    /// BAD_INV_ORDER at the end of the ORB; TRANSIENT as by [`Poller::is_ready`].
    pub fn is_ready(&self, timeout_ms: u32) -> Result<bool, SystemException> {
        let orb = &self.0;
        let is_ready = || orb.has_response_ready();
        wait(orb, until(orb, timeout_ms), is_ready, || {
            orb.deferred_road()
        })?;
        Ok(is_ready())
    }
}

/// Waits, and tells the end of the ORB, which alone ends a wait before its time.
fn wait(
    orb: &Arc<OrbCore>,
    until: Option<Instant64>,
    is_over: impl Fn() -> bool,
    reads: impl Fn() -> Option<ReplySource>,
) -> Result<(), SystemException> {
    let Some(replies) = orb.client.replies_made() else {
        return Ok(());
    };
    let is_over = replies.wait(orb, until, is_over, reads)?;
    let is_late = || until.is_some_and(|until| until <= orb.client.transport.now());
    if is_over || is_late() {
        return Ok(());
    }
    Err(raise::bad_inv_order(minor::ORB_SHUT_DOWN, Completion::No))
}

impl From<&Poller> for Pollable {
    fn from(poller: &Poller) -> Self {
        Self::Poller(poller.clone())
    }
}

impl From<&DiiPollable> for Pollable {
    fn from(pollable: &DiiPollable) -> Self {
        Self::Dii(pollable.clone())
    }
}

/// Of the same ORB.
impl PartialEq for DiiPollable {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for DiiPollable {}

impl fmt::Debug for DiiPollable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DiiPollable")
    }
}

impl fmt::Display for PollableSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPossiblePollable => f.write_str("The set of pollables is empty."),
            Self::UnknownPollable => f.write_str("The pollable is not in the set."),
            Self::System(exception) => exception.fmt(f),
        }
    }
}

impl std::error::Error for PollableSetError {}

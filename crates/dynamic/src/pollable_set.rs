//! Sets of pollers: one thread waits for the first of several replies (CORBA 3.3 part 1, clause 11.4).

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use deckwatch_orb::{Completion, PendingReply, SystemException, minor};

use crate::poller::{Poller, limit, not_in_time};
use crate::raise;

/// Pollers of one ORB; a thread waits for the first whose reply is here.
#[derive(Debug, Default)]
pub struct PollableSet {
    members: Mutex<Vec<Poller>>,
}

/// Why a set returns no poller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollableSetError {
    /// The set is empty.
    NoPossiblePollable,
    /// The poller is not in the set.
    UnknownPollable,
    /// NO_RESPONSE or TIMEOUT, with the standard's minor code 1: no reply is here. TRANSIENT as by
    /// [`Poller::is_ready`].
    System(SystemException),
}

impl PollableSet {
    pub(crate) fn with(poller: &Poller) -> Self {
        let members = Mutex::new(vec![poller.clone()]);
        Self { members }
    }

    /// Adds a poller, of the same ORB as the others.
    ///
    /// # Errors
    /// BAD_PARAM: with the standard's minor code 43 for a poller that is in the set, without one for a poller of
    /// another ORB.
    pub fn add_pollable(&self, poller: &Poller) -> Result<(), SystemException> {
        let mut members = self.members();
        if members.contains(poller) {
            return Err(raise::bad_param(minor::POLLABLE_TWICE, Completion::No));
        }
        let is_alien = |other: &Poller| other.reply().orb() != poller.reply().orb();
        if members.first().is_some_and(is_alien) {
            return Err(raise::bad_param(0, Completion::No));
        }
        members.push(poller.clone());
        Ok(())
    }

    /// Takes the first poller with a reply out of the set (`get_ready_pollable`). Waits at most `timeout_ms`
    /// milliseconds; `u32::MAX` waits for ever.
    ///
    /// # Errors
    /// * [`PollableSetError::NoPossiblePollable`];
    /// * NO_RESPONSE: no reply is here, and the timeout is 0;
    /// * TIMEOUT: none came in time;
    /// * TRANSIENT: as by [`Poller::is_ready`].
    pub fn ready_pollable(&self, timeout_ms: u32) -> Result<Poller, PollableSetError> {
        let members = self.members().clone();
        let first = members
            .first()
            .ok_or(PollableSetError::NoPossiblePollable)?;
        let ready = || members.iter().find(|one| one.reply().has_ended());
        if ready().is_none() {
            let next = || {
                members
                    .iter()
                    .map(Poller::reply)
                    .find(|one| one.is_sent())
                    .cloned()
            };
            let orb = first.reply().orb();
            PendingReply::wait_for_any(&orb, limit(timeout_ms), || ready().is_some(), next)
                .map_err(PollableSetError::System)?;
        }
        let late = || PollableSetError::System(not_in_time(timeout_ms));
        let ready = ready().ok_or_else(late)?;
        // Another thread may have taken it meanwhile.
        self.remove(ready).map(|()| ready.clone())
    }

    /// Takes a poller out of the set.
    ///
    /// # Errors
    /// [`PollableSetError::UnknownPollable`].
    pub fn remove(&self, poller: &Poller) -> Result<(), PollableSetError> {
        let mut members = self.members();
        let place = members.iter().position(|one| one == poller);
        members.remove(place.ok_or(PollableSetError::UnknownPollable)?);
        Ok(())
    }

    /// How many pollers are in the set.
    #[must_use]
    pub fn number_left(&self) -> usize {
        self.members().len()
    }

    fn members(&self) -> MutexGuard<'_, Vec<Poller>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
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

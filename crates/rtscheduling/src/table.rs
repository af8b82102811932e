//! The distributable threads that an ORB knows: those that began here, and those with requests that it serves now.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use deckwatch_orb::{Completion, SystemException};
use deckwatch_sync::PiMutex;

use crate::limits::DISTRIBUTABLE_THREADS_MAX;
use crate::{IdType, Scheduler, raise, raise::own};

/// The scheduler of an ORB, and the distributable threads that the ORB knows.
pub(crate) struct Threads {
    pub(crate) scheduler: Arc<dyn Scheduler>,
    /// All memory is allocated when the ORB is made.
    known: PiMutex<HashMap<IdType, Known>>,
}

struct Known {
    /// The threads of this process that run the distributable thread: one in a segment, and one for each request that
    /// is served here.
    visits: u32,
    is_cancelled: bool,
}

impl Threads {
    pub(crate) fn new(scheduler: Arc<dyn Scheduler>) -> Self {
        Self {
            scheduler,
            known: PiMutex::new(HashMap::with_capacity(DISTRIBUTABLE_THREADS_MAX)),
        }
    }

    /// Counts a thread of this process that runs the distributable thread `id`.
    ///
    /// # Errors
    /// THREAD_CANCELLED; NO_RESOURCES above [`DISTRIBUTABLE_THREADS_MAX`].
    pub(crate) fn enter(&self, id: IdType) -> Result<(), SystemException> {
        let mut threads = self.known.lock("scheduling.enter");
        if let Some(known) = threads.get_mut(&id) {
            if known.is_cancelled {
                return Err(raise::thread_cancelled(Completion::No));
            }
            known.visits += 1;
            return Ok(());
        }
        if threads.len() >= DISTRIBUTABLE_THREADS_MAX {
            let full = raise::no_resources(own::TOO_MANY_THREADS);
            return Err(full);
        }
        let known = Known {
            visits: 1,
            is_cancelled: false,
        };
        threads.insert(id, known);
        Ok(())
    }

    /// Reverts [`Threads::enter`].
    pub(crate) fn leave(&self, id: IdType) {
        let mut threads = self.known.lock("scheduling.leave");
        if let Some(known) = threads.get_mut(&id) {
            known.visits -= 1;
            if known.visits == 0 {
                threads.remove(&id);
            }
        }
    }

    pub(crate) fn is_cancelled(&self, id: IdType) -> bool {
        let threads = self.known.lock("scheduling.state");
        threads.get(&id).is_some_and(|known| known.is_cancelled)
    }

    /// Returns the thread of this id if it is known here.
    pub(crate) fn find(self: &Arc<Self>, id: IdType) -> Option<DistributableThread> {
        let is_known = self.known.lock("scheduling.find").contains_key(&id);
        is_known.then(|| DistributableThread {
            threads: Arc::clone(self),
            id,
        })
    }

    /// # Errors
    /// OBJECT_NOT_EXIST for a thread that is not known here.
    pub(crate) fn cancel(&self, id: IdType) -> Result<(), SystemException> {
        {
            let mut threads = self.known.lock("scheduling.cancel");
            let known = threads.get_mut(&id).ok_or(unknown())?;
            if std::mem::replace(&mut known.is_cancelled, true) {
                return Ok(());
            }
        }
        self.scheduler.cancel(&id);
        Ok(())
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let discipline = self.scheduler.scheduling_discipline_name();
        f.debug_tuple("Threads").field(&discipline).finish()
    }
}

const fn unknown() -> SystemException {
    raise::object_not_exist(own::THREAD_UNKNOWN)
}

/// RTScheduling::DistributableThread::DT_State.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DtState {
    /// It runs.
    Active,
    /// It has been cancelled and ends at its next scheduling point.
    Cancelled,
}

/// A distributable thread as this ORB knows it (RTScheduling::DistributableThread).
#[derive(Clone)]
pub struct DistributableThread {
    pub(crate) threads: Arc<Threads>,
    pub(crate) id: IdType,
}

impl DistributableThread {
    /// Returns its id.
    #[must_use]
    pub const fn id(&self) -> IdType {
        self.id
    }

    /// Cancels the thread: its next scheduling point here raises THREAD_CANCELLED. Scheduling points are the beginning,
    /// change and end of a segment, a call, its reply, and the end of a request. An exception raised while a request is
    /// served goes back with the reply and cancels the thread at the caller too.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if the thread is not known here, or not any more.
    pub fn cancel(&self) -> Result<(), SystemException> {
        self.threads.cancel(self.id)
    }

    /// Returns its state.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if the thread is not known here, or not any more.
    pub fn state(&self) -> Result<DtState, SystemException> {
        let threads = self.threads.known.lock("scheduling.state");
        let known = threads.get(&self.id).ok_or(unknown())?;
        Ok(if known.is_cancelled {
            DtState::Cancelled
        } else {
            DtState::Active
        })
    }
}

impl fmt::Debug for DistributableThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DistributableThread")
            .field("id", &self.id)
            .field("state", &self.state())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RankedScheduler;

    #[test]
    fn threads_beyond_the_limit_are_refused_until_requests_of_others_have_ended() {
        let threads = Threads::new(Arc::new(RankedScheduler::fixed_priority()));
        let held = IdType::fresh();
        assert_eq!(threads.enter(held), Ok(()));
        for _ in 1..DISTRIBUTABLE_THREADS_MAX {
            assert_eq!(threads.enter(IdType::fresh()), Ok(()));
        }
        let other = IdType::fresh();
        let full = Err(raise::no_resources(own::TOO_MANY_THREADS));
        assert_eq!(threads.enter(other), full);
        // Another request of a thread that is known takes no place, and gives none back.
        assert_eq!(threads.enter(held), Ok(()));
        threads.leave(held);
        assert_eq!(threads.enter(other), full);
        threads.leave(held);
        assert_eq!(threads.enter(other), Ok(()));
        assert_eq!(threads.enter(held), full);
    }
}

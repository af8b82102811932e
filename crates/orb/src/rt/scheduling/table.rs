//! The distributable threads that an ORB knows: those that began here, and those whose requests it serves now.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use deckwatch_sync::PiMutex;

use super::{IdType, Scheduler};
use crate::limits::DISTRIBUTABLE_THREADS_MAX;
use crate::{Completion, SystemException, raise, raise::own};

/// The scheduler of an ORB, and the threads it knows.
pub(crate) struct SchedulingCore {
    pub(super) scheduler: Arc<dyn Scheduler>,
    /// All memory is taken when it is made.
    threads: PiMutex<HashMap<IdType, Known>>,
}

struct Known {
    /// Threads of this process that go on as it: one in a segment, and one for each of its requests that is served here.
    visits: u32,
    is_cancelled: bool,
}

impl SchedulingCore {
    pub(crate) fn new(scheduler: Arc<dyn Scheduler>) -> Self {
        Self {
            scheduler,
            threads: PiMutex::new(HashMap::with_capacity(DISTRIBUTABLE_THREADS_MAX)),
        }
    }

    /// A thread of this process goes on as this distributable one from now on.
    ///
    /// # Errors
    /// THREAD_CANCELLED; NO_RESOURCES where there are too many.
    pub(super) fn come(&self, id: IdType) -> Result<(), SystemException> {
        let mut threads = self.threads.lock("scheduling.come");
        if let Some(known) = threads.get_mut(&id) {
            if known.is_cancelled {
                return Err(raise::thread_cancelled(0, Completion::No));
            }
            known.visits += 1;
            return Ok(());
        }
        if threads.len() >= DISTRIBUTABLE_THREADS_MAX {
            let full = raise::no_resources(own::TOO_MANY_THREADS, Completion::No);
            return Err(full);
        }
        let known = Known {
            visits: 1,
            is_cancelled: false,
        };
        threads.insert(id, known);
        Ok(())
    }

    /// It does no longer.
    pub(super) fn go(&self, id: IdType) {
        let mut threads = self.threads.lock("scheduling.go");
        if let Some(known) = threads.get_mut(&id) {
            known.visits -= 1;
            if known.visits == 0 {
                threads.remove(&id);
            }
        }
    }

    pub(super) fn is_cancelled(&self, id: IdType) -> bool {
        let threads = self.threads.lock("scheduling.state");
        threads.get(&id).is_some_and(|known| known.is_cancelled)
    }

    /// The thread of this id, if it is known here.
    pub(super) fn find(self: &Arc<Self>, id: IdType) -> Option<DistributableThread> {
        let is_known = self.threads.lock("scheduling.find").contains_key(&id);
        is_known.then(|| DistributableThread {
            core: Arc::clone(self),
            id,
        })
    }

    /// # Errors
    /// OBJECT_NOT_EXIST where it is not known here.
    pub(super) fn cancel(&self, id: IdType) -> Result<(), SystemException> {
        {
            let mut threads = self.threads.lock("scheduling.cancel");
            let known = threads.get_mut(&id).ok_or(unknown())?;
            if std::mem::replace(&mut known.is_cancelled, true) {
                return Ok(());
            }
        }
        self.scheduler.cancel(&id);
        Ok(())
    }
}

impl fmt::Debug for SchedulingCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let discipline = self.scheduler.scheduling_discipline_name();
        f.debug_tuple("SchedulingCore").field(&discipline).finish()
    }
}

const fn unknown() -> SystemException {
    raise::object_not_exist(own::THREAD_UNKNOWN, Completion::No)
}

/// RTScheduling::DistributableThread::DT_State.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DtState {
    /// It goes on.
    Active,
    /// It has been cancelled, and ends at its next scheduling point.
    Cancelled,
}

/// A distributable thread as this ORB knows it (RTScheduling::DistributableThread).
#[derive(Clone)]
pub struct DistributableThread {
    pub(super) core: Arc<SchedulingCore>,
    pub(super) id: IdType,
}

impl DistributableThread {
    /// Its id.
    #[must_use]
    pub const fn id(&self) -> IdType {
        self.id
    }

    /// Cancels it: at its next scheduling point here (the beginning, change or end of a segment, a call, its reply, the end of a request that
    /// it serves) THREAD_CANCELLED is raised. If that is in a request, the exception goes back with the reply and cancels it at the caller too.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST where it is not known here (any more).
    pub fn cancel(&self) -> Result<(), SystemException> {
        self.core.cancel(self.id)
    }

    /// Its state.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST where it is not known here (any more).
    pub fn state(&self) -> Result<DtState, SystemException> {
        let threads = self.core.threads.lock("scheduling.state");
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

//! The CORBA priority of the calling thread, and the native priority that follows from it.

use std::cell::Cell;
use std::sync::Arc;

use deckwatch_os::schedule::{self, Class};

use super::Priority;
use super::priority::Mappings;
use crate::counters::{Counter, Counters};
use crate::{Completion, SystemException, SystemExceptionKind as Kind, raise, raise::own};

thread_local! {
    static OF_THREAD: Cell<Option<Priority>> = const { Cell::new(None) };
}

/// Returns the CORBA priority of the calling thread, if it has one.
pub(crate) fn priority() -> Option<Priority> {
    OF_THREAD.get()
}

/// Sets the CORBA priority of the calling thread without its native one. Returns the one that it had.
pub(crate) fn replace(priority: Option<Priority>) -> Option<Priority> {
    OF_THREAD.replace(priority)
}

/// The calling thread has another priority until this is dropped.
pub(crate) struct AtPriority {
    before: Option<Priority>,
    class: Option<Class>,
}

impl Drop for AtPriority {
    fn drop(&mut self) {
        if let Some(class) = self.class {
            // The thread had this class before, so that it is permitted.
            let _ = schedule::set_class(class);
        }
        replace(self.before);
    }
}

/// How the threads of an ORB get their priorities.
pub(crate) struct ThreadPriorities {
    pub(crate) mappings: Mappings,
    /// Threads may work at another priority if the host does not permit the one that they should have.
    may_fall_back: bool,
    counters: Arc<Counters>,
}

impl ThreadPriorities {
    pub(crate) const fn new(
        mappings: Mappings,
        may_fall_back: bool,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            mappings,
            may_fall_back,
            counters,
        }
    }

    /// Puts the calling thread at this priority. If the host does not permit it and the ORB allows the fallback, the thread keeps its
    /// priority, and that is counted.
    ///
    /// # Errors
    /// NO_RESOURCES if it is not permitted, DATA_CONVERSION if no native priority is mapped to it.
    pub(crate) fn enter(&self, priority: Priority) -> Result<(), SystemException> {
        match self.mappings.enter(priority) {
            Err(denied) if denied.kind == Kind::NoPermission => {
                if !self.may_fall_back {
                    return Err(raise::no_resources(own::PRIORITY_DENIED, Completion::No));
                }
                self.counters.count(Counter::PriorityFallbacks);
                Ok(())
            }
            entered => entered,
        }
    }

    /// Puts the calling thread at this priority for a while. Returns `None` if it has it already.
    ///
    /// # Errors
    /// As [`ThreadPriorities::enter`].
    pub(crate) fn at(&self, priority: Priority) -> Result<Option<AtPriority>, SystemException> {
        let before = self::priority();
        if before == Some(priority) {
            return Ok(None);
        }
        let class = schedule::class().ok();
        self.enter(priority)?;
        replace(Some(priority));
        Ok(Some(AtPriority { before, class }))
    }

    /// As [`ThreadPriorities::at`], for work that is done also at another priority, which is counted.
    pub(crate) fn lend(&self, priority: Option<Priority>) -> Option<AtPriority> {
        self.at(priority?).unwrap_or_else(|_denied| {
            self.counters.count(Counter::PriorityFallbacks);
            None
        })
    }
}

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

/// Sets the CORBA priority of the calling thread, but not its native one. Returns the previous one.
pub(crate) fn replace(priority: Option<Priority>) -> Option<Priority> {
    OF_THREAD.replace(priority)
}

/// Restores the priority of the calling thread when dropped.
pub(crate) struct AtPriority {
    before: Option<Priority>,
    class: Option<Class>,
}

impl Drop for AtPriority {
    fn drop(&mut self) {
        if let Some(class) = self.class {
            // The host permits this class: the thread had it before.
            let _ = schedule::set_class(class);
        }
        replace(self.before);
    }
}

/// Sets the priorities of an ORB's threads.
pub(crate) struct ThreadPriorities {
    pub(crate) mappings: Mappings,
    /// A thread may work at another priority if the host refuses the intended one.
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

    /// Sets the native priority of the calling thread that is mapped to this one. If the host refuses it and the ORB
    /// allows the fallback, the thread keeps its native priority, and the fallback is counted.
    ///
    /// # Errors
    /// NO_RESOURCES if the host refuses it, DATA_CONVERSION if no native priority is mapped to it.
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

    /// Sets the priority of the calling thread until the result is dropped. Returns `None` if the thread has it
    /// already.
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

    /// As [`ThreadPriorities::at`], for work that is done even if the priority cannot be set; that is counted.
    pub(crate) fn lend(&self, priority: Option<Priority>) -> Option<AtPriority> {
        self.at(priority?).unwrap_or_else(|_denied| {
            self.counters.count(Counter::PriorityFallbacks);
            None
        })
    }
}

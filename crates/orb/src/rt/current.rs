//! The priority of the calling thread (RTCORBA 1.2: RTCORBA::Current).

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use deckwatch_os::schedule::{self, Class};

use super::Priority;
use crate::counters::Counter;
use crate::orb::OrbCore;
use crate::{Completion, SystemException, SystemExceptionKind as Kind, raise, raise::own};

thread_local! {
    static OF_THREAD: Cell<Option<Priority>> = const { Cell::new(None) };
}

/// The CORBA priority of the calling thread: what its calls travel with, and in an upcall what its request is served at. `RTCurrent` among
/// the standard's initial references.
#[derive(Clone)]
pub struct RtCurrent(pub(crate) Arc<OrbCore>);

impl RtCurrent {
    /// The priority that the thread was given last: by [`RtCurrent::set_the_priority`], or by the request that it serves.
    ///
    /// # Errors
    /// INITIALIZE where it was given none.
    pub fn the_priority(&self) -> Result<Priority, SystemException> {
        priority().ok_or(raise::initialize(own::PRIORITY_UNSET, Completion::No))
    }

    /// Gives the calling thread this priority, and at once the native one that the ORB's mapping has for it; in a servant until its request
    /// ends. (BAD_PARAM, which the standard
    /// wants for numbers outside 0 to 32767, comes from `Priority::try_from`.)
    ///
    /// # Errors
    /// DATA_CONVERSION with the standard's minor code 2 where the mapping has none; NO_PERMISSION where the host does not let the thread
    /// have it. The thread then keeps the one it has.
    pub fn set_the_priority(&self, priority: Priority) -> Result<(), SystemException> {
        self.0.mappings.enter(priority)?;
        replace(Some(priority));
        Ok(())
    }
}

impl fmt::Debug for RtCurrent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RtCurrent")
            .field("the_priority", &priority())
            .finish()
    }
}

/// The CORBA priority of the calling thread, if it has one.
pub(crate) fn priority() -> Option<Priority> {
    OF_THREAD.get()
}

/// Gives the calling thread a CORBA priority without a word to the scheduler; the one it had.
pub(crate) fn replace(priority: Option<Priority>) -> Option<Priority> {
    OF_THREAD.replace(priority)
}

/// The calling thread has another priority for a while; on drop it has the one before.
pub(crate) struct AtPriority {
    before: Option<Priority>,
    class: Option<Class>,
}

impl Drop for AtPriority {
    fn drop(&mut self) {
        if let Some(class) = self.class {
            // What the thread has had it may have again.
            let _restored = schedule::set_class(class);
        }
        replace(self.before);
    }
}

impl OrbCore {
    /// Puts the calling thread at this priority. Where the host does not permit it and the ORB may do without, it stays where
    /// it is, which is counted.
    ///
    /// # Errors
    /// NO_RESOURCES where it is not permitted, DATA_CONVERSION where no native priority is mapped to it.
    pub(crate) fn enter_priority(&self, priority: Priority) -> Result<(), SystemException> {
        match self.mappings.enter(priority) {
            Err(denied) if denied.kind == Kind::NoPermission => {
                if !self.settings.priority_fallback {
                    return Err(raise::no_resources(own::PRIORITY_DENIED, Completion::No));
                }
                self.client.counters.count(Counter::PriorityFallbacks);
                Ok(())
            }
            entered => entered,
        }
    }

    /// Puts the calling thread at this priority for a while. None: it has it already.
    ///
    /// # Errors
    /// As [`OrbCore::enter_priority`].
    pub(crate) fn at_priority(
        &self,
        priority: Priority,
    ) -> Result<Option<AtPriority>, SystemException> {
        let before = self::priority();
        if before == Some(priority) {
            return Ok(None);
        }
        let class = schedule::class().ok();
        self.enter_priority(priority)?;
        replace(Some(priority));
        Ok(Some(AtPriority { before, class }))
    }

    /// As [`OrbCore::at_priority`], for work that is done all the same where the host does not permit it, which is counted.
    pub(crate) fn lend_priority(&self, priority: Option<Priority>) -> Option<AtPriority> {
        self.at_priority(priority?).unwrap_or_else(|_denied| {
            self.client.counters.count(Counter::PriorityFallbacks);
            None
        })
    }
}

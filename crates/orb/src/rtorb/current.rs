//! The priority of the calling thread, set by the application (RTCORBA::Current).

use std::fmt;
use std::sync::Arc;

use crate::rt::Priority;
use crate::rt::current::{self, ThreadPriorities};
use crate::{Completion, SystemException, raise, raise::own};

/// The CORBA priority of the calling thread. The thread's calls carry it; in an upcall it is the priority of the
/// request. `RTCurrent` among the standard's initial references.
#[derive(Clone)]
pub struct RtCurrent(pub(crate) Arc<ThreadPriorities>);

impl RtCurrent {
    /// Returns the priority last set by [`RtCurrent::set_the_priority`] or by the request that the thread serves.
    ///
    /// # Errors
    /// INITIALIZE if it has none.
    pub fn the_priority(&self) -> Result<Priority, SystemException> {
        current::priority().ok_or(raise::initialize(own::PRIORITY_UNSET, Completion::No))
    }

    /// Sets the CORBA priority of the calling thread, and at once the native priority that the ORB's mapping has for
    /// it. In a servant the priority applies until the request ends. (BAD_PARAM, which the standard requires for
    /// numbers outside 0 to 32767, is raised by `Priority::try_from`.)
    ///
    /// # Errors
    /// DATA_CONVERSION with the standard's minor code 2 if the mapping has none; NO_PERMISSION if the host does not
    /// permit it. The thread then keeps its previous priority.
    pub fn set_the_priority(&self, priority: Priority) -> Result<(), SystemException> {
        self.0.mappings.enter(priority)?;
        current::replace(Some(priority));
        Ok(())
    }
}

impl fmt::Debug for RtCurrent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RtCurrent")
            .field("the_priority", &current::priority())
            .finish()
    }
}

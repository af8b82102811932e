//! The priority of the calling thread, as the application sets it (RTCORBA::Current).

use std::fmt;
use std::sync::Arc;

use crate::rt::Priority;
use crate::rt::current::{self, ThreadPriorities};
use crate::{Completion, SystemException, raise, raise::own};

/// The CORBA priority of the calling thread: its calls carry it, and in an upcall it is the priority of the request. `RTCurrent` among
/// the standard's initial references.
#[derive(Clone)]
pub struct RtCurrent(pub(crate) Arc<ThreadPriorities>);

impl RtCurrent {
    /// Returns the priority that the thread was given last: by [`RtCurrent::set_the_priority`], or by the request that it serves.
    ///
    /// # Errors
    /// INITIALIZE if it has none.
    pub fn the_priority(&self) -> Result<Priority, SystemException> {
        current::priority().ok_or(raise::initialize(own::PRIORITY_UNSET, Completion::No))
    }

    /// Gives the calling thread this priority, and at once the native priority that the ORB's mapping has for it. In a servant this holds
    /// until the request ends. (BAD_PARAM, which the standard requires for numbers outside 0 to 32767, is raised by `Priority::try_from`.)
    ///
    /// # Errors
    /// DATA_CONVERSION with the standard's minor code 2 if the mapping has none; NO_PERMISSION if the host does not permit it. The thread
    /// then keeps the priority that it has.
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

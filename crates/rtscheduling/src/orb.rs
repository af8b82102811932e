//! Extensions of the ORB: making it with a scheduler, and access to that scheduler.

use std::sync::Arc;

use deckwatch_orb::interceptor::{OrbInitError, OrbInitInfo, OrbInitializer};
use deckwatch_orb::{Orb, OrbBuilder};

use crate::interceptor::Interceptor;
use crate::table::Threads;
use crate::{Current, Scheduler};

/// The name of [`Current`] among the standard's initial references.
const CURRENT: &str = "RTScheduler_Current";

/// Adds a scheduler to an ORB that is being made.
pub trait SchedulerBuilder {
    /// Makes `scheduler` order the requests that wait for a thread of a lane, and follow the distributable threads of
    /// the ORB.
    fn scheduler(self, scheduler: impl Scheduler) -> Self;
}

impl SchedulerBuilder for OrbBuilder {
    fn scheduler(self, scheduler: impl Scheduler) -> Self {
        let threads = Threads::new(Arc::new(scheduler));
        self.initializer(Registration(Arc::new(threads)))
    }
}

/// The scheduler of an ORB.
pub trait SchedulerOrb {
    /// Returns the scheduling segments of the calling thread, the initial reference `RTScheduler_Current`; `None` if
    /// the ORB has no scheduler.
    fn rt_scheduler_current(&self) -> Option<Current>;

    /// Returns the scheduler, the initial reference `RTScheduler`; `None` if the ORB has none.
    fn rt_scheduler(&self) -> Option<Arc<dyn Scheduler>>;
}

impl SchedulerOrb for Orb {
    fn rt_scheduler_current(&self) -> Option<Current> {
        Some(Current::new(self.rt_current(), threads(self)?))
    }

    fn rt_scheduler(&self) -> Option<Arc<dyn Scheduler>> {
        Some(Arc::clone(&threads(self)?.scheduler))
    }
}

fn threads(orb: &Orb) -> Option<Arc<Threads>> {
    orb.resolve_local_reference(CURRENT)?.downcast().ok()
}

/// Registers the interceptors when the ORB is made.
struct Registration(Arc<Threads>);

impl OrbInitializer for Registration {
    fn pre_init(&self, info: &mut OrbInitInfo) -> Result<(), OrbInitError> {
        let interceptor = Arc::new(Interceptor(Arc::clone(&self.0)));
        info.add_client_request_interceptor(interceptor.clone())?;
        info.add_server_request_interceptor(interceptor.clone())?;
        info.set_request_order(interceptor);
        let threads = Arc::clone(&self.0);
        info.register_local_reference(CURRENT, threads)
    }
}

//! What references and calls need of their ORB, apart from all that serves.

use std::any::Any;
use std::sync::{Arc, OnceLock, Weak};

use crate::SystemException;
use crate::client::{Client, CollocatedServer};
use crate::life_state::LifeState;
use crate::origin::Origin;
use crate::policy::AtOrb;
use crate::rt::Priority;
use crate::rt::current::{AtPriority, ThreadPriorities};
use crate::transport::Endpoint;

/// The calling side of an ORB.
pub(crate) struct CallSide {
    pub(crate) client: Client,
    pub(crate) policies: AtOrb,
    pub(crate) priorities: Arc<ThreadPriorities>,
    pub(crate) life: LifeState,
    /// The ORB has no threads of its own.
    is_by_hand: bool,
    /// The whole ORB: a reference keeps it alive.
    whole: OnceLock<Weak<dyn WholeOrb>>,
}

/// What a reference asks of the ORB that serves objects.
pub(crate) trait WholeOrb: Any + Send + Sync {
    /// Returns whether a lane of the ORB is reached at `endpoint`.
    fn publishes(&self, endpoint: &Endpoint) -> bool;

    /// Returns what answers calls of the ORB to its own `endpoint` without the network.
    fn collocated_server(&self, endpoint: &Endpoint) -> Option<Weak<dyn CollocatedServer>>;

    /// Returns the endpoints at which the ORB listens.
    fn listening(&self) -> Vec<Endpoint>;

    /// Returns the origin of a reference that the calling thread reads now: the sender of the request that it serves,
    /// or this program.
    fn origin_here(&self) -> Origin;

    /// Offers servers to call back over the connections that are opened to them.
    fn offer_bidirectional(&self);
}

impl CallSide {
    pub(crate) fn new(
        client: Client,
        policies: AtOrb,
        priorities: Arc<ThreadPriorities>,
        is_by_hand: bool,
    ) -> Self {
        Self {
            client,
            policies,
            priorities,
            life: LifeState::default(),
            is_by_hand,
            whole: OnceLock::new(),
        }
    }

    /// Sets the ORB that references keep alive; called once, when the ORB is made.
    pub(crate) fn belong_to(&self, whole: Weak<dyn WholeOrb>) {
        self.client.belong_to(Weak::clone(&whole));
        let set = self.whole.set(whole);
        debug_assert!(set.is_ok(), "an ORB is made once");
    }

    /// Returns the whole ORB; `None` if its last handle has gone.
    pub(crate) fn whole(&self) -> Option<Arc<dyn WholeOrb>> {
        self.whole.get()?.upgrade()
    }

    /// Returns the origin of a reference that the calling thread reads now.
    pub(crate) fn origin_here(&self) -> Origin {
        if !self.client.is_restricted() {
            return Origin::Own;
        }
        self.whole()
            .map_or(Origin::Own, |whole| whole.origin_here())
    }

    #[inline]
    pub(crate) fn require_life(&self) -> Result<(), SystemException> {
        self.life.require()
    }

    /// Whether the ORB has no threads of its own.
    pub(crate) const fn is_turned_by_hand(&self) -> bool {
        self.is_by_hand
    }

    /// Sets the priority of the calling thread until the result is dropped.
    ///
    /// # Errors
    /// As [`ThreadPriorities::enter`].
    pub(crate) fn set_priority(
        &self,
        priority: Option<Priority>,
    ) -> Result<Option<AtPriority>, SystemException> {
        priority.map_or(Ok(None), |priority| self.priorities.at(priority))
    }

    /// As [`ThreadPriorities::lend`].
    pub(crate) fn lend_priority(&self, priority: Option<Priority>) -> Option<AtPriority> {
        self.priorities.lend(priority)
    }
}

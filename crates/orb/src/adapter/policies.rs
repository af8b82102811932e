//! The policies of an object adapter: the standard's seven (CORBA 3.3 part 1, 15.3.8), and those of real-time CORBA.

use super::PoaError;
use crate::connection::bidirectional::BidirectionalPolicyValue;
use crate::rt::{PriorityBands, PriorityModelPolicy, Protocols, ThreadpoolId};

/// How long references are valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lifespan {
    /// Until the ORB that made them ends.
    #[default]
    Transient,
    /// In later runs too: wherever an adapter of the same path serves the same id at the same endpoint.
    Persistent,
}

/// Which side chooses object ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdAssignment {
    /// The adapter.
    #[default]
    SystemId,
    /// The application.
    UserId,
}

/// Whether one servant may serve several ids of the adapter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdUniqueness {
    /// A servant serves one id.
    #[default]
    UniqueId,
    /// A servant may serve several ids.
    MultipleId,
}

/// Whether the adapter retains active objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServantRetention {
    /// The active object map retains them.
    #[default]
    Retain,
    /// Nothing is retained: the servant locator or the default servant serves every request.
    NonRetain,
}

/// What serves a request for an object that is not active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestProcessing {
    /// Nothing: the request raises OBJECT_NOT_EXIST.
    #[default]
    UseActiveObjectMapOnly,
    /// The default servant.
    UseDefaultServant,
    /// The servant manager.
    UseServantManager,
}

/// How requests are assigned to threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadPolicy {
    /// Any thread of the lane serves a request; threads share servants.
    #[default]
    OrbCtrlModel,
    /// One request of the adapter at a time.
    SingleThreadModel,
    /// One request of all such adapters at a time, on the thread that first called `Orb::run` or `Orb::perform_work`.
    /// Requests wait until a thread has called one of them.
    MainThreadModel,
}

/// Whether an adapter may activate a servant implicitly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImplicitActivation {
    /// The adapter does not.
    #[default]
    NoImplicitActivation,
    /// The adapter activates a servant when its reference or id is requested.
    ImplicitActivation,
}

/// The policies of one adapter; the default is the standard's for `create_poa`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policies {
    /// ThreadPolicy (id 16).
    pub thread: ThreadPolicy,
    /// LifespanPolicy (id 17).
    pub lifespan: Lifespan,
    /// IdUniquenessPolicy (id 18).
    pub id_uniqueness: IdUniqueness,
    /// IdAssignmentPolicy (id 19).
    pub id_assignment: IdAssignment,
    /// ImplicitActivationPolicy (id 20).
    pub implicit_activation: ImplicitActivation,
    /// ServantRetentionPolicy (id 21).
    pub servant_retention: ServantRetention,
    /// RequestProcessingPolicy (id 22).
    pub request_processing: RequestProcessing,
    /// BidirectionalPolicy (id 37): permits requests for objects over connections that this ORB has opened, and
    /// requests to clients over connections that they have opened.
    pub bidirectional: BidirectionalPolicyValue,
    /// RTCORBA::PriorityModelPolicy (id 40): which side sets the priority of requests. `None`: the threads keep their
    /// own priority.
    pub priority_model: Option<PriorityModelPolicy>,
    /// RTCORBA::ThreadpoolPolicy (id 41): the threadpool that serves. `None`: the default pool of the ORB.
    pub threadpool: Option<ThreadpoolId>,
    /// RTCORBA::ServerProtocolPolicy (id 42): the protocols for requests, most preferred first, with connection
    /// options. All adapters of a threadpool that set this policy must set the same value. `None`: all protocols of the
    /// pool's listeners.
    pub server_protocol: Option<Protocols>,
    /// RTCORBA::ClientProtocolPolicy (id 43), for clients: the protocols that they may use.
    pub client_protocol: Option<Protocols>,
    /// RTCORBA::PriorityBandedConnectionPolicy (id 45), for clients: the priorities that share a connection.
    pub priority_bands: Option<PriorityBands>,
}

impl Policies {
    /// The policies of the root adapter: the default with implicit activation.
    #[must_use]
    pub fn root() -> Self {
        Self {
            implicit_activation: ImplicitActivation::ImplicitActivation,
            ..Self::default()
        }
    }

    /// Persistent references under ids that the application chooses, for a service with a store.
    #[must_use]
    pub fn persistent() -> Self {
        Self {
            lifespan: Lifespan::Persistent,
            id_assignment: IdAssignment::UserId,
            ..Self::default()
        }
    }

    /// Refuses combinations that the standard forbids or this ORB does not support.
    pub(crate) fn check(&self) -> Result<(), PoaError> {
        let retains = self.servant_retention == ServantRetention::Retain;
        if !retains && self.request_processing == RequestProcessing::UseActiveObjectMapOnly {
            return Err(PoaError::InvalidPolicy(RETENTION));
        }
        if self.request_processing == RequestProcessing::UseDefaultServant
            && self.id_uniqueness == IdUniqueness::UniqueId
        {
            return Err(PoaError::InvalidPolicy(UNIQUENESS));
        }
        let implicit = self.implicit_activation == ImplicitActivation::ImplicitActivation;
        if implicit && !(retains && self.id_assignment == IdAssignment::SystemId) {
            return Err(PoaError::InvalidPolicy(IMPLICIT));
        }
        Ok(())
    }
}

/// Policy type ids, as [`PoaError::InvalidPolicy`] names them.
const UNIQUENESS: u16 = 18;
const IMPLICIT: u16 = 20;
const RETENTION: u16 = 21;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_combinations_name_the_policy() {
        assert_eq!(Policies::root().check(), Ok(()));
        assert_eq!(Policies::persistent().check(), Ok(()));
        let unretained = Policies {
            servant_retention: ServantRetention::NonRetain,
            ..Policies::default()
        };
        assert_eq!(unretained.check(), Err(PoaError::InvalidPolicy(RETENTION)));
        let shared = Policies {
            request_processing: RequestProcessing::UseDefaultServant,
            ..Policies::default()
        };
        assert_eq!(shared.check(), Err(PoaError::InvalidPolicy(UNIQUENESS)));
        let implicit = Policies {
            id_assignment: IdAssignment::UserId,
            ..Policies::root()
        };
        assert_eq!(implicit.check(), Err(PoaError::InvalidPolicy(IMPLICIT)));
    }
}

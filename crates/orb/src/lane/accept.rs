//! Accepting connections: the listeners of a lane, and how their connections are set up. Accepting pauses while the
//! lane is full or descriptors have run out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use deckwatch_sync::{PiMutex, PiMutexGuard};

use crate::access::AccessLog;
use crate::rt::{NetworkPriorityMapping, Priority, Protocols, stream_options};
use crate::transport::{Endpoint, Interest, Listener, Poller, Stream, TransportError};
use crate::{Completion, SystemException, minor, raise, raise::own};

/// Tokens of listeners: a slot number that no table reaches.
const LISTENERS: u64 = 0xffff_fff0_0000_0000;

/// The listener whose event this token reports.
pub(super) fn listener_of(token: u64) -> Option<usize> {
    (token >= LISTENERS).then(|| (token - LISTENERS) as usize)
}

/// The listeners of a lane.
pub(super) struct Acceptor {
    /// Empty once the lane is closed.
    listeners: PiMutex<Vec<Box<dyn Listener>>>,
    endpoints: Vec<Endpoint>,
    /// The protocols that an adapter has set (RT-CORBA 1.2: `ServerProtocolPolicy`).
    protocols: PiMutex<Option<Protocols>>,
    /// Held by the thread that closes an idle connection for a new one.
    making_room: PiMutex<()>,
    /// Accepting pauses.
    resting: AtomicBool,
}

impl Acceptor {
    /// `asked`: the endpoints as they were configured.
    pub(super) fn new(listeners: Vec<Box<dyn Listener>>, asked: &[Endpoint]) -> Self {
        let endpoints = listeners
            .iter()
            .zip(asked)
            .map(|(listener, asked)| asked.as_listened(listener.endpoint()))
            .collect();
        Self {
            listeners: PiMutex::new(listeners),
            endpoints,
            protocols: PiMutex::new(None),
            making_room: PiMutex::new(()),
            resting: AtomicBool::new(false),
        }
    }

    /// Sets who is told of peers that the listeners turn away.
    pub(super) fn set_access_log(&self, log: &Arc<dyn AccessLog>) {
        let listeners = self.listeners.lock("lane.listeners");
        listeners.iter().for_each(|it| it.set_access_log(log));
    }

    pub(super) fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    pub(super) fn watch(&self, poller: &dyn Poller) -> Result<(), TransportError> {
        let listeners = self.listeners.lock("lane.listeners");
        let mut all = listeners.iter().zip(LISTENERS..);
        all.try_for_each(|(listener, token)| {
            poller.watch(listener.source(), token, Interest::Pending)
        })
    }

    /// Accepts a connection. Returns `None` if none waits.
    pub(super) fn accept(
        &self,
        listener: usize,
    ) -> Result<Option<Box<dyn Stream>>, TransportError> {
        let listeners = self.listeners.lock("lane.accept");
        let listener = listeners.get(listener);
        listener.map_or(Ok(None), |listener| listener.accept())
    }

    /// Whether a connection waits at a listener.
    pub(super) fn is_awaited_at(&self, listener: usize) -> bool {
        let listeners = self.listeners.lock("lane.accept");
        listeners.get(listener).is_some_and(|at| at.is_pending())
    }

    /// Held while one connection is closed for a new one: several threads may get the event of the new one.
    pub(super) fn make_room(&self) -> PiMutexGuard<'_, ()> {
        self.making_room.lock("lane.evict")
    }

    #[inline]
    pub(super) fn is_resting(&self) -> bool {
        self.resting.load(Ordering::Relaxed)
    }

    /// Pauses accepting, until [`Acceptor::resume`].
    pub(super) fn rest(&self, poller: &dyn Poller) {
        self.rewatch(poller, Interest::Nothing);
        self.resting.store(true, Ordering::Release);
    }

    pub(super) fn resume(&self, poller: &dyn Poller) {
        self.resting.store(false, Ordering::Release);
        self.rewatch(poller, Interest::Pending);
    }

    fn rewatch(&self, poller: &dyn Poller, interest: Interest) {
        let listeners = self.listeners.lock("lane.listeners");
        for (listener, token) in listeners.iter().zip(LISTENERS..) {
            poller.rewatch(listener.source(), token, interest);
        }
    }

    pub(super) fn close(&self) {
        self.listeners.lock("lane.close").clear();
    }

    /// Sets up connections accepted from now on as `protocols` says. Returns whether none were set before.
    ///
    /// # Errors
    /// INV_POLICY if other protocols are set, or the lane listens by none of these; DATA_CONVERSION if packets are to
    /// have a priority without a mapping; NO_PERMISSION if the host does not permit it.
    pub(super) fn set_protocols(
        &self,
        protocols: Protocols,
        mapping: &dyn NetworkPriorityMapping,
        priority: Option<Priority>,
    ) -> Result<bool, SystemException> {
        let has = |kind: u32| {
            let mut kinds = protocols.iter().map(|protocol| protocol.protocol_type);
            kinds.any(|other| other == kind)
        };
        if !self.endpoints.iter().any(|at| has(at.protocol_type())) {
            return Err(raise::inv_policy(own::PROTOCOLS_MISSED, Completion::No));
        }
        let options = self
            .endpoints
            .iter()
            .map(|at| stream_options(&protocols, at, mapping, priority))
            .collect::<Result<Vec<_>, _>>()?;
        let mut set = self.protocols.lock("lane.protocols");
        if set.is_some_and(|set| set != protocols) {
            return Err(raise::inv_policy(own::PROTOCOLS_OF_OTHERS, Completion::No));
        }
        let listeners = self.listeners.lock("lane.protocols");
        for (listener, options) in listeners.iter().zip(options) {
            listener.set_options(options).map_err(|error| match error {
                TransportError::Denied => {
                    raise::no_permission(own::NETWORK_PRIORITY_DENIED, Completion::No)
                }
                _ => raise::no_resources(minor::NONE, Completion::No),
            })?;
        }
        Ok(set.replace(protocols).is_none())
    }

    /// Lets other protocols be set: the adapter that they were set for was not created.
    pub(super) fn forget_protocols(&self) {
        *self.protocols.lock("lane.protocols") = None;
    }
}

//! A gateway: one thread that keeps a channel subscribed at a remote one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread::JoinHandle;
use std::time::Duration;

use deckwatch_access::Table;
use deckwatch_cdr::Reader;
use deckwatch_orb::{
    Access, Orb, Origin, Poa, Policy, SetOverrideType, SystemException, SystemExceptionKind as Kind,
};
use deckwatch_sync::{Bell, PiMutex};

use super::counters::{Counters, GatewayCounts};
use super::link::{GatewayFailure, Headers, Link, Takes};
use crate::filter::Header;
use crate::gate::Gate;
use crate::home::guarded_poa;
use crate::limits::{
    GATEWAY_PERIOD_DEFAULT, GATEWAY_RETRY_MAX, GATEWAY_RETRY_MIN, GATEWAY_TIMEOUT,
};
use crate::raise::{raise, system};
use crate::rt::{Inlet, RtEventChannel};
use crate::rtec_event_channel_admin::{
    ConsumerQOS, EventChannelRef, Observer, ObserverRef, ObserverSkeleton, ProxyPushSupplierRef,
    SupplierQOS,
};
use crate::rtec_event_comm::Event;

/// Options of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayOptions {
    /// Reference of the remote channel (IOR:, corbaloc: or corbaname:). It is resolved again for each connection.
    pub remote: String,
    /// Events that the gateway subscribes to even if no local consumer wants them: this channel passes them on to
    /// others. The subscriptions of gateways are not reported to observers, as in TAO.
    pub transit: Vec<Header>,
    /// Interval at which the remote channel is asked whether it still has the connection.
    pub period: Duration,
}

impl GatewayOptions {
    /// A gateway to this channel, for what local consumers want.
    #[must_use]
    pub fn to(remote: impl Into<String>) -> Self {
        Self {
            remote: remote.into(),
            transit: Vec::new(),
            period: GATEWAY_PERIOD_DEFAULT,
        }
    }
}

/// Keeps a channel subscribed at a remote channel, until it is closed or dropped.
pub struct Gateway {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
    channel: EventChannelRef,
    observer: u32,
    /// The adapter of the observer.
    poa: Poa,
}

/// What the thread, the observer and the handle share.
struct State {
    options: GatewayOptions,
    counters: Arc<Counters>,
    bell: Arc<Bell>,
    /// What local consumers want.
    wanted: PiMutex<Headers>,
    failure: PiMutex<Option<GatewayFailure>>,
    is_connected: AtomicBool,
    is_closed: AtomicBool,
}

impl Gateway {
    /// Starts a gateway of a channel that serves on this ORB. Does not wait for the remote channel.
    ///
    /// # Errors
    /// BAD_PARAM for text that is no reference, or a period of 0; NO_RESOURCES without a thread or with too many
    /// observers; the exceptions of the adapter.
    pub fn start(
        orb: &Orb,
        channel: &RtEventChannel,
        options: GatewayOptions,
    ) -> Result<Self, SystemException> {
        if options.period.is_zero() {
            return Err(raise(Kind::BadParam));
        }
        // A corbaname: is looked up in the network, by the thread.
        if !options
            .remote
            .to_ascii_lowercase()
            .starts_with("corbaname:")
        {
            orb.string_to_object_of(&options.remote, Origin::Own)?;
        }
        let state = Arc::new(State {
            options,
            counters: Arc::default(),
            bell: Arc::default(),
            wanted: PiMutex::default(),
            failure: PiMutex::default(),
            is_connected: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
        });
        // The channel calls it within this process; a peer that guesses its key would change what is subscribed to.
        let gate = Gate::new(orb, Some(Access::new(Table::default())), true);
        let poa = guarded_poa(orb, &gate)?;
        let watcher = Arc::new(ObserverSkeleton::new(Watcher(Arc::clone(&state))));
        let id = poa.activate_object(watcher).map_err(system)?;
        let observer = poa.id_to_reference(&id).map_err(system)?;
        let observer = ObserverRef::unchecked_narrow(observer);
        let appended = channel.reference().append_observer(Some(&observer));
        let mut gateway = Self {
            state: Arc::clone(&state),
            thread: None,
            channel: channel.reference().clone(),
            observer: appended.map_err(|_| raise(Kind::NoResources))?,
            poa,
        };
        let run = Run {
            state,
            orb: orb.clone(),
            inlet: channel.inlet(),
        };
        let started = std::thread::Builder::new()
            .name("gateway".to_owned())
            .spawn(move || run.serve());
        gateway.thread = Some(started.map_err(|_| raise(Kind::NoResources))?);
        Ok(gateway)
    }

    /// The reference of the remote channel, as it was given.
    #[must_use]
    pub fn remote(&self) -> &str {
        &self.state.options.remote
    }

    /// Its counters.
    #[must_use]
    pub fn counts(&self) -> GatewayCounts {
        self.state.counters.read()
    }

    /// Returns true while it has a subscription at the remote channel. It has none while nobody wants an event.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.state.is_connected.load(Acquire)
    }

    /// Why the last attempt to connect failed. `None` once one has succeeded.
    #[must_use]
    pub fn failure(&self) -> Option<GatewayFailure> {
        *self.state.failure.lock("gateway.failure")
    }

    /// Ends the subscription. Waits for the calls that are under way, each at most [`GATEWAY_TIMEOUT`]. Call it before
    /// the ORB is shut down: else the remote channel has to find out by itself.
    pub fn close(&mut self) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        self.state.is_closed.store(true, Release);
        self.state.bell.ring();
        let _ = thread.join(); // It does not panic.
        // The channel, the ORB or both may have ended.
        let _ = self.channel.remove_observer(self.observer);
        let _ = self.poa.destroy(false, false);
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.close();
    }
}

/// Keeps what the local consumers want.
struct Watcher(Arc<State>);

impl Observer for Watcher {
    fn update_consumer(&self, sub: &ConsumerQOS) -> Result<(), SystemException> {
        let headers = sub.dependencies.iter().map(|each| &each.event.header);
        let is_event = |event_type: i32| event_type == 0 || event_type >= TYPES_MIN;
        let wanted: Headers = headers
            .filter(|header| is_event(header.r#type))
            .map(|header| (header.source, header.r#type))
            .collect();
        let before = std::mem::replace(&mut *self.0.wanted.lock("gateway.wanted"), wanted.clone());
        if before != wanted {
            self.0.bell.ring();
        }
        Ok(())
    }

    fn update_supplier(&self, _: &SupplierQOS) -> Result<(), SystemException> {
        Ok(())
    }
}

/// Types of events below are designators of filters.
const TYPES_MIN: i32 = 16;

/// The subscriptions of a gateway.
#[derive(Default)]
struct Links {
    current: Option<Link>,
    /// The proxy of one that did not answer. A remote channel that was only cut off may still have it.
    lost: Option<ProxyPushSupplierRef>,
}

/// What the thread has.
struct Run {
    state: Arc<State>,
    orb: Orb,
    inlet: Inlet,
}

impl Run {
    fn serve(self) {
        // For each call, those to the naming service too. Both policies are valid.
        let limits = [
            Policy::RelativeRoundtripTimeout(GATEWAY_TIMEOUT),
            Policy::ConnectionTimeout(GATEWAY_TIMEOUT),
        ];
        let _ =
            (self.orb.policy_current()).set_policy_overrides(&limits, SetOverrideType::AddOverride);
        let (mut links, mut pause) = (Links::default(), GATEWAY_RETRY_MIN);
        loop {
            let turn = self.state.bell.turn();
            if self.state.is_closed.load(Acquire) || self.inlet.identity().is_none() {
                break;
            }
            let wait = match self.turn(&mut links) {
                Ok(()) => {
                    pause = GATEWAY_RETRY_MIN;
                    self.state.options.period
                }
                Err(failure) => {
                    *self.state.failure.lock("gateway.failure") = Some(failure);
                    self.state.counters.failures.fetch_add(1, Relaxed);
                    let wait = pause;
                    pause = (pause * 2).min(GATEWAY_RETRY_MAX);
                    wait
                }
            };
            let is_connected = links.current.is_some();
            self.state.is_connected.store(is_connected, Release);
            self.wait(turn, wait, is_connected);
        }
        self.state.is_connected.store(false, Release);
        if let Some(link) = links.current {
            link.disconnect();
        }
    }

    /// Waits for a change, or for the time. After a failure a change does not end the wait: a consumer that comes and
    /// goes does not make the gateway connect more often.
    fn wait(&self, mut turn: u32, time: Duration, is_connected: bool) {
        let until_ns = deckwatch_os::clock::monotonic_ns() as u64 + time.as_nanos() as u64;
        let must_wait = !is_connected && self.failure_is_set();
        while self.state.bell.wait_until(turn, Some(until_ns))
            && must_wait
            && !self.state.is_closed.load(Acquire)
        {
            turn = self.state.bell.turn();
        }
    }

    fn failure_is_set(&self) -> bool {
        self.state.failure.lock("gateway.failure").is_some()
    }

    /// Does what is due: connects, subscribes anew, or asks whether the subscription still exists.
    fn turn(&self, links: &mut Links) -> Result<(), GatewayFailure> {
        let counters = &self.state.counters;
        let is_lost = |link: &mut Link| link.is_cut() || !link.is_alive();
        if let Some(lost) = links.current.take_if(is_lost) {
            counters.cuts.fetch_add(1, Relaxed);
            self.state.is_connected.store(false, Release);
            links.lost = Some(lost.into_proxy());
        }
        let current = links.current.as_ref();
        let wanted = self.wanted();
        if current.map_or(wanted.is_empty(), |link| link.headers == wanted) {
            return Ok(());
        }
        if wanted.is_empty() {
            if let Some(unwanted) = links.current.take() {
                unwanted.disconnect();
            }
            return Ok(());
        }
        let new = self.connect(wanted)?;
        *self.state.failure.lock("gateway.failure") = None;
        // The new subscription is made first: no event is lost, and the identity of an event that comes by both drops
        // the second.
        let count = match links.current.replace(new) {
            Some(before) => {
                before.disconnect();
                &counters.changes
            }
            None => &counters.connects,
        };
        count.fetch_add(1, Relaxed);
        if let Some(lost) = links.lost.take() {
            let _ = lost.disconnect_push_supplier(); // Mostly it is gone.
        }
        Ok(())
    }

    fn connect(&self, wanted: Headers) -> Result<Link, GatewayFailure> {
        let identity = self.inlet.identity();
        let identity = identity.ok_or_else(|| raise(Kind::ObjectNotExist))?;
        let remote = &self.state.options.remote;
        let object = self.orb.string_to_object_of(remote, Origin::Own)?;
        let channel = EventChannelRef::narrow(&object.ok_or(GatewayFailure::Nil)?)?;
        let channel = channel.ok_or(GatewayFailure::NoChannel)?;
        let receiving = Receiving {
            inlet: self.inlet.clone(),
            counters: Arc::clone(&self.state.counters),
            bell: Arc::clone(&self.state.bell),
        };
        Link::subscribe(&self.orb, &channel, wanted, identity, receiving)
    }

    fn wanted(&self) -> Headers {
        let transit = self.state.options.transit.iter();
        let transit: BTreeSet<_> = transit.map(|each| (each.source, each.event_type)).collect();
        let wanted = self.state.wanted.lock("gateway.wanted");
        wanted.union(&transit).copied().collect()
    }
}

/// Takes the events of the remote channel.
struct Receiving {
    inlet: Inlet,
    counters: Arc<Counters>,
    bell: Arc<Bell>,
}

impl Takes for Receiving {
    fn forward(&self, arguments: Reader<'_>) -> Result<(), SystemException> {
        let arrival = self.inlet.forward(arguments).inspect_err(|_| {
            self.counters.refused.fetch_add(1, Relaxed);
        })?;
        self.counters.count(arrival);
        Ok(())
    }

    fn push(&self, data: &[Event]) -> Result<(), SystemException> {
        for event in data {
            self.counters.count(self.inlet.push(event.clone())?);
        }
        Ok(())
    }

    fn end(&self) {
        self.bell.ring();
    }
}

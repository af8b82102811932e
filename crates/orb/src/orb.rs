//! The ORB itself: it owns the object adapter, the threadpools and the calling side, and shuts them down.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};
use std::time::Duration;

use deckwatch_giop::{Ior, ListenPoint};

use crate::adapter::{Adapter, Poa, PoaCurrent, Policies};
use crate::builder::{BuildError, OrbBuilder};
use crate::call_side::{CallSide, WholeOrb};
use crate::client::{Client, CollocatedServer};
use crate::connection::bidirectional::Offer;
use crate::counters::{Counter, Counters, Snapshot};
use crate::interceptor::Registry;
use crate::lane::{Lane, Turned};
use crate::limits::DRAIN_TIMEOUT;
use crate::origin::Origin;
use crate::policy::AtOrb;
use crate::raise;
use crate::rt::Mappings;
use crate::rt::current::ThreadPriorities;
use crate::rtorb::{LaneSettings, NamedMutexes, PoolLane, RtOrb, Threadpools};
use crate::rtorb::{NetworkPriorityMappingManager, PolicyCurrent, PolicyManager};
use crate::rtorb::{PriorityMappingManager, RtCurrent};
use crate::server::{Server, ServerOrb};
use crate::trace::Trace;
use crate::transport::{Endpoint, Transport};
use crate::{Caller, Completion, ObjectRef, SystemException};

/// An Object Request Broker; a handle that is cheap to clone.
#[derive(Clone)]
pub struct Orb(pub(crate) Arc<OrbCore>);

pub(crate) struct OrbCore {
    pub(crate) calls: Arc<CallSide>,
    pub(crate) initial: RwLock<HashMap<String, Initial>>,
    pub(crate) adapter: Arc<Adapter>,
    pub(crate) pools: Arc<Threadpools>,
    mutexes: Arc<NamedMutexes>,
    root: OnceLock<Poa>,
    id: String,
    default_initial: Option<String>,
    /// Calls of objects of this ORB run on the calling thread.
    collocation: bool,
}

fn client(
    builder: &OrbBuilder,
    counters: &Arc<Counters>,
    trace: &Arc<Trace>,
    interceptors: &Arc<Registry>,
) -> Client {
    Client::new(
        Arc::clone(&builder.transport),
        Arc::clone(counters),
        Arc::clone(trace),
        builder.shape.sizes,
        builder.shape.buffer_size,
        builder.client_idle_timeout,
        builder.shape.clock_bound,
        Arc::clone(interceptors),
    )
    .with_spin(builder.call_spin)
    .with_reach(builder.reach.clone())
    .with_network_mapping(Arc::clone(&builder.network_mapping))
}

/// The value of an initial reference.
#[derive(Clone)]
pub(crate) enum Initial {
    /// Text that is parsed at the first request for it.
    Text(String),
    /// A reference.
    Reference(ObjectRef),
}

impl OrbCore {
    pub(crate) fn new(builder: OrbBuilder, trace: Arc<Trace>) -> Arc<Self> {
        let counters = Arc::new(Counters::new());
        let interceptors = Arc::new(Registry::default());
        let client = client(&builder, &counters, &trace, &interceptors);
        let initial = builder
            .initial
            .into_iter()
            .map(|(name, text)| (name, Initial::Text(text)))
            .collect();
        let mapping = builder.mapping.make(builder.scheduling);
        let priorities = Arc::new(ThreadPriorities::new(
            Mappings::new(builder.scheduling, mapping),
            builder.priority_fallback,
            Arc::clone(&counters),
        ));
        let calls = Arc::new(CallSide::new(
            client,
            AtOrb::new(builder.policies),
            Arc::clone(&priorities),
            builder.shape.threads == 0,
        ));
        let lane_settings = LaneSettings {
            endpoints: builder.endpoints,
            published: builder.published,
            lane_places: builder.lane_places,
            server_protocols: builder.server_protocols,
            shape: builder.shape,
            dynamic_thread_idle: builder.dynamic_thread_idle,
        };
        // The hash has fresh random keys: two runs of an ORB get the same incarnation once in 2^64.
        let incarnation = RandomState::new().hash_one(std::process::id());
        let pools = Arc::new_cyclic(|pools| {
            let server_orb = ServerOrb {
                calls: Arc::downgrade(&calls),
                adapter: Arc::new(Adapter::new(
                    incarnation,
                    Arc::downgrade(&calls),
                    Weak::clone(pools),
                    interceptors,
                    builder.access_log,
                )),
                counters,
                trace,
                transport: builder.transport,
                priorities,
            };
            Threadpools::new(
                Arc::clone(&calls),
                server_orb,
                builder.thread_start,
                lane_settings,
            )
        });
        let core = Arc::new(Self {
            calls,
            initial: RwLock::new(initial),
            adapter: Arc::clone(pools.adapter()),
            pools,
            mutexes: Arc::default(),
            root: OnceLock::new(),
            id: builder.id,
            default_initial: builder.default_initial,
            collocation: builder.collocation,
        });
        let whole: Weak<Self> = Arc::downgrade(&core);
        core.calls.belong_to(whole);
        core
    }

    /// Returns the URL that `-ORBDefaultInitRef` forms from the name of an initial reference.
    pub(crate) fn default_initial(&self, name: &str) -> Option<String> {
        let url = self.default_initial.as_deref()?;
        Some(format!("{url}/{name}"))
    }

    /// Returns the published endpoints, most preferred first; none until the ORB listens.
    fn published(&self) -> &[Endpoint] {
        let pool = self.pools.default_made();
        pool.map_or(&[], |pool| &pool.lanes[0].published)
    }

    /// Returns the lane whose request the calling thread serves.
    pub(crate) fn lane_served_here(&self) -> Option<Arc<Lane>> {
        self.pools.find_lane(|lane| lane.server.is_served_here())
    }

    /// Processes the replies of asynchronous calls, if the ORB is turned by hand.
    fn turn_replies(&self) -> bool {
        let replies = self.calls.client.replies_made();
        replies.is_some_and(|replies| self.calls.is_turned_by_hand() && replies.turn(&self.calls))
    }

    /// Does what the threads of deliveries do, if the ORB is turned by hand.
    fn turn_deliveries(&self) -> bool {
        let is_by_hand = self.calls.is_turned_by_hand();
        is_by_hand
            && self
                .calls
                .client
                .deliveries()
                .iter()
                .any(|engine| engine.turn())
    }

    /// Shuts down the lanes, the connections, the servants and the interceptors, once requests in progress have
    /// finished.
    pub(crate) fn release(&self) {
        self.adapter.release_held();
        self.shut_lanes();
        if let Some(replies) = self.calls.client.replies_made() {
            replies.close(&self.calls);
        }
        for engine in self.calls.client.deliveries() {
            engine.close();
        }
        self.calls.client.close();
        let deadline = self.calls.client.transport.now().after(DRAIN_TIMEOUT);
        self.adapter
            .clear(|| self.calls.client.transport.now() < deadline);
        self.initial
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        if let Some(all) = self.calls.client.interceptors.all() {
            all.destroy();
        }
        self.calls.client.trace.flush();
    }
}

impl WholeOrb for OrbCore {
    fn publishes(&self, endpoint: &Endpoint) -> bool {
        self.published().contains(endpoint)
            || self.pools.all().iter().any(|pool| {
                let is_at = |at: &PoolLane| {
                    at.published.contains(endpoint) || at.lane.endpoints().contains(endpoint)
                };
                pool.lanes.iter().any(is_at)
            })
    }

    fn listening(&self) -> Vec<Endpoint> {
        let pools = self.pools.all();
        let lanes = pools.iter().flat_map(|pool| pool.lanes.iter());
        lanes.flat_map(|at| at.lane.endpoints().to_vec()).collect()
    }

    fn origin_here(&self) -> Origin {
        let connection = Server::connection_served_here();
        if !connection.is_remote() {
            return Origin::Own;
        }
        let lane = self.lane_served_here();
        // A request that another ORB of this program serves: its sender is not looked up.
        match lane.map(|lane| lane.caller(connection)) {
            // A program of this host that connected to an address of it other than loopback.
            Some((Caller::Tcp(_), _, true)) => Origin::Host,
            Some((caller, name, _)) => Origin::of(caller, name.as_deref()),
            None => Caller::Unknown.into(),
        }
    }

    /// Only the default pool is collocated. Calls of objects of other pools use the network, because the threads of
    /// those pools have their own priorities.
    fn collocated_server(&self, endpoint: &Endpoint) -> Option<Weak<dyn CollocatedServer>> {
        let pool = self.pools.default_made().filter(|_| self.collocation)?;
        let at = &pool.lanes[0];
        let is_it = at.published.contains(endpoint) || at.lane.endpoints().contains(endpoint);
        let server: Arc<dyn CollocatedServer> = Arc::clone(&at.lane.server) as _;
        is_it.then(|| Arc::downgrade(&server))
    }

    /// Makes no offer in two cases:
    /// - The ORB is turned by hand, so that it has no threads to read these connections.
    /// - The ORB has no TCP endpoint to put into a listen point.
    fn offer_bidirectional(&self) {
        let Some(pool) = self.pools.default_made() else {
            return;
        };
        let tcp = |endpoint: &Endpoint| match endpoint {
            Endpoint::Tcp { host, port } | Endpoint::Tls { host, port } => Some(ListenPoint {
                host: host.clone(),
                port: *port,
            }),
            _ => None,
        };
        let points: Vec<_> = self.published().iter().filter_map(tcp).collect();
        let (Ok(octets), false) = (ListenPoint::write_all(&points), points.is_empty()) else {
            return;
        };
        if !self.calls.is_turned_by_hand() {
            let lane = Arc::downgrade(&pool.lanes[0].lane);
            let points = octets;
            // Another adapter may have made the offer before.
            let _ = self.calls.client.offer.set(Offer { lane, points });
        }
    }
}

impl Orb {
    /// Returns a builder, which makes an ORB.
    pub fn builder() -> OrbBuilder {
        OrbBuilder::default()
    }

    /// Makes an ORB from the `-ORB` arguments of a command line, and removes them from `arguments`.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn init(arguments: &mut Vec<String>) -> Result<Self, BuildError> {
        Self::builder().arguments(arguments)?.build()
    }

    pub(crate) fn of(core: Arc<OrbCore>) -> Self {
        Self(core)
    }

    /// Returns a handle of the ORB that `calls` belongs to; `None` if the last one has gone.
    pub(crate) fn of_calls(calls: &CallSide) -> Option<Self> {
        let whole: Arc<dyn Any + Send + Sync> = calls.whole()?;
        whole.downcast().ok().map(Self)
    }

    /// Returns the root adapter. The first call makes the ORB listen and starts its threads, unless that has been done.
    ///
    /// # Errors
    /// INITIALIZE if the ORB cannot listen or start a thread, BAD_INV_ORDER with minor code 4 after a shutdown.
    pub fn root_poa(&self) -> Result<Poa, SystemException> {
        let core = &self.0;
        core.calls.require_life()?;
        core.pools
            .default_pool()
            .map_err(|_| raise::initialize(0, Completion::No))?;
        let root = core.root.get_or_init(|| {
            let made = core.adapter.make_poa(
                None,
                "RootPOA",
                core.adapter.managers.make_root(core.adapter.incarnation),
                Policies::root(),
            );
            made.expect("the root is made once, with policies that go together")
        });
        Ok(root.clone())
    }

    /// Returns `POACurrent`: a servant reads from it which object it serves.
    #[must_use]
    pub fn poa_current(&self) -> PoaCurrent {
        PoaCurrent(Arc::clone(&self.0.adapter))
    }

    /// Makes `target` reachable at this ORB's endpoints under a key of the application's choice, such as the
    /// `NameService` of `corbaloc::host:port/NameService`.
    ///
    /// # Errors
    /// BAD_PARAM for a key of the adapter's own form, NO_RESOURCES at [`crate::limits::PLAIN_KEYS_MAX`] keys.
    pub fn register_plain_key(
        &self,
        key: &[u8],
        target: &ObjectRef,
    ) -> Result<(), SystemException> {
        self.0.calls.require_life()?;
        self.0.adapter.bind_plain(key, target.clone())
    }

    /// Returns the stringified form of a reference (`IOR:`...).
    #[must_use]
    pub fn object_to_string(&self, object: &ObjectRef) -> String {
        object.to_string()
    }

    /// Returns the endpoints at which clients reach this ORB; none until it listens.
    #[must_use]
    pub fn endpoints(&self) -> Vec<Endpoint> {
        self.0.published().to_vec()
    }

    /// Returns the name set by [`OrbBuilder::id`] or `-ORBid`.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Returns the manager of the policies of all calls of this ORB; `ORBPolicyManager` among the standard's initial
    /// references.
    #[must_use]
    pub fn policy_manager(&self) -> PolicyManager {
        PolicyManager(Arc::clone(&self.0.calls))
    }

    /// Returns the handle for the policies of the calling thread's calls through this ORB; `PolicyCurrent` among the
    /// standard's initial references.
    #[must_use]
    pub fn policy_current(&self) -> PolicyCurrent {
        PolicyCurrent(Arc::downgrade(&self.0.calls))
    }

    /// Returns the handle for the priority of the calling thread; `RTCurrent` among the standard's initial references.
    #[must_use]
    pub fn rt_current(&self) -> RtCurrent {
        RtCurrent(Arc::clone(&self.0.calls.priorities))
    }

    /// Returns the manager of the priority mapping; `PriorityMappingManager` among TAO's initial references.
    #[must_use]
    pub fn priority_mapping_manager(&self) -> PriorityMappingManager {
        PriorityMappingManager(Arc::clone(&self.0.calls.priorities))
    }

    /// Returns the manager of the mapping to packet priorities; `NetworkPriorityMappingManager` among TAO's initial
    /// references.
    #[must_use]
    pub fn network_priority_mapping_manager(&self) -> NetworkPriorityMappingManager {
        NetworkPriorityMappingManager(Arc::clone(&self.0.calls))
    }

    /// Returns the real-time interface of this ORB; `RTORB` among the standard's initial references.
    #[must_use]
    pub fn rt_orb(&self) -> RtOrb {
        RtOrb {
            pools: Arc::clone(&self.0.pools),
            mutexes: Arc::clone(&self.0.mutexes),
        }
    }

    /// Returns the counters of this ORB.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.0.calls.client.counters
    }

    /// Returns whether a thread of the ORB has run at another priority than it should, because the host refused that
    /// one. Always false without [`OrbBuilder::allow_priority_fallback`]. The result of a measurement must record it.
    #[must_use]
    pub fn has_priority_fallback(&self) -> bool {
        self.counters().read(Counter::PriorityFallbacks) != 0
    }

    /// Returns the values of all counters.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.counters().snapshot()
    }

    /// Allocates the memory that serving and calling need, so that no request allocates later.
    pub fn seal(&self) {
        self.0.calls.client.seal();
        for pool in self.0.pools.all() {
            pool.lanes.iter().for_each(|at| at.lane.seal());
        }
    }

    /// As [`crate::fuzzing::held`].
    pub(crate) fn held_by_peers(&self) -> [usize; 4] {
        let mut held = [0; 4];
        for pool in self.0.pools.all() {
            for at in &pool.lanes {
                for (sum, one) in held.iter_mut().zip(at.lane.held()) {
                    *sum += one;
                }
            }
        }
        held
    }

    /// Runs one cycle of the lanes of an ORB that is [`OrbBuilder::turned_by_hand`]; waits at most `patience`. Returns
    /// false if there was no work. The lanes of further threadpools are checked first, without waiting.
    pub fn turn(&self, patience: Option<Duration>) -> bool {
        let turned = |lane: &Arc<Lane>, patience| {
            matches!(lane.turn(None, patience), Turned::Served | Turned::Kept)
        };
        let is_by_hand = |lane: &Arc<Lane>| lane.id.pool != 0 && lane.is_pending();
        let other = self.0.pools.find_lane(is_by_hand);
        if other.is_some_and(|lane| turned(&lane, Some(Duration::ZERO))) {
            return true;
        }
        let default = self.0.pools.default_made();
        default.is_some_and(|pool| turned(&pool.lanes[0].lane, patience))
            || self.0.turn_replies()
            || self.0.turn_deliveries()
    }

    /// Returns true if the ORB is [`OrbBuilder::turned_by_hand`]: what is built on it starts no threads either.
    #[must_use]
    pub fn is_turned_by_hand(&self) -> bool {
        self.0.calls.is_turned_by_hand()
    }

    /// Returns the transport, which is also the clock.
    #[must_use]
    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.0.calls.client.transport
    }

    pub(crate) fn reference(&self, ior: Ior, origin: Origin) -> Option<ObjectRef> {
        (!ior.is_nil()).then(|| ObjectRef::of_origin(ior, Arc::clone(&self.0.calls), origin))
    }
}

/// Two handles are equal if they belong to the same ORB.
impl PartialEq for Orb {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Orb {}

impl fmt::Debug for Orb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orb")
            .field("endpoints", &self.endpoints())
            .field("counters", self.counters())
            .finish()
    }
}

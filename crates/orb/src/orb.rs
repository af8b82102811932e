//! The ORB itself: what joins adapter, lane and callers, and its end.

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
use crate::policy::AtOrb;
use crate::raise;
use crate::rt::Mappings;
use crate::rt::current::ThreadPriorities;
use crate::rtorb::{LaneSettings, NamedMutexes, PoolLane, RtOrb, Threadpools};
use crate::rtorb::{NetworkPriorityMappingManager, PolicyCurrent, PolicyManager};
use crate::rtorb::{PriorityMappingManager, RtCurrent};
use crate::server::ServerOrb;
use crate::trace::Trace;
use crate::transport::{Endpoint, Transport};
use crate::{Completion, ObjectRef, SystemException};

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
    /// Calls of own objects are served by their callers.
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
}

/// What is found under the name of an initial reference.
#[derive(Clone)]
pub(crate) enum Initial {
    /// Text that is read when it is first asked for.
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
        // Keyed by fresh random keys: two lives of an ORB share it once in 2^64.
        let incarnation = RandomState::new().hash_one(std::process::id());
        let pools = Arc::new_cyclic(|pools| {
            let server_orb = ServerOrb {
                calls: Arc::downgrade(&calls),
                adapter: Arc::new(Adapter::new(
                    incarnation,
                    Arc::downgrade(&calls),
                    Weak::clone(pools),
                    interceptors,
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

    /// What `-ORBDefaultInitRef` makes of the name of an initial reference.
    pub(crate) fn default_initial(&self, name: &str) -> Option<String> {
        let url = self.default_initial.as_deref()?;
        Some(format!("{url}/{name}"))
    }

    /// Where others reach us, most preferred first; nothing before it listens.
    fn published(&self) -> &[Endpoint] {
        let pool = self.pools.default_made();
        pool.map_or(&[], |pool| &pool.lanes[0].published)
    }

    /// The lane that the calling thread serves a request of.
    pub(crate) fn lane_served_here(&self) -> Option<Arc<Lane>> {
        self.pools.find_lane(|lane| lane.server.is_served_here())
    }

    /// Does what asynchronous calls ask for, in an ORB that is turned by hand.
    fn turn_replies(&self) -> bool {
        let replies = self.calls.client.replies_made();
        replies.is_some_and(|replies| self.calls.is_turned_by_hand() && replies.turn(&self.calls))
    }

    /// Lets go of all that it serves and calls with, once no request is in progress any more.
    pub(crate) fn release(&self) {
        self.adapter.release_held();
        self.shut_lanes();
        if let Some(replies) = self.calls.client.replies_made() {
            replies.close(&self.calls);
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

    /// Calls of objects of other pools go over the network: the threads of those pools have their priorities.
    fn collocated_server(&self, endpoint: &Endpoint) -> Option<Weak<dyn CollocatedServer>> {
        let pool = self.pools.default_made().filter(|_| self.collocation)?;
        let at = &pool.lanes[0];
        let is_it = at.published.contains(endpoint) || at.lane.endpoints().contains(endpoint);
        let server: Arc<dyn CollocatedServer> = Arc::clone(&at.lane.server) as _;
        is_it.then(|| Arc::downgrade(&server))
    }

    /// Not for an ORB that is turned by hand, which has no threads to read these connections, nor for one that is not reached over TCP.
    fn offer_bidirectional(&self) {
        let Some(pool) = self.pools.default_made() else {
            return;
        };
        let tcp = |endpoint: &Endpoint| match endpoint {
            Endpoint::Tcp { host, port } => Some(ListenPoint {
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
    /// An ORB is made by a builder.
    pub fn builder() -> OrbBuilder {
        OrbBuilder::default()
    }

    /// An ORB made by the `-ORB` arguments of a command line, which are taken out of it.
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

    /// The root adapter; listens and starts threads where that has not been done.
    ///
    /// # Errors
    /// INITIALIZE where it cannot listen, BAD_INV_ORDER with minor code 4 after a shutdown.
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

    /// What a servant asks for the object it serves (`POACurrent`).
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

    /// The stringified form of a reference (`IOR:`...).
    #[must_use]
    pub fn object_to_string(&self, object: &ObjectRef) -> String {
        object.to_string()
    }

    /// Where this ORB is reached; empty until it listens.
    #[must_use]
    pub fn endpoints(&self) -> Vec<Endpoint> {
        self.0.published().to_vec()
    }

    /// The name it was given by [`OrbBuilder::id`] or `-ORBid`.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// The policies of all calls of this ORB; `ORBPolicyManager` among the standard's initial references.
    #[must_use]
    pub fn policy_manager(&self) -> PolicyManager {
        PolicyManager(Arc::clone(&self.0.calls))
    }

    /// The policies of the calling thread's calls through this ORB; `PolicyCurrent` among the standard's initial references.
    #[must_use]
    pub fn policy_current(&self) -> PolicyCurrent {
        PolicyCurrent(Arc::downgrade(&self.0.calls))
    }

    /// The priority of the calling thread; `RTCurrent` among the standard's initial references.
    #[must_use]
    pub fn rt_current(&self) -> RtCurrent {
        RtCurrent(Arc::clone(&self.0.calls.priorities))
    }

    /// The priority mapping of this ORB; `PriorityMappingManager` among TAO's initial references.
    #[must_use]
    pub fn priority_mapping_manager(&self) -> PriorityMappingManager {
        PriorityMappingManager(Arc::clone(&self.0.calls.priorities))
    }

    /// The mapping to the priorities of packets; `NetworkPriorityMappingManager` among TAO's initial references.
    #[must_use]
    pub fn network_priority_mapping_manager(&self) -> NetworkPriorityMappingManager {
        NetworkPriorityMappingManager(Arc::clone(&self.0.calls))
    }

    /// The real-time side of this ORB; `RTORB` among the standard's initial references.
    #[must_use]
    pub fn rt_orb(&self) -> RtOrb {
        RtOrb {
            pools: Arc::clone(&self.0.pools),
            mutexes: Arc::clone(&self.0.mutexes),
        }
    }

    /// The counters of this ORB.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.0.calls.client.counters
    }

    /// Whether a thread of the ORB has had to work at another priority than it should; always false unless
    /// [`OrbBuilder::allow_priority_fallback`] was said. A result that was got then is marked by it.
    #[must_use]
    pub fn has_priority_fallback(&self) -> bool {
        self.counters().read(Counter::PriorityFallbacks) != 0
    }

    /// The values of all counters.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.counters().snapshot()
    }

    /// Takes the memory that serving and calling need now, so that no request has to.
    pub fn seal(&self) {
        self.0.calls.client.seal();
        for pool in self.0.pools.all() {
            pool.lanes.iter().for_each(|at| at.lane.seal());
        }
    }

    /// One cycle of the lanes of an ORB that is [`OrbBuilder::turned_by_hand`]; false where there was nothing to do. The lanes of its
    /// threadpools are looked at first, without waiting.
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
        default.is_some_and(|pool| turned(&pool.lanes[0].lane, patience)) || self.0.turn_replies()
    }

    /// The transport, which is also the clock.
    #[must_use]
    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.0.calls.client.transport
    }

    pub(crate) fn reference(&self, ior: Ior) -> Option<ObjectRef> {
        (!ior.is_nil()).then(|| ObjectRef::new(ior, Some(Arc::clone(&self.0.calls))))
    }
}

/// Equal where both are handles of one ORB.
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

//! The ORB itself: what joins adapter, lane and callers, and its end.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, RwLock, Weak};
use std::time::Duration;

use deckwatch_giop::Ior;

use crate::adapter::{Adapter, Poa, PoaCurrent, Policies};
use crate::builder::{BuildError, OrbBuilder};
use crate::client::Client;
use crate::counters::{Counters, Snapshot};
use crate::lane::{Lane, LaneShape, ThreadStart, Turned};
use crate::life::Life;
use crate::limits::DRAIN_TIMEOUT;
use crate::policy::{AtOrb, PolicyCurrent, PolicyManager};
use crate::raise;
use crate::rt::{Mappings, PriorityMappingManager, RtCurrent};
use crate::trace::Trace;
use crate::transport::{ANY_ADDRESS, ANY_ADDRESS_IPV6, Endpoint, Transport};
use crate::{Completion, ObjectRef, SystemException, wire};

/// An Object Request Broker; a handle that is cheap to clone.
#[derive(Clone)]
pub struct Orb(pub(crate) Arc<OrbCore>);

pub(crate) struct OrbCore {
    this: Weak<Self>,
    pub(crate) client: Client,
    pub(crate) initial: RwLock<HashMap<String, Initial>>,
    pub(crate) policies: AtOrb,
    pub(crate) mappings: Mappings,
    pub(crate) adapter: Arc<Adapter>,
    lane: OnceLock<Arc<Lane>>,
    root: OnceLock<Poa>,
    settings: Settings,
    published: OnceLock<Vec<Endpoint>>,
    starting: Mutex<()>,
    pub(crate) life: Mutex<Life>,
    /// Told of every step of it.
    pub(crate) ended: Condvar,
    /// It has shut down: looked at by every call.
    pub(crate) has_ended: AtomicBool,
}

struct Settings {
    endpoints: Vec<Endpoint>,
    published: Vec<Endpoint>,
    id: String,
    default_initial: Option<String>,
    shape: LaneShape,
    thread_start: Option<ThreadStart>,
    collocation: bool,
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
        let initial = builder
            .initial
            .into_iter()
            .map(|(name, text)| (name, Initial::Text(text)))
            .collect();
        Arc::new_cyclic(|this: &Weak<Self>| Self {
            this: this.clone(),
            client: Client::new(
                builder.transport,
                counters,
                trace,
                builder.shape.sizes,
                builder.shape.buffer_size,
                builder.client_idle_timeout,
                builder.shape.clock_bound,
            ),
            initial: RwLock::new(initial),
            policies: AtOrb::new(builder.policies),
            mappings: Mappings::new(builder.scheduling, builder.mapping.make(builder.scheduling)),
            // Keyed by fresh random keys: two lives of an ORB share it once in 2^64.
            adapter: Arc::new(Adapter::new(
                RandomState::new().hash_one(std::process::id()),
                this.clone(),
            )),
            lane: OnceLock::new(),
            root: OnceLock::new(),
            settings: Settings {
                endpoints: builder.endpoints,
                published: builder.published,
                id: builder.id,
                default_initial: builder.default_initial,
                shape: builder.shape,
                thread_start: builder.thread_start,
                collocation: builder.collocation,
            },
            published: OnceLock::new(),
            starting: Mutex::new(()),
            life: Mutex::default(),
            ended: Condvar::new(),
            has_ended: AtomicBool::new(false),
        })
    }

    /// What `-ORBDefaultInitRef` makes of the name of an initial reference.
    pub(crate) fn default_initial(&self, name: &str) -> Option<String> {
        let url = self.settings.default_initial.as_deref()?;
        Some(format!("{url}/{name}"))
    }

    /// The lane, made and started when first asked for.
    pub(crate) fn lane(&self) -> Result<&Arc<Lane>, BuildError> {
        let _one_at_a_time = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = self.lane.get() {
            return Ok(lane);
        }
        let anywhere = [Endpoint::tcp(ANY_ADDRESS, 0)];
        let settings = &self.settings;
        let endpoints = if settings.endpoints.is_empty() {
            &anywhere[..]
        } else {
            &settings.endpoints
        };
        let lane = Lane::new(
            self.this.clone(),
            Arc::clone(&self.adapter),
            Arc::clone(&self.client.counters),
            Arc::clone(&self.client.trace),
            Arc::clone(&self.client.transport),
            settings.shape.clone(),
            endpoints,
            settings.thread_start.clone(),
        )
        .map_err(|(endpoint, error)| BuildError::CannotListen { endpoint, error })?;
        let lane = Arc::new(lane);
        lane.start().map_err(|_| BuildError::CannotStartThread)?;
        Ok(self.lane.get_or_init(|| lane))
    }

    /// Whether it has no threads of its own.
    pub(crate) fn is_turned_by_hand(&self) -> bool {
        self.settings.shape.threads == 0
    }

    /// Where others reach us, most preferred first; nothing before it listens.
    fn published(&self) -> &[Endpoint] {
        let Some(lane) = self.lane.get() else {
            return &[];
        };
        self.published.get_or_init(|| {
            let (listened, published) = (lane.endpoints(), &self.settings.published);
            publish(listened, published, self.client.transport.as_ref())
        })
    }

    pub(crate) fn publishes(&self, endpoint: &Endpoint) -> bool {
        let listened = self.lane.get().map(|lane| lane.endpoints());
        self.published().contains(endpoint) || listened.is_some_and(|at| at.contains(endpoint))
    }

    /// The lane that serves calls which this ORB makes to one of its own endpoints, where they need not go over the network.
    pub(crate) fn collocated_lane(&self, endpoint: &Endpoint) -> Option<&Arc<Lane>> {
        let may_be = self.settings.collocation && self.publishes(endpoint);
        self.lane.get().filter(|_| may_be)
    }

    pub(crate) fn make_reference(
        &self,
        key: Vec<u8>,
        repository_id: &str,
    ) -> Result<ObjectRef, SystemException> {
        let orb = self
            .this
            .upgrade()
            .ok_or(raise::bad_inv_order(0, Completion::No))?;
        let ior = wire::make_ior(repository_id, self.published(), &key)?;
        Ok(ObjectRef::new(ior, Some(orb)))
    }

    pub(crate) fn lane_made(&self) -> Option<&Arc<Lane>> {
        self.lane.get()
    }

    /// Lets go of all that it serves and calls with, once no request is in progress any more.
    pub(crate) fn release(&self) {
        self.adapter.release_held();
        if let Some(lane) = self.lane.get() {
            lane.shutdown();
        }
        self.client.close();
        let deadline = self.client.transport.now().after(DRAIN_TIMEOUT);
        self.adapter
            .clear(|| self.client.transport.now() < deadline);
        self.initial
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        self.client.trace.flush();
    }
}

/// What references carry: what is to be `published` in place of the TCP endpoints `listened` at, or these as others reach them;
/// and unix sockets, which nobody else reaches anyway.
fn publish(
    listened: &[Endpoint],
    published: &[Endpoint],
    transport: &dyn Transport,
) -> Vec<Endpoint> {
    let ports = || listened.iter().filter_map(Endpoint::port);
    let mut reached = Vec::new();
    let mut add = |host: &str, port: u16| {
        let over_ipv6 = host == ANY_ADDRESS_IPV6;
        let hosts = match host {
            ANY_ADDRESS | ANY_ADDRESS_IPV6 => transport.outward_hosts(over_ipv6),
            host => vec![host.to_owned()],
        };
        for host in hosts {
            let endpoint = Endpoint::Tcp { host, port };
            if !reached.contains(&endpoint) {
                reached.push(endpoint);
            }
        }
    };
    let chosen = if published.is_empty() {
        listened
    } else {
        published
    };
    for endpoint in chosen {
        match endpoint {
            Endpoint::Tcp { host, port: 0 } => ports().for_each(|port| add(host, port)),
            Endpoint::Tcp { host, port } => add(host, *port),
            Endpoint::Unix { .. } => {}
        }
    }
    let is_unix = |endpoint: &&Endpoint| matches!(endpoint, Endpoint::Unix { .. });
    reached.extend(listened.iter().filter(is_unix).cloned());
    reached
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

    /// The root adapter; listens and starts threads where that has not been done.
    ///
    /// # Errors
    /// INITIALIZE where it cannot listen, BAD_INV_ORDER with minor code 4 after a shutdown.
    pub fn root_poa(&self) -> Result<Poa, SystemException> {
        let core = &self.0;
        core.require_life()?;
        core.lane()
            .map_err(|_| raise::initialize(0, Completion::No))?;
        let root = core.root.get_or_init(|| {
            let made = core.adapter.make_poa(
                None,
                "RootPOA",
                core.adapter.make_root_manager(),
                Policies::root(),
            );
            made.expect("the root is made once, with policies that go together")
        });
        Ok(root.clone())
    }

    /// What a servant asks for the object it serves (`POACurrent`).
    #[must_use]
    pub fn poa_current(&self) -> PoaCurrent {
        PoaCurrent(Arc::clone(&self.0))
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
        self.0.require_life()?;
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
        &self.0.settings.id
    }

    /// The policies of all calls of this ORB; `ORBPolicyManager` among the standard's initial references.
    #[must_use]
    pub fn policy_manager(&self) -> PolicyManager {
        PolicyManager(Arc::clone(&self.0))
    }

    /// The policies of the calling thread's calls through this ORB; `PolicyCurrent` among the standard's initial references.
    #[must_use]
    pub fn policy_current(&self) -> PolicyCurrent {
        PolicyCurrent(Arc::downgrade(&self.0))
    }

    /// The priority of the calling thread; `RTCurrent` among the standard's initial references.
    #[must_use]
    pub fn rt_current(&self) -> RtCurrent {
        RtCurrent(Arc::clone(&self.0))
    }

    /// The priority mapping of this ORB; `PriorityMappingManager` among TAO's initial references.
    #[must_use]
    pub fn priority_mapping_manager(&self) -> PriorityMappingManager {
        PriorityMappingManager(Arc::clone(&self.0))
    }

    /// The counters of this ORB.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.0.client.counters
    }

    /// The values of all counters.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.counters().snapshot()
    }

    /// Takes the memory that serving and calling need now, so that no request has to.
    pub fn seal(&self) {
        self.0.client.slab.fill(crate::limits::SEALED_BUFFERS);
        if let Some(lane) = self.0.lane.get() {
            lane.seal();
        }
    }

    /// One cycle of the lane of an ORB that is [`OrbBuilder::turned_by_hand`]; false where there was nothing to do.
    pub fn turn(&self, patience: Option<Duration>) -> bool {
        self.0
            .lane
            .get()
            .is_some_and(|lane| matches!(lane.turn(None, patience), Turned::Served | Turned::Kept))
    }

    /// The transport, which is also the clock.
    #[must_use]
    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.0.client.transport
    }

    pub(crate) fn reference(&self, ior: Ior) -> Option<ObjectRef> {
        (!ior.is_nil()).then(|| ObjectRef::new(ior, Some(Arc::clone(&self.0))))
    }
}

impl fmt::Debug for Orb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orb")
            .field("endpoints", &self.endpoints())
            .field("counters", self.counters())
            .finish()
    }
}

//! Threadpools (RTCORBA 1.2): each lane of a pool has its own listeners, poller, connections, buffers and threads.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use super::RtOrb;
use super::places::{self, LaneSettings};
use crate::adapter::Adapter;
use crate::call_side::CallSide;
use crate::lane::{Lane, LaneId, LaneShape, RequestBuffers, ThreadStart};
use crate::life_state::Life;
use crate::limits::{LANES_MAX, POOL_THREADS_MAX, THREADPOOLS_MAX};
use crate::rt::{Priority, Protocols, ThreadpoolId, stream_options};
use crate::server::ServerOrb;
use crate::transport::{Endpoint, Listener, TransportError};
use crate::{Completion, SystemException, minor};
use crate::{raise, raise::own};

/// The parameters of one lane of a new pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadpoolLane {
    /// The fixed priority of its threads; lanes of one pool have different priorities.
    pub lane_priority: Priority,
    /// The number of threads that the lane always has; at least one.
    pub static_threads: u32,
    /// The number of threads that the lane may add while all serve; they end after
    /// [`crate::OrbBuilder::dynamic_thread_idle`].
    pub dynamic_threads: u32,
}

/// Limits of the requests queued while all threads of their lane serve (`allow_request_buffering`). With 0 only the
/// ORB's own limits apply ([`crate::limits::REQUESTS_BUFFERED_MAX`], [`crate::limits::REQUEST_BUFFER_SIZE_MAX`]).
/// Beyond the limits TRANSIENT is raised at once. Without buffering, requests wait in the buffers of the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestBuffering {
    /// Queued requests of all lanes of the pool.
    pub max_buffered_requests: u32,
    /// Octets of their messages, in total.
    pub max_request_buffer_size: u32,
}

/// The reason why an operation on a threadpool failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadpoolError {
    /// No pool of this ORB has the id (RTCORBA::RTORB::InvalidThreadpool).
    InvalidThreadpool,
    /// A system exception.
    System(SystemException),
}

impl fmt::Display for ThreadpoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidThreadpool => f.write_str("There is no threadpool of this id."),
            Self::System(exception) => exception.fmt(f),
        }
    }
}

impl std::error::Error for ThreadpoolError {}

impl From<SystemException> for ThreadpoolError {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

/// All threadpools of one ORB.
pub(crate) struct Threadpools {
    orb: Arc<CallSide>,
    server_orb: ServerOrb,
    thread_start: Option<ThreadStart>,
    settings: LaneSettings,
    /// The default pool, made at the first request for it.
    default: OnceLock<Arc<Threadpool>>,
    others: RwLock<Vec<Arc<Threadpool>>>,
    /// The number of pools made; locked while a pool is made.
    making: Mutex<u32>,
}

/// A pool with its lanes.
pub(crate) struct Threadpool {
    pub(crate) id: ThreadpoolId,
    /// At least one, in the order of the request to make the pool.
    pub(crate) lanes: Box<[PoolLane]>,
    /// The pool was made with lanes, whose threads keep their priority.
    pub(crate) has_lanes: bool,
    /// The number of adapters that the pool serves.
    users: AtomicUsize,
}

/// A lane and its published endpoints, most preferred first.
pub(crate) struct PoolLane {
    pub(crate) lane: Arc<Lane>,
    pub(crate) published: Vec<Endpoint>,
}

/// The reason why the default pool cannot be made.
pub(crate) enum CannotMakePool {
    Listen(Endpoint, TransportError),
    StartThread,
    SpinInRealTime,
}

/// The parameters of a new pool.
struct Plan<'p> {
    stack_size: u32,
    lanes: &'p [ThreadpoolLane],
    has_lanes: bool,
    allow_borrowing: bool,
    buffering: Option<RequestBuffering>,
}

impl Plan<'_> {
    /// Returns how many threads a lane of this priority may borrow.
    fn lenders_to(&self, priority: Priority) -> usize {
        let lanes = self.lanes.iter().filter(|_| self.allow_borrowing);
        let lower = lanes.filter(|lane| lane.lane_priority < priority);
        lower
            .map(|lane| lane.static_threads as usize + lane.dynamic_threads as usize)
            .sum()
    }
}

impl Threadpool {
    /// Returns the lane whose threads have this priority.
    pub(crate) fn lane_at(&self, priority: Priority) -> Option<&PoolLane> {
        let is_it = |at: &&PoolLane| at.lane.id.priority == Some(priority);
        self.lanes.iter().find(is_it)
    }

    /// Ends the use of the pool by an adapter; see [`Threadpools::enter`].
    pub(crate) fn leave(&self) {
        self.users.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Threadpools {
    pub(crate) fn new(
        orb: Arc<CallSide>,
        server_orb: ServerOrb,
        thread_start: Option<ThreadStart>,
        settings: LaneSettings,
    ) -> Self {
        Self {
            orb,
            server_orb,
            thread_start,
            settings,
            default: OnceLock::new(),
            others: RwLock::default(),
            making: Mutex::default(),
        }
    }

    pub(crate) const fn adapter(&self) -> &Arc<Adapter> {
        &self.server_orb.adapter
    }

    fn read_others(&self) -> Vec<Arc<Threadpool>> {
        let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
        others.clone()
    }

    /// Returns every pool, except one that is being made.
    pub(crate) fn all(&self) -> Vec<Arc<Threadpool>> {
        let mut all: Vec<_> = self.default.get().cloned().into_iter().collect();
        all.append(&mut self.read_others());
        all
    }

    /// Returns every pool; waits for one that is being made.
    pub(crate) fn all_made(&self) -> Vec<Arc<Threadpool>> {
        let _none_is_being_made = self.lock_making();
        self.all()
    }

    fn lock_making(&self) -> MutexGuard<'_, u32> {
        self.making.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn default_made(&self) -> Option<&Arc<Threadpool>> {
        self.default.get()
    }

    /// Returns the pool of this id, as the pool of an adapter until [`Threadpool::leave`].
    pub(crate) fn enter(&self, id: ThreadpoolId) -> Option<Arc<Threadpool>> {
        // `unmake_threadpool` checks the users of a pool under the same lock.
        let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
        let mut all = self.default.get().into_iter().chain(others.iter());
        let pool = all.find(|pool| pool.id == id)?;
        pool.users.fetch_add(1, Ordering::AcqRel);
        Some(Arc::clone(pool))
    }

    /// Returns the first lane for which `is_it` returns true.
    pub(crate) fn find_lane(&self, is_it: impl Fn(&Arc<Lane>) -> bool) -> Option<Arc<Lane>> {
        let first = |pool: &Arc<Threadpool>| {
            let mut lanes = pool.lanes.iter().map(|at| &at.lane);
            lanes.find(|lane| is_it(lane)).cloned()
        };
        let of_default = self.default.get().and_then(first);
        of_default.or_else(|| {
            let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
            others.iter().find_map(first)
        })
    }

    /// Returns the default pool; makes and starts it at the first call.
    pub(crate) fn default_pool(&self) -> Result<&Arc<Threadpool>, CannotMakePool> {
        let _one_at_a_time = self.lock_making();
        if let Some(pool) = self.default.get() {
            return Ok(pool);
        }
        if self.orb.life.get() != Life::Lives {
            return Err(CannotMakePool::StartThread);
        }
        let endpoints = places::of_default(&self.settings);
        let id = LaneId::default_pool(self.settings.dynamic_thread_idle);
        let lane = self.new_lane(self.settings.shape.clone(), id, &endpoints);
        let lane = lane.map_err(|(endpoint, error)| CannotMakePool::Listen(endpoint, error))?;
        let lane = Arc::new(lane);
        lane.start().map_err(|refused| {
            lane.shutdown();
            match refused.minor {
                own::SPIN_IN_REAL_TIME => CannotMakePool::SpinInRealTime,
                _ => CannotMakePool::StartThread,
            }
        })?;
        let transport = self.orb.client.transport.as_ref();
        let published = places::publish(lane.endpoints(), &self.settings.published, transport);
        let pool = Threadpool {
            id: ThreadpoolId(0),
            lanes: Box::new([PoolLane { lane, published }]),
            has_lanes: false,
            users: AtomicUsize::new(0),
        };
        Ok(self.default.get_or_init(|| Arc::new(pool)))
    }

    fn new_lane(
        &self,
        shape: LaneShape,
        id: LaneId,
        endpoints: &[Endpoint],
    ) -> Result<Lane, (Endpoint, TransportError)> {
        let priority = id.priority;
        let listen = |at: &Endpoint| self.listen(at, priority);
        Lane::new(
            &self.server_orb,
            shape,
            id,
            endpoints,
            listen,
            self.thread_start.clone(),
        )
    }

    /// Listens at an endpoint with the options of the server's protocols, for calls of this priority.
    fn listen(
        &self,
        at: &Endpoint,
        priority: Option<Priority>,
    ) -> Result<Box<dyn Listener>, TransportError> {
        let protocols = self.settings.server_protocols;
        let protocols = protocols.map_or(&[][..], Protocols::slice);
        let client = &self.orb.client;
        let options = stream_options(protocols, at, &*client.network_mapping(), priority);
        let options = options.map_err(|_| TransportError::Denied)?;
        client.transport.listen(at, &options)
    }

    fn make_threadpool(&self, plan: &Plan<'_>) -> Result<ThreadpoolId, SystemException> {
        self.orb.require_life()?;
        check(plan.lanes)?;
        let mut made = self.lock_making();
        // Checked under the lock: a shutdown sets the state before it collects the pools, and would not see this one.
        if self.orb.life.get() != Life::Lives {
            return Err(raise::bad_inv_order(minor::ORB_SHUT_DOWN, Completion::No));
        }
        let others = self.read_others().len();
        if others >= THREADPOOLS_MAX {
            return Err(raise::no_resources(minor::NONE, Completion::No));
        }
        let exhausted = raise::no_resources(minor::NONE, Completion::No);
        let id = ThreadpoolId(made.checked_add(1).ok_or(exhausted)?);
        let mut lanes: Vec<PoolLane> = Vec::with_capacity(plan.lanes.len());
        let buffers = plan
            .buffering
            .map(|limits| Arc::new(RequestBuffers::new(limits)));
        for index in 0..plan.lanes.len() {
            match self.make_lane(id, index, plan, buffers.clone()) {
                Ok(lane) => lanes.push(lane),
                Err(exception) => {
                    lanes.iter().for_each(|made| made.lane.shutdown());
                    return Err(exception);
                }
            }
        }
        if plan.allow_borrowing {
            let all: Vec<_> = lanes.iter().map(|at| Arc::clone(&at.lane)).collect();
            all.iter().for_each(|lane| lane.set_neighbours(&all));
        }
        *made = id.0;
        let pool = Arc::new(Threadpool {
            id,
            lanes: lanes.into(),
            has_lanes: plan.has_lanes,
            users: AtomicUsize::new(0),
        });
        let mut others = self.others.write().unwrap_or_else(PoisonError::into_inner);
        others.push(pool);
        Ok(id)
    }

    fn make_lane(
        &self,
        pool: ThreadpoolId,
        index: usize,
        plan: &Plan<'_>,
        buffering: Option<Arc<RequestBuffers>>,
    ) -> Result<PoolLane, SystemException> {
        let lane = &plan.lanes[index];
        let by_hand = self.orb.is_turned_by_hand();
        let threads = |count: u32| if by_hand { 0 } else { count as usize };
        let shape = LaneShape {
            threads: threads(lane.static_threads),
            threads_dynamic: threads(lane.dynamic_threads),
            buffering,
            ..self.settings.shape.clone()
        };
        let id = LaneId {
            pool: pool.0,
            index,
            priority: Some(lane.lane_priority),
            is_lane: plan.has_lanes,
            lenders: plan.lenders_to(lane.lane_priority),
            stack_size: plan.stack_size as usize,
            idle: self.settings.dynamic_thread_idle,
        };
        let endpoints = places::of_lane(&self.settings, pool.0, index);
        let lane = self
            .new_lane(shape, id, &endpoints)
            .map_err(|(_, error)| match error {
                // A port that is not permitted causes this too: in both cases the process lacks a permission.
                TransportError::Denied if self.settings.server_protocols.is_some() => {
                    raise::no_permission(own::NETWORK_PRIORITY_DENIED, Completion::No)
                }
                _ => raise::no_resources(own::LANE_CANNOT_LISTEN, Completion::No),
            })?;
        let lane = Arc::new(lane);
        lane.start().inspect_err(|_| lane.shutdown())?;
        let transport = self.orb.client.transport.as_ref();
        let published = places::without_ports(&self.settings.published);
        Ok(PoolLane {
            published: places::publish(lane.endpoints(), &published, transport),
            lane,
        })
    }

    fn unmake_threadpool(&self, id: ThreadpoolId) -> Result<(), ThreadpoolError> {
        self.orb.require_life()?;
        let mut others = self.others.write().unwrap_or_else(PoisonError::into_inner);
        let at = others.iter().position(|pool| pool.id == id);
        let at = at.ok_or(ThreadpoolError::InvalidThreadpool)?;
        let pool = &others[at];
        let is_used = pool.users.load(Ordering::Acquire) != 0;
        let is_here = pool.lanes.iter().any(|at| at.lane.server.is_served_here());
        if is_used || is_here {
            let used = raise::bad_inv_order(own::THREADPOOL_IN_USE, Completion::No);
            return Err(used.into());
        }
        let pool = others.remove(at);
        drop(others);
        pool.lanes.iter().for_each(|at| at.lane.shutdown());
        Ok(())
    }
}

/// # Errors
/// BAD_PARAM for invalid lanes, IMP_LIMIT for too many lanes or threads.
fn check(lanes: &[ThreadpoolLane]) -> Result<(), SystemException> {
    let priorities = || lanes.iter().map(|lane| lane.lane_priority);
    let is_twice = |(at, priority)| priorities().take(at).any(|before| before == priority);
    let is_idle = |lane: &ThreadpoolLane| lane.static_threads == 0;
    if lanes.is_empty() || lanes.iter().any(is_idle) || priorities().enumerate().any(is_twice) {
        return Err(raise::bad_param(own::LANES_MALFORMED, Completion::No));
    }
    let threads =
        |lane: &ThreadpoolLane| u64::from(lane.static_threads) + u64::from(lane.dynamic_threads);
    let too_many = lanes
        .iter()
        .any(|lane| threads(lane) > POOL_THREADS_MAX as u64);
    if lanes.len() > LANES_MAX || too_many {
        return Err(raise::imp_limit(minor::NONE, Completion::No));
    }
    Ok(())
}

impl RtOrb {
    /// Creates a pool whose threads work at `default_priority`, and at the priority of the request while they serve one
    /// of another priority.
    ///
    /// # Errors
    /// As [`RtOrb::create_threadpool_with_lanes`].
    pub fn create_threadpool(
        &self,
        stacksize: u32,
        static_threads: u32,
        dynamic_threads: u32,
        default_priority: Priority,
        buffering: Option<RequestBuffering>,
    ) -> Result<ThreadpoolId, SystemException> {
        let only = ThreadpoolLane {
            lane_priority: default_priority,
            static_threads,
            dynamic_threads,
        };
        self.pools.make_threadpool(&Plan {
            stack_size: stacksize,
            lanes: &[only],
            has_lanes: false,
            allow_borrowing: false,
            buffering,
        })
    }

    /// Creates a pool with a lane for each priority.
    ///
    /// # Errors
    /// The exceptions are:
    /// - BAD_PARAM without lanes, for a lane without static threads, and for two lanes of one priority;
    /// - BAD_PARAM if lanes spin ([`crate::OrbBuilder::spinning_lanes`]) and this one's threads have a real-time class;
    /// - IMP_LIMIT for more than [`LANES_MAX`] lanes, or [`POOL_THREADS_MAX`] threads of one lane;
    /// - NO_RESOURCES if a thread or a listener cannot be made, and at [`THREADPOOLS_MAX`] pools;
    /// - NO_RESOURCES if the host does not permit the priority of a lane (unless
    ///   [`crate::OrbBuilder::allow_priority_fallback`]);
    /// - DATA_CONVERSION if no native priority is mapped to the priority of a lane;
    /// - BAD_INV_ORDER with minor code 4 once the ORB shuts down.
    pub fn create_threadpool_with_lanes(
        &self,
        stacksize: u32,
        lanes: &[ThreadpoolLane],
        allow_borrowing: bool,
        buffering: Option<RequestBuffering>,
    ) -> Result<ThreadpoolId, SystemException> {
        self.pools.make_threadpool(&Plan {
            stack_size: stacksize,
            lanes,
            has_lanes: true,
            allow_borrowing,
            buffering,
        })
    }

    /// Destroys a pool: its requests in progress finish, then its threads end.
    ///
    /// # Errors
    /// [`ThreadpoolError::InvalidThreadpool`]; BAD_INV_ORDER while the pool serves an adapter or the calling thread.
    pub fn destroy_threadpool(&self, threadpool: ThreadpoolId) -> Result<(), ThreadpoolError> {
        self.pools.unmake_threadpool(threadpool)
    }
}

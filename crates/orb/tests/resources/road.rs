//! After the seal, the server takes no lock for a request and makes two or three system calls. Each count is also
//! checked to detect one more.
//!
//! The test has a process of its own, because locks are counted in the whole process. The client is a socket that sends
//! the same octets again and again.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::support::{TEST_ID, request_saying};
use deckwatch_orb::{
    IdUniqueness, ObjectRef, Orb, Poa, Policies, Priority, PriorityModel, PriorityModelPolicy,
    RequestProcessing, Scheduling, Servant, ServerRequest, SystemException, ThreadpoolLane,
};
use deckwatch_os::perf::{Event, EventCount};
use deckwatch_sync::PiMutex;
use deckwatch_testkit::alone;

/// A servant that can do one thing besides its reply.
#[derive(Default)]
struct Doer {
    /// [`NOTHING`], [`LOCK`] or [`CALL`].
    does: AtomicU8,
    lock: PiMutex<()>,
}

const NOTHING: u8 = 0;
const LOCK: u8 = 1;
const CALL: u8 = 2;

impl Servant for Doer {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[TEST_ID]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        match self.does.load(Ordering::Relaxed) {
            LOCK => drop(self.lock.lock("on purpose")),
            CALL => std::thread::yield_now(),
            _ => {}
        }
        request.reply().map(drop)?;
        Ok(())
    }
}

/// Where the lane waits for the next request of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Road {
    OwnThread,
    SharedPoller,
}

/// How the adapter finds the servant.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Object {
    /// The object key contains the slot.
    Slot,
    Name,
    /// The object is not active: the default servant serves it.
    Default,
    /// One of two lanes serves it: that of the priority in the request.
    OfLane,
}

/// The priority of the called lane, and of the other lane.
const PRIORITIES: [i16; 2] = [90, 5];

impl Object {
    /// The service context with the priority of the request; the reply has it too.
    fn context(self) -> Option<(u32, &'static [u8])> {
        const RT_CORBA_PRIORITY: u32 = 10;
        (self == Self::OfLane).then_some((RT_CORBA_PRIORITY, &[0, 0, 0, 90]))
    }
}

/// A reference to an object that `doer` serves.
fn object((orb, root): (&Orb, &Poa), doer: &Arc<Doer>, (road, by): (Road, Object)) -> ObjectRef {
    let servant: Arc<dyn Servant> = doer.clone();
    let persistent = |request_processing| {
        let mut policies = Policies {
            request_processing,
            ..Policies::persistent()
        };
        if request_processing == RequestProcessing::UseDefaultServant {
            policies.id_uniqueness = IdUniqueness::MultipleId;
        }
        let manager = root.the_poa_manager();
        root.create_poa("named", Some(manager), &policies).unwrap()
    };
    match by {
        Object::Slot => root.servant_to_reference(&servant).unwrap(),
        Object::Name => {
            let poa = persistent(RequestProcessing::UseActiveObjectMapOnly);
            poa.activate_object_with_id(b"id", servant).unwrap();
            poa.id_to_reference(b"id").unwrap()
        }
        Object::Default => {
            let poa = persistent(RequestProcessing::UseDefaultServant);
            poa.set_servant(servant).unwrap();
            poa.create_reference_with_id(b"any", TEST_ID).unwrap()
        }
        Object::OfLane => {
            let poa = of_lanes(orb, root, if road == Road::OwnThread { 2 } else { 1 });
            let id = poa.activate_object(servant).unwrap();
            poa.id_to_reference(&id).unwrap()
        }
    }
}

/// An adapter of two lanes with this many threads each, whose callers send their priority (CLIENT_PROPAGATED).
fn of_lanes(orb: &Orb, root: &Poa, static_threads: u32) -> Poa {
    let priority = |number| Priority::new(number).unwrap();
    let lanes = PRIORITIES.map(|number| ThreadpoolLane {
        lane_priority: priority(number),
        static_threads,
        dynamic_threads: 0,
    });
    let rt = orb.rt_orb();
    let pool = rt.create_threadpool_with_lanes(0, &lanes, false, None);
    let policies = Policies {
        threadpool: Some(pool.unwrap()),
        priority_model: Some(PriorityModelPolicy {
            priority_model: PriorityModel::ClientPropagated,
            server_priority: priority(PRIORITIES[0]),
        }),
        ..Policies::default()
    };
    let manager = root.the_poa_manager();
    root.create_poa("lanes", Some(manager), &policies).unwrap()
}

/// A sealed server, and a connection that has been busy for a while.
struct Served {
    orb: Orb,
    _root: Poa,
    doer: Arc<Doer>,
    stream: TcpStream,
    request: Vec<u8>,
    reply: Vec<u8>,
}

impl Served {
    fn by(road: Road, by: Object) -> Self {
        let builder = Orb::builder().listen("127.0.0.1:0").unwrap();
        let builder = match road {
            Road::OwnThread => builder.dynamic_threads(0),
            // The only thread of a lane does not leave the poller to wait for one connection.
            Road::SharedPoller => builder.threads(1).dynamic_threads(0),
        };
        let orb = builder.scheduling(Scheduling::Other).build().unwrap();
        let root = orb.root_poa().unwrap();
        root.the_poa_manager().activate().unwrap();
        let doer = Arc::new(Doer::default());
        let reference = object((&orb, &root), &doer, (road, by));
        orb.seal();
        let request = request_saying(&reference, (1, 3), "ping", by.context(), &[]);
        let profile = reference.ior().iiop_profiles().next().unwrap().unwrap();
        let stream = TcpStream::connect((profile.host.as_str(), profile.port)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut served = Self {
            orb,
            _root: root,
            doer,
            stream,
            request,
            // A service context has an id and a length, 8 octets.
            reply: vec![0; REPLY_SIZE + by.context().map_or(0, |(_, data)| 8 + data.len())],
        };
        served.ask(REHEARSAL);
        served
    }

    fn ask(&mut self, count: u64) {
        for _ in 0..count {
            self.stream.write_all(&self.request).unwrap();
            self.stream.read_exact(&mut self.reply).unwrap();
            assert_eq!((&self.reply[..4], self.reply[7]), (&b"GIOP"[..], 1));
            let status = &self.reply[16..20];
            assert_eq!(status, [0; 4], "no exception");
        }
    }

    /// Locks of [`LOCK_BATCH`] requests, the least of all batches. A batch has more if a thread loses the processor
    /// between its write and its release of the writer: the thread that serves the next request then queues its reply,
    /// which takes a lock.
    fn locks(&mut self, does: u8) -> u64 {
        self.doer.does.store(does, Ordering::Relaxed);
        let batch = |served: &mut Self| {
            let before = deckwatch_sync::locks_taken();
            deckwatch_sync::count_locks(true);
            served.ask(LOCK_BATCH);
            deckwatch_sync::count_locks(false);
            deckwatch_sync::locks_taken() - before
        };
        let least = (0..LOCK_BATCHES).map(|_| batch(self)).min();
        least.unwrap()
    }

    /// System calls of one request, from the batch with the fewest: no other thread took the processor or the
    /// connection.
    fn calls(&mut self, does: u8, counts: &[EventCount]) -> u64 {
        self.doer.does.store(does, Ordering::Relaxed);
        let sum = || {
            counts
                .iter()
                .map(|count| count.read().unwrap())
                .sum::<u64>()
        };
        let batch = |served: &mut Self| {
            let before = sum();
            served.ask(BATCH);
            sum() - before
        };
        let least = (0..BATCHES).map(|_| batch(self)).min().unwrap();
        // The call that waits for the next request may fall before or after a reading of the counters.
        (least + BATCH / 2) / BATCH
    }
}

/// Size of a GIOP 1.2 reply without results.
const REPLY_SIZE: usize = 24;
/// Number of requests until a thread has adopted the connection.
const REHEARSAL: u64 = 200;
/// Requests per batch, and number of batches. On a busy machine, one of many small batches runs undisturbed.
const BATCH: u64 = 10;
const BATCHES: u64 = 400;
/// The same for locks; a batch is larger, to contain every request that takes a lock now and then.
const LOCK_BATCH: u64 = 200;
const LOCK_BATCHES: u64 = 40;

/// Counters of system calls of the server's threads. Returns `None` and counts a skip with its reason if the host does
/// not permit them.
fn counts_of_lanes() -> Option<Vec<EventCount>> {
    let mut counts = Vec::new();
    for thread in deckwatch_testkit::threads(|name| name.starts_with("orb-")) {
        match EventCount::of_thread(Event::SystemCalls, thread) {
            Ok(count) => counts.push(count),
            Err(error) => {
                deckwatch_testkit::skip("perf events", &error.to_string());
                return None;
            }
        }
    }
    assert!(!counts.is_empty(), "lanes have threads");
    Some(counts)
}

#[test]
fn a_request_takes_no_lock_and_few_system_calls_and_one_too_many_is_counted() {
    alone(|| {
        let roads = [(Road::OwnThread, 2), (Road::SharedPoller, 3)];
        for ((road, calls), by) in roads
            .into_iter()
            .flat_map(|road| [Object::Slot, Object::OfLane].map(|by| (road, by)))
        {
            let mut served = Served::by(road, by);
            assert_eq!(served.locks(NOTHING), 0, "{road:?}, {by:?}");
            assert_eq!(served.locks(LOCK), LOCK_BATCH, "{road:?}, {by:?}");
            if let Some(counts) = counts_of_lanes() {
                assert_eq!(served.calls(NOTHING, &counts), calls, "{road:?}, {by:?}");
                assert_eq!(served.calls(CALL, &counts), calls + 1, "{road:?}, {by:?}");
            } else {
                deckwatch_testkit::did_a_part();
            }
            served.orb.shutdown(true).expect("it ends");
        }
        for by in [Object::Name, Object::Default] {
            let mut served = Served::by(Road::OwnThread, by);
            assert_eq!(served.locks(NOTHING), 0, "{by:?}");
            served.orb.shutdown(true).expect("it ends");
        }
    });
}

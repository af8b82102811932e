//! A high lane serves its clients whatever the clients of other lanes do, and equal clients of one lane get equal
//! service.
//!
//! Nothing is timed. The tests check that the high lane replies while the low lane cannot, that shares are fair, and
//! that nothing is lost or left over. The threads run in the time-sharing class here, so that no client can starve the
//! test. `deckwatch bench priority` and `deckwatch invert` measure latencies.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use crate::support::{Bench, Server, call, call_octets, client_of, note, request, request_of};
use deckwatch_orb::{
    Counter, ObjectRef, Orb, Poa, Policies, Priority, PriorityModel, PriorityModelPolicy,
    RequestBuffering, Scheduling, Servant, SystemException, SystemExceptionKind as Kind,
    ThreadpoolLane,
};

const LOW: i16 = 5;
const HIGH: i16 = 90;

/// Calls that the high lane must serve in each test.
const CALLS: usize = 200;

/// A server with lanes of one thread each, and an object whose callers send their priority (CLIENT_PROPAGATED).
struct Lanes {
    server: Orb,
    _poa: Poa,
    bench: Arc<Bench>,
    text: String,
}

fn lane(priority: i16) -> ThreadpoolLane {
    ThreadpoolLane {
        lane_priority: Priority::new(priority).unwrap(),
        static_threads: 1,
        dynamic_threads: 0,
    }
}

impl Lanes {
    fn start() -> Self {
        Self::of(&[lane(LOW), lane(HIGH)], None)
    }

    /// A server with these lanes.
    fn of(lanes: &[ThreadpoolLane], buffering: Option<RequestBuffering>) -> Self {
        let server = Orb::builder()
            .listen("127.0.0.1:0")
            .unwrap()
            .scheduling(Scheduling::Other)
            .build()
            .unwrap();
        let root = server.root_poa().unwrap();
        let rt_orb = server.rt_orb();
        let made = rt_orb.create_threadpool_with_lanes(0, lanes, false, buffering);
        let policies = Policies {
            threadpool: Some(made.unwrap()),
            priority_model: Some(PriorityModelPolicy {
                priority_model: PriorityModel::ClientPropagated,
                server_priority: Priority::new(LOW).unwrap(),
            }),
            ..Policies::default()
        };
        let manager = root.the_poa_manager().clone();
        let poa = root.create_poa("lanes", Some(&manager), &policies).unwrap();
        manager.activate().unwrap();
        let bench = Arc::new(Bench::default());
        let servant: Arc<dyn Servant> = bench.clone();
        let id = poa.activate_object(servant).unwrap();
        let text = poa.id_to_reference(&id).unwrap().to_string();
        Self {
            server,
            _poa: poa,
            bench,
            text,
        }
    }

    /// A client ORB; the calling thread gets this priority.
    fn client(&self, priority: i16) -> (Orb, ObjectRef) {
        let orb = Orb::builder()
            .scheduling(Scheduling::Other)
            .round_trip_timeout(Duration::from_secs(60))
            .build()
            .unwrap();
        let current = orb.rt_current();
        current
            .set_the_priority(Priority::new(priority).unwrap())
            .unwrap();
        let object = orb.string_to_object(&self.text).unwrap().unwrap();
        (orb, object)
    }

    /// Checks that the high lane serves all its calls.
    fn require_high(&self) {
        let (_orb, high) = self.client(HIGH);
        (0..CALLS as u32).for_each(|number| require_answer(&high, number));
    }

    /// Checks that the high lane serves calls during all of `work`.
    fn require_high_during(&self, work: impl FnOnce()) {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| {
                let (_orb, high) = self.client(HIGH);
                let mut answered = 0;
                while !is_over.load(Ordering::Acquire) {
                    require_answer(&high, answered);
                    answered += 1;
                }
                answered
            });
            let over = Over(&is_over);
            work();
            drop(over);
            let answered = asking.join().unwrap();
            assert_ne!(answered, 0);
        });
        self.require_high();
    }
}

/// Sets the flag when it is dropped, also after a panic.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn require_answer(object: &ObjectRef, number: u32) {
    let octets = number.to_be_bytes();
    assert_eq!(call_octets(object, &octets).as_deref(), Ok(&octets[..]));
}

#[test]
fn the_high_lane_answers_while_clients_of_the_low_one_never_pause() {
    let lanes = Lanes::start();
    let (is_over, served) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                let (_orb, low) = lanes.client(LOW);
                while !is_over.load(Ordering::Relaxed) {
                    call(&low, "ping").unwrap();
                    served.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        lanes.require_high();
        let before = served.load(Ordering::Relaxed);
        while served.load(Ordering::Relaxed) < before + 10 {
            std::thread::yield_now();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(lanes.server.counters().read(Counter::PriorityChanges), 0);
}

#[test]
fn the_high_lane_answers_while_a_low_servant_blocks_for_ever() {
    let lanes = Lanes::start();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (_orb, low) = lanes.client(LOW);
            call(&low, "meet").unwrap();
        });
        lanes.bench.gate.wait_for_arrivals(1);
        lanes.require_high();
        lanes.bench.gate.open();
    });
}

#[test]
fn the_high_lane_answers_while_a_client_floods_the_low_one_with_one_ways() {
    const NOTES: u32 = 20_000;
    let lanes = Lanes::start();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (_orb, low) = lanes.client(LOW);
            (0..NOTES).for_each(|number| note(&low, number).unwrap());
            // Waits until all notes are served.
            while lanes.bench.order.lock().unwrap().len() < NOTES as usize {
                std::thread::yield_now();
            }
        });
        lanes.require_high();
    });
    let order = lanes.bench.order.lock().unwrap();
    assert!(order.iter().copied().eq(0..NOTES), "each once, in order");
}

#[test]
fn the_high_lane_answers_while_a_client_of_the_low_one_stops_reading() {
    let lanes = Lanes::start();
    let (_orb, low) = lanes.client(LOW);
    call(&low, "ping").unwrap();
    // The first endpoint is that of the first lane, which is the low one.
    let (host, port) = endpoint_of(&low);
    let mut stalled = TcpStream::connect((host.as_str(), port)).unwrap();
    stalled
        .set_write_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let asked = request(&low, 7, 60_000);
    // The client requests far more than it reads, until the server stops reading its requests.
    while stalled.write_all(&asked).is_ok() {}
    lanes.require_high();
    // The other clients of the same lane are not delayed either.
    call(&low, "ping").unwrap();
}

/// Host and port of the profile in a reference.
fn endpoint_of(object: &ObjectRef) -> (String, u16) {
    let profile = &object.ior().profiles[0];
    let iiop = deckwatch_giop::ior::IiopProfile::from_octets(&profile.data).unwrap();
    (iiop.host.clone(), iiop.port)
}

/// While the request of one client waits at the lane, each other client is served at most twice: once for a request
/// queued before it, and once for the request in progress. So shares are as equal as the clients' requests. How often
/// the operating system lets each client call is not tested.
#[test]
fn equal_clients_of_one_lane_get_equal_shares() {
    const CLIENTS: usize = 8;
    const CALLS_EACH: u32 = 500;
    let lanes = Lanes::start();
    let (_orb, low) = lanes.client(LOW);
    call(&low, "ping").unwrap();
    let (host, port) = endpoint_of(&low);
    let noted = &lanes.bench.order;
    // `note` with a response; its number is that of the client.
    let notes: Vec<Vec<u8>> = (0..CLIENTS as u32)
        .map(|mine| request_of(&low, (mine, 3), "note", &mine.to_be_bytes()))
        .collect();
    let ready = Barrier::new(CLIENTS);
    std::thread::scope(|scope| {
        for (mine, asked) in notes.iter().enumerate() {
            let (host, ready) = (host.as_str(), &ready);
            scope.spawn(move || {
                let mut connection = TcpStream::connect((host, port)).unwrap();
                ready.wait();
                for _ in 0..CALLS_EACH {
                    connection.write_all(asked).unwrap();
                    // From here on, the request is in the server's socket buffer or queue.
                    let since = noted.lock().unwrap().len();
                    read_reply(&mut connection);
                    let order = noted.lock().unwrap();
                    let behind = &order[since..];
                    // If the note is not found, it was served before this thread read `since`.
                    let waited = behind.iter().position(|who| *who == mine as u32);
                    let mut others = [0_u32; CLIENTS];
                    for who in &behind[..waited.unwrap_or(0)] {
                        others[*who as usize] += 1;
                    }
                    let most = others.iter().max().unwrap();
                    assert!(*most <= 2, "{others:?} while {mine} waited");
                }
            });
        }
    });
    let order = noted.lock().unwrap();
    for mine in 0..CLIENTS as u32 {
        let served = order.iter().filter(|who| **who == mine).count();
        assert_eq!(served, CALLS_EACH as usize);
    }
}

/// Reads one reply.
fn read_reply(connection: &mut TcpStream) {
    let mut header = [0; 12];
    connection.read_exact(&mut header).unwrap();
    let is_little = header[6] & 1 != 0;
    let size = <[u8; 4]>::try_from(&header[8..]).unwrap();
    let size = if is_little {
        u32::from_le_bytes(size)
    } else {
        u32::from_be_bytes(size)
    };
    let mut body = vec![0; size as usize];
    connection.read_exact(&mut body).unwrap();
    assert_eq!(header[7], 1, "a reply");
}

#[test]
fn a_hundred_clients_that_connect_at_once_are_all_answered() {
    let lanes = Lanes::start();
    let ready = Barrier::new(100);
    std::thread::scope(|scope| {
        for number in 0..100_u32 {
            let (lanes, ready) = (&lanes, &ready);
            scope.spawn(move || {
                let (_orb, object) = lanes.client(if number % 2 == 0 { LOW } else { HIGH });
                ready.wait();
                let octets = number.to_be_bytes();
                assert_eq!(call_octets(&object, &octets).as_deref(), Ok(&octets[..]));
            });
        }
    });
}

#[test]
fn the_high_lane_answers_while_a_hundred_clients_connect_to_the_low_one_at_once() {
    let lanes = Lanes::start();
    lanes.require_high_during(|| {
        let ready = Barrier::new(100);
        std::thread::scope(|scope| {
            for number in 0..100_u32 {
                let (lanes, ready) = (&lanes, &ready);
                scope.spawn(move || {
                    let (_orb, low) = lanes.client(LOW);
                    ready.wait();
                    require_answer(&low, number);
                });
            }
        });
    });
    // One connection for each client, one for the client that called during all of the test, and one for the client
    // that called after it.
    let accepted = lanes.server.counters().read(Counter::ConnectionsAccepted);
    assert_eq!(accepted, 102);
}

#[test]
fn a_thousand_connections_that_open_and_die_leave_nothing() {
    let server = Server::start();
    let (_orb, object) = client_of(&server);
    open_and_die(&server.address().to_string(), &server.orb, &object);
    let accepted = server.orb.counters().read(Counter::ConnectionsAccepted);
    assert_eq!(accepted, 1_001, "and the client's own");
}

#[test]
fn the_high_lane_answers_while_a_thousand_connections_of_the_low_one_open_and_die() {
    let lanes = Lanes::start();
    let (_orb, low) = lanes.client(LOW);
    let (host, port) = endpoint_of(&low);
    lanes.require_high_during(|| open_and_die(&format!("{host}:{port}"), &lanes.server, &low));
    let accepted = lanes.server.counters().read(Counter::ConnectionsAccepted);
    assert_eq!(accepted, 1_003, "and those of three clients");
}

/// Opens a thousand connections and closes all of them, and calls the object meanwhile.
fn open_and_die(address: &str, server: &Orb, object: &ObjectRef) {
    let asked = request(object, 1, 8);
    // All connections may have been closed before the first check of the count.
    call(object, "ping").unwrap();
    for number in 0..1_000 {
        let mut connection = TcpStream::connect(address).unwrap();
        // The connection closes before a message, within one, or after one.
        let sent = [0, 5, asked.len() / 2, asked.len()][number % 4];
        connection.write_all(&asked[..sent]).unwrap();
    }
    let closed = || server.counters().read(Counter::ConnectionsClosed);
    let given_up = Instant::now() + Duration::from_secs(60);
    // All connections are closed except those of the clients.
    while closed() < 1_000 && Instant::now() < given_up {
        call(object, "ping").unwrap();
    }
    assert_eq!(closed(), 1_000);
}

#[test]
fn whoever_comes_to_a_full_lane_and_full_buffers_hears_of_it_while_the_lane_is_still_full() {
    let buffering = RequestBuffering {
        max_buffered_requests: 1,
        max_request_buffer_size: 0,
    };
    let full = Lanes::of(&[lane(LOW)], Some(buffering));
    let (bench, text) = (&full.bench, &full.text);
    let client = Orb::builder().build().unwrap();
    let object = client.string_to_object(text).unwrap().unwrap();
    std::thread::scope(|scope| {
        let meet = || -> Result<(), SystemException> { call(&object, "meet") };
        let first = scope.spawn(meet);
        bench.gate.wait_for_arrivals(1);
        // One request waits in the buffer. The others are refused at once: the thread of the lane is still at the gate.
        let others: Vec<_> = (0..3).map(|_| scope.spawn(meet)).collect();
        let given_up = Instant::now() + Duration::from_secs(60);
        while others.iter().filter(|other| other.is_finished()).count() < 2 {
            assert!(Instant::now() < given_up, "nobody was refused");
            std::thread::yield_now();
        }
        bench.gate.open();
        assert_eq!(first.join().unwrap(), Ok(()));
        let outcomes: Vec<_> = others
            .into_iter()
            .map(|other| other.join().unwrap())
            .collect();
        let refused = |outcome: &&Result<(), SystemException>| {
            outcome.is_err_and(|raised| raised.kind == Kind::Transient)
        };
        assert_eq!(outcomes.iter().filter(refused).count(), 2, "{outcomes:?}");
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    });
}

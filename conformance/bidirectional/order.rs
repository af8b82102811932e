//! Requests that arrive over a bidirectional connection keep their order, and never keep replies from being read (CORBA
//! 3.3 part 2, clause 9.9.1). The other side's octets are made by hand.

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::common;
use crate::common::both::{BI_DIR_IIOP, NOWHERE, Opener, both, nowhere, ping, said};
use crate::common::lanes::{DecodedReference, LaneWorld, priority};
use crate::common::message::{CLOSE_CONNECTION, NO_EXCEPTION, REQUEST, SYNC_NONE, done, message};
use crate::common::servant::{PROBE_ID, Probe};
use crate::common::{Over, Peer, Received, Request, Wire, wait_for};
use deckwatch_cdr::Parse;
use deckwatch_orb::limits::REQUEST_QUEUE_MAX;
use deckwatch_orb::{
    Counter, ObjectRef, Policies, RequestBuffering, Servant, ServerRequest, SystemException,
};

/// More requests than may wait in one queue.
const MANY: u32 = 3 * REQUEST_QUEUE_MAX as u32;

/// A [`Probe`] that keeps the reference passed to it, and calls it.
#[derive(Default)]
struct Relay {
    probe: Probe,
    kept: Mutex<Option<ObjectRef>>,
}

impl Relay {
    fn kept(&self) -> ObjectRef {
        let kept = self.kept.lock().expect("nobody panics with it");
        kept.clone().expect("one was given")
    }

    fn keep(&self, request: &ServerRequest<'_>) -> Result<(), SystemException> {
        let object: Option<ObjectRef> = Parse::parse(&mut request.arguments())?;
        *self.kept.lock().expect("nobody panics with it") = object;
        Ok(())
    }
}

impl Servant for Relay {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[PROBE_ID]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        match request.operation() {
            b"keep" => self.keep(request)?,
            b"call" => ping(&self.kept())?,
            b"keep_and_call" => {
                self.keep(request)?;
                ping(&self.kept())?;
            }
            _ => return self.probe.dispatch(request),
        }
        request.reply()?;
        Ok(())
    }
}

/// A server that calls back over the connections of its clients.
struct Server {
    world: LaneWorld,
    relay: Arc<Relay>,
    told: DecodedReference,
}

impl Server {
    /// The object is served by a pool of one thread with these limits; `None`: by the threads of the ORB.
    fn new(limits: Option<(u32, u32)>) -> Self {
        let world = LaneWorld::new(Over::Tcp);
        let rt = world.orb.rt_orb();
        let pool = limits.map(|(max_buffered_requests, max_request_buffer_size)| {
            let buffering = Some(RequestBuffering {
                max_buffered_requests,
                max_request_buffer_size,
            });
            let made = rt.create_threadpool(0, 1, 0, priority(5), buffering);
            made.expect("one thread")
        });
        let policies = Policies {
            threadpool: pool,
            ..both()
        };
        let relay = Arc::new(Relay::default());
        let servant: Arc<dyn Servant> = relay.clone();
        let poa = world.adapter("relay", &policies);
        let id = poa.activate_object(servant).expect("an id");
        let told = DecodedReference::of(&poa.id_to_reference(&id).expect("it is active"));
        Self { world, relay, told }
    }

    /// Opens a connection and makes the server keep a reference for callbacks over it.
    fn connect(&self) -> Wire {
        let mut wire = Wire::at(&self.told.address());
        let keep = self.keep("keep").with(|octets| nowhere(2).write(octets));
        assert_eq!(wire.ask(&keep).reply().status, NO_EXCEPTION);
        wire
    }

    /// The first request of a connection, with a reference to an object of the opener.
    fn keep(&self, operation: &str) -> Request {
        let points = said(&[NOWHERE]);
        self.told.request(operation).context(BI_DIR_IIOP, &points)
    }

    fn oneway(&self, operation: &str) -> Vec<u8> {
        self.told.request(operation).flags(SYNC_NONE).bare()
    }

    fn notes(&self, numbers: std::ops::Range<u32>) -> Vec<u8> {
        let note = |number| {
            let note = self.told.request("note").flags(SYNC_NONE);
            note.with(|octets| {
                octets.u32(number);
            })
        };
        numbers.flat_map(note).collect()
    }

    /// Occupies the thread with a one-way until the gate opens.
    fn occupy(&self, wire: &mut Wire) {
        wire.say(&self.oneway("meet"));
        self.relay.probe.gate.wait_for_arrivals(1);
    }

    /// Calls back from a thread of the application.
    fn call(&self) -> JoinHandle<Result<(), SystemException>> {
        let kept = self.relay.kept();
        std::thread::spawn(move || ping(&kept))
    }

    fn served(&self) -> Vec<u32> {
        self.relay.probe.notes()
    }

    fn refused(&self) -> u64 {
        self.world.orb.counters().read(Counter::RequestsRefused)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.relay.probe.gate.open();
        let _ = self.world.orb.shutdown(true); // The test may have shut it down.
        self.relay
            .kept
            .lock()
            .expect("nobody panics with it")
            .take();
    }
}

/// The next callback.
fn heard(wire: &mut Wire) -> Received {
    let asked = wire.hear().expect("a request");
    assert_eq!(asked.kind(), REQUEST);
    asked
}

#[test]
fn a_caller_gets_its_reply_past_oneways_that_come_back_over_its_connection() {
    let opener = Arc::new(Opener::new(&both()));
    let asks = Arc::clone(&opener);
    let peer = Peer::start(Over::Tcp, move |_, wire, tell| {
        let asked = wire.hear().expect("a request");
        wire.say(&asks.request(9, "meet").flags(SYNC_NONE).bare());
        for number in 0..100 {
            let note = asks.request(11, "note").flags(SYNC_NONE);
            wire.say(&note.with(|octets| {
                octets.u32(number);
            }));
        }
        wire.say(&asks.request(13, "ping").bare());
        wire.say(&done(&asked));
        tell(wire.hear().expect("a reply"));
    });
    assert_eq!(ping(&peer.seen_by(&opener.orb, 2)), Ok(()));
    assert!(opener.probe.notes().is_empty());
    opener.probe.gate.open();
    // The reply to the request after the one-ways comes after them.
    let answered = peer.heard().reply();
    assert_eq!((answered.id, answered.status), (13, NO_EXCEPTION));
    assert_eq!(opener.probe.notes(), (0..100).collect::<Vec<_>>());
}

#[test]
fn a_servant_of_a_oneway_calls_back_over_the_connection_that_it_came_over() {
    let server = Server::new(None);
    // The first message of the connection may call back too.
    let mut wire = Wire::at(&server.told.address());
    let first = server.keep("keep_and_call").flags(SYNC_NONE);
    wire.say(&first.with(|octets| nowhere(2).write(octets)));
    for round in 0..10 {
        let asked = heard(&mut wire);
        wire.say(&done(&asked));
        wire.say(&server.notes(round..round + 1));
        wire.say(&server.oneway("call"));
    }
    let asked = heard(&mut wire);
    wire.say(&done(&asked));
    let answer = wire.ask(&server.told.request("ping").bare());
    assert_eq!(answer.reply().status, NO_EXCEPTION);
    assert_eq!(server.served(), (0..10).collect::<Vec<_>>());
}

#[test]
fn a_reply_comes_past_a_full_lane_which_refuses_what_it_has_no_room_for() {
    let server = Server::new(Some((2, 0)));
    let mut wire = server.connect();
    server.occupy(&mut wire);
    let caller = server.call();
    let asked = heard(&mut wire);
    wire.say(&server.notes(0..5));
    let refused = wire.ask(&server.told.request("ping").id(30).bare());
    let refused = refused.reply();
    assert_eq!(refused.id, 30);
    assert_eq!(refused.exception().0, "IDL:omg.org/CORBA/TRANSIENT:1.0");
    wire.say(&done(&asked));
    assert_eq!(caller.join().expect("no panic"), Ok(()));
    assert_eq!(server.refused(), 4);
    server.relay.probe.gate.open();
    wait_for(|| server.served() == [0, 1]);
    let answer = wire.ask(&server.told.request("ping").bare());
    assert_eq!(answer.reply().status, NO_EXCEPTION);
}

#[test]
fn a_reply_comes_past_more_than_may_wait_for_one_another() {
    let server = Server::new(None);
    let mut wire = server.connect();
    server.occupy(&mut wire);
    let caller = server.call();
    let asked = heard(&mut wire);
    wire.say(&server.notes(0..MANY));
    wire.say(&done(&asked));
    assert_eq!(caller.join().expect("no panic"), Ok(()));
    server.relay.probe.gate.open();
    wait_for(|| server.served().len() as u64 + server.refused() == u64::from(MANY));
    assert!(server.refused() != 0 && server.served().len() >= REQUEST_QUEUE_MAX);
    assert!(server.served().is_sorted());
}

#[test]
fn a_peer_that_owes_no_reply_is_held_up_and_loses_nothing() {
    for calls in [false, true] {
        let server = Server::new(None);
        let mut wire = server.connect();
        server.occupy(&mut wire);
        wire.say(&server.notes(0..MANY));
        let buffered = || server.world.orb.counters().read(Counter::RequestsBuffered);
        wait_for(|| buffered() == REQUEST_QUEUE_MAX as u64);
        if calls {
            let caller = server.call();
            let asked = heard(&mut wire);
            wire.say(&done(&asked));
            assert_eq!(caller.join().expect("no panic"), Ok(()));
        }
        server.relay.probe.gate.open();
        let answer = wire.ask(&server.told.request("ping").bare());
        assert_eq!(answer.reply().status, NO_EXCEPTION);
        assert_eq!(server.refused() != 0, calls);
        assert_eq!(
            server.served().len() as u64 + server.refused(),
            u64::from(MANY)
        );
        assert!(server.served().is_sorted());
    }
}

#[test]
fn a_reply_comes_while_the_peer_does_not_take_ours() {
    let server = Server::new(None);
    let mut wire = server.connect();
    let caller = server.call();
    let asked = heard(&mut wire);
    let large = vec![7; 12 << 20];
    for id in 0..2 {
        let request = server.told.request("octets").id(id);
        wire.say(&request.with(|octets| {
            octets.sequence(&large);
        }));
    }
    let owed = || server.world.orb.counters().read(Counter::RepliesQueued);
    wait_for(|| owed() != 0);
    wire.say(&done(&asked));
    assert_eq!(caller.join().expect("no panic"), Ok(()));
    let mut ids = [0; 2].map(|_: u32| {
        let mut answer = wire.hear().expect("a reply").reply();
        assert_eq!(answer.body.sequence(), large);
        answer.id
    });
    ids.sort_unstable();
    assert_eq!(ids, [0, 1]);
}

#[test]
fn oneways_that_came_before_the_end_of_their_connection_are_served() {
    for (says_farewell, limits) in [(false, None), (true, None), (true, Some((0, 0)))] {
        let server = Server::new(limits);
        let mut wire = server.connect();
        server.occupy(&mut wire);
        wire.say(&server.notes(0..50));
        if says_farewell {
            wire.say(&message((2, common::Order::Big), CLOSE_CONNECTION, |_| ()));
        }
        wire.end();
        let buffered = || server.world.orb.counters().read(Counter::RequestsBuffered);
        // The first request may have waited for its thread too.
        wait_for(|| buffered() >= 50);
        server.relay.probe.gate.open();
        wait_for(|| server.served() == (0..50).collect::<Vec<_>>());
        let closed = || server.world.orb.counters().read(Counter::ConnectionsClosed);
        wait_for(|| closed() == 1);
    }
}

#[test]
fn what_waits_at_the_end_of_the_orb_is_not_served() {
    let server = Server::new(None);
    let mut wire = server.connect();
    server.occupy(&mut wire);
    wire.say(&server.notes(0..50));
    let buffered = || server.world.orb.counters().read(Counter::RequestsBuffered);
    wait_for(|| buffered() == 50);
    server.world.orb.shutdown(false).expect("once");
    let (host, port) = server.told.address();
    wait_for(|| std::net::TcpStream::connect((host.as_str(), port)).is_err());
    server.relay.probe.gate.open();
    assert_eq!(wire.hear().expect("a farewell").kind(), CLOSE_CONNECTION);
    wire.expect_end();
    // `destroy` waits for the threads of the lanes to end, so nothing is served later.
    server.world.orb.destroy().expect("once");
    assert!(server.served().is_empty());
}

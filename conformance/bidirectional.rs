//! Bidirectional GIOP by clause (CORBA 3.3 part 2, clause 9.9): octets made by hand on the other side.

#[path = "common/mod.rs"]
mod common;

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use common::ior::{Ior, TAG_INTERNET_IOP, iiop_profile};
use common::message::{
    CANCEL_REQUEST, CLOSE_CONNECTION, LOCATE_REPLY, LOCATE_REQUEST, LOCATION_FORWARD, NO_EXCEPTION,
    REPLY, REQUEST, SYNC_NONE, SYSTEM_EXCEPTION, reply,
};
use common::servant::Probe;
use common::{Cursor, Octets, Order, Over, Peer, Received, Request, Wire, message, wait_for};
use deckwatch_cdr::{Any, DecodeError, Parse, Reader, Write};
use deckwatch_orb::{
    BidirectionalPolicyValue, Completion, Counter, Deliver, ObjectRef, Orb, OrbBuilder, Policies,
    Policy, PolicyErrorCode, PolicyType, PollableSetError, RequestError, Servant, ServerRequest,
    SetOverrideType, SyncScope, SystemException, SystemExceptionKind as Kind, UtcT, own_minor,
};

const BI_DIR_IIOP: u32 = 5;
const INVOCATION_POLICIES: u32 = 7;
const REQUEST_START: u32 = 27;
const FORM: (u8, Order) = (2, Order::Big);

fn both() -> Policies {
    Policies {
        bidirectional: BidirectionalPolicyValue::Both,
        ..Policies::root()
    }
}

/// An ORB whose objects may be asked over the connections that it opens, and one of them.
struct Opener {
    orb: Orb,
    probe: Arc<Probe>,
    object: ObjectRef,
}

impl Opener {
    fn new(policies: &Policies) -> Self {
        let builder = Orb::builder().round_trip_timeout(common::PATIENCE);
        let builder = builder.policy(Policy::Bidirectional(BidirectionalPolicyValue::Both));
        let orb = common::listening(Over::Tcp, builder);
        let root = orb.root_poa().unwrap();
        let manager = root.the_poa_manager();
        manager.activate().unwrap();
        let poa = root.create_poa("both", Some(manager), policies).unwrap();
        let probe = Arc::new(Probe::default());
        let servant: Arc<dyn Servant> = probe.clone();
        let object = poa.servant_to_reference(&servant).unwrap();
        Self { orb, probe, object }
    }

    /// A request for its object, as a server sends it back.
    fn request(&self, id: u32, operation: &str) -> Request {
        Request::new(FORM, self.object.object_key().unwrap(), operation).id(id)
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        let _by_the_test = self.orb.shutdown(true);
    }
}

fn parse_number(r: &mut Reader<'_>) -> Result<u64, DecodeError> {
    u64::parse(r)
}

fn ping(object: &ObjectRef) -> Result<(), SystemException> {
    object.invoke("ping", |_| Ok(()), |_| Ok(()), |_, _| Ok(None))
}

/// The listen points that a request announces, if it does.
fn announced(asked: &Received) -> Option<Vec<(String, u16)>> {
    let contexts = asked.asked().contexts;
    let (_, data) = contexts.into_iter().find(|(id, _)| *id == BI_DIR_IIOP)?;
    let mut r = Cursor::encapsulated(&data);
    let count = r.u32();
    Some((0..count).map(|_| (r.string(), r.u16())).collect())
}

fn pong(asked: &Received) -> Vec<u8> {
    reply(asked.form(), asked.asked().id, NO_EXCEPTION, |_| ())
}

#[test]
fn an_opener_says_where_it_listens_with_its_first_request_and_numbers_them_evenly() {
    let peer = Peer::answering(Over::Tcp, |_, asked| pong(asked));
    let opener = Opener::new(&both());
    let server = peer.seen_by(&opener.orb, 2);
    let endpoint = opener.orb.endpoints()[0].clone();
    for is_first in [true, false] {
        assert_eq!(ping(&server), Ok(()));
        let asked = peer.heard();
        assert_eq!(asked.asked().id % 2, 0);
        let points = announced(&asked);
        assert_eq!(points.is_some(), is_first);
        for (host, port) in points.iter().flatten() {
            assert_eq!(endpoint.to_string(), format!("{host}:{port}"));
        }
    }
}

#[test]
fn a_question_where_the_object_is_says_nothing_of_its_connection_and_the_first_request_does() {
    let peer = Peer::answering(Over::Tcp, |_, asked| match asked.kind() {
        LOCATE_REQUEST => message(asked.form(), LOCATE_REPLY, |octets| {
            octets.u32(asked.body().u32()).u32(1);
        }),
        _ => pong(asked),
    });
    let opener = Opener::new(&both());
    let server = peer.seen_by(&opener.orb, 2);
    assert_eq!(server.validate_connection(), Ok(true));
    assert_eq!(peer.heard().kind(), LOCATE_REQUEST);
    for is_first in [true, false] {
        assert_eq!(ping(&server), Ok(()));
        assert_eq!(announced(&peer.heard()).is_some(), is_first);
    }
    assert_eq!(opener.orb.counters().read(Counter::ConnectionsMade), 1);
}

#[test]
fn nobody_offers_it_without_the_policy_at_both_ends_of_his_or_before_giop_1_2() {
    let normal = SetOverrideType::AddOverride;
    for (policies, value, minor) in [
        (both(), BidirectionalPolicyValue::Normal, 2),
        (Policies::root(), BidirectionalPolicyValue::Both, 2),
        (both(), BidirectionalPolicyValue::Both, 1),
        (both(), BidirectionalPolicyValue::Both, 0),
    ] {
        let peer = Peer::answering(Over::Tcp, |_, asked| pong(asked));
        let opener = Opener::new(&policies);
        let server = peer.seen_by(&opener.orb, minor);
        let server = server.set_policy_overrides(&[Policy::Bidirectional(value)], normal);
        assert_eq!(ping(&server.unwrap()), Ok(()));
        assert_eq!(announced(&peer.heard()), None);
    }
}

#[test]
fn a_server_calls_back_over_the_connection_while_its_own_request_is_under_way() {
    let opener = Arc::new(Opener::new(&both()));
    let asks = Arc::clone(&opener);
    let peer = Peer::start(Over::Tcp, move |_, wire, tell| {
        while let Some(asked) = wire.hear() {
            // A request, a one-way and a question where the object is, before the answer.
            wire.say(&asks.request(9, "note").flags(SYNC_NONE).with(|octets| {
                octets.u32(4);
            }));
            let number = asks.request(11, "number");
            let answer = wire.ask(&number.with(|octets| {
                octets.u64(1 << 33);
            }));
            wire.say(&pong(&asked));
            tell(answer);
        }
    });
    let server = peer.seen_by(&opener.orb, 2);
    for calls in 1..4 {
        assert_eq!(ping(&server), Ok(()));
        let mut answer = peer.heard().reply();
        assert_eq!((answer.id, answer.status), (11, NO_EXCEPTION));
        assert_eq!(answer.body.u64(), 1 << 33);
        assert_eq!(opener.probe.notes(), vec![4; calls]);
    }
    let accepted = opener.orb.counters().read(Counter::ConnectionsAccepted);
    assert_eq!(accepted, 0);
}

#[test]
fn calls_of_many_threads_share_the_connection_and_each_gets_its_own_reply() {
    let opener = Opener::new(&both());
    // Answers two at a time, the later one first.
    let peer = Peer::start(Over::Tcp, |_, wire, _| {
        while let (Some(one), Some(other)) = (wire.hear(), wire.hear()) {
            for asked in [other, one] {
                let mut asked = asked.asked();
                let number = asked.body.u64();
                wire.say(&reply(asked.form, asked.id, NO_EXCEPTION, |octets| {
                    octets.u64(number);
                }));
            }
        }
    });
    let server = peer.seen_by(&opener.orb, 2);
    std::thread::scope(|scope| {
        for thread in 0..2_u64 {
            let server = &server;
            scope.spawn(move || {
                for call in 0..50 {
                    let number = thread << 32 | call;
                    let got: Result<u64, SystemException> =
                        server.invoke("number", |w| number.write(w), parse_number, |_, _| Ok(None));
                    assert_eq!(got, Ok(number));
                }
            });
        }
    });
}

#[test]
fn a_request_past_its_end_is_not_sent_on_to_where_it_is_forwarded() {
    let port = Arc::new(Mutex::new(0));
    let own = Arc::clone(&port);
    let peer = Peer::answering(Over::Tcp, move |_, asked| {
        let here = ("127.0.0.1", *own.lock().unwrap());
        if asked.asked().key == b"Other" {
            return pong(asked);
        }
        std::thread::sleep(Duration::from_millis(300));
        let profile = iiop_profile(Order::Big, 2, here, b"Other", &[]);
        let other = Ior {
            type_id: String::new(),
            profiles: vec![(TAG_INTERNET_IOP, profile)],
        };
        let id = asked.asked().id;
        reply(asked.form(), id, LOCATION_FORWARD, |octets| {
            other.write(octets)
        })
    });
    *port.lock().unwrap() = peer.port();
    let opener = Opener::new(&both());
    let ending = || {
        let end = [Policy::RequestEndTime(time_in(Duration::from_millis(200)))];
        let object = peer.seen_by(&opener.orb, 2);
        let ending = object.set_policy_overrides(&end, SetOverrideType::AddOverride);
        ending.unwrap()
    };
    let nothing = |_: &str, _: &mut Reader<'_>| Ok(None);
    let asked = |object: ObjectRef| {
        let poller = object.send_poller("ping", |_| Ok(()))?;
        poller.poll("ping", u32::MAX, |_| Ok(()), nothing)
    };
    for ended in [ping(&ending()), asked(ending())] {
        let ended = ended.unwrap_err();
        let past = (Kind::Timeout, own_minor::END_TIME_PASSED);
        assert_eq!((ended.kind, ended.minor), past);
        assert_eq!(ended.completed, Completion::No);
    }
    assert_eq!(peer.heard_so_far(), 2);
}

#[test]
fn oneways_over_it_wait_for_their_start_and_are_not_sent_past_their_end() {
    let peer = Peer::start(Over::Tcp, |_, wire, tell| {
        while let Some(heard) = wire.hear() {
            tell(heard);
        }
    });
    let opener = Opener::new(&both());
    let server = peer.seen_by(&opener.orb, 2);
    let note = |time| {
        let policies = [Policy::SyncScope(SyncScope::WithTransport), time];
        let timed = server.set_policy_overrides(&policies, SetOverrideType::AddOverride);
        timed.unwrap().invoke_oneway("note", |w| 5_u32.write(w))
    };
    let wait = Duration::from_millis(100);
    let start = SystemTime::now() + wait;
    assert_eq!(note(Policy::RequestStartTime(time_in(wait))), Ok(()));
    assert!(SystemTime::now() >= start, "it was sent before its start");
    assert_eq!(peer.heard().asked().operation, "note");
    let past = UtcT::from_unix_ns(1_000_000_000, Duration::ZERO);
    let ended = note(Policy::RequestEndTime(past)).unwrap_err();
    let expected = (Kind::Timeout, own_minor::END_TIME_PASSED);
    assert_eq!((ended.kind, ended.minor), expected);
    assert_eq!(peer.heard_so_far(), 0);
}

#[test]
fn an_object_whose_adapter_does_not_take_part_is_not_asked_over_it() {
    let opener = Arc::new(Opener::new(&both()));
    let root = opener.orb.root_poa().unwrap();
    let servant: Arc<dyn Servant> = Arc::new(Probe::default());
    let hidden = root.servant_to_reference(&servant).unwrap();
    let key = hidden.object_key().unwrap().to_vec();
    let peer = Peer::start(Over::Tcp, move |_, wire, tell| {
        while let Some(asked) = wire.hear() {
            tell(wire.ask(&Request::new(FORM, &key, "ping").bare()));
            wire.say(&pong(&asked));
        }
    });
    assert_eq!(ping(&peer.seen_by(&opener.orb, 2)), Ok(()));
    let mut answer = peer.heard().reply();
    assert_eq!(answer.status, SYSTEM_EXCEPTION);
    assert_eq!(answer.body.string(), "IDL:omg.org/CORBA/OBJ_ADAPTER:1.0");
}

#[test]
fn a_connection_that_its_server_closes_is_replaced_and_one_that_breaks_is_a_failure() {
    let opener = Opener::new(&both());
    let peer = Peer::start(Over::Tcp, |index, wire, tell| {
        let asked = wire.hear().expect("a request");
        match index {
            0 => wire.say(&message(FORM, CLOSE_CONNECTION, |_| ())),
            1 => {
                wire.say(&pong(&asked));
                let _unanswered = wire.hear();
            }
            _ => wire.say(&pong(&asked)),
        }
        tell(asked);
    });
    let server = peer.seen_by(&opener.orb, 2);
    assert_eq!(
        ping(&server).map_err(|exception| exception.completed),
        Err(Completion::No)
    );
    assert_eq!(ping(&server), Ok(()));
    let lost = ping(&server).unwrap_err();
    assert_eq!(
        (lost.kind, lost.completed),
        (Kind::CommFailure, Completion::Maybe)
    );
    assert_eq!(ping(&server), Ok(()));
    for _ in 0..3 {
        assert!(announced(&peer.heard()).is_some());
    }
}

#[test]
fn a_call_that_is_given_up_is_cancelled_and_its_late_reply_hurts_nobody() {
    let opener = Opener::new(&both());
    let peer = Peer::start(Over::Tcp, |_, wire, tell| {
        let given_up = wire.hear().expect("a request");
        let cancel = wire.hear().expect("a cancel request");
        tell(cancel);
        wire.say(&pong(&given_up));
        while let Some(asked) = wire.hear() {
            wire.say(&pong(&asked));
        }
    });
    let server = peer.seen_by(&opener.orb, 2);
    let hasty = server.with_round_trip_timeout(Some(Duration::from_millis(20)));
    assert_eq!(ping(&hasty).unwrap_err().kind, Kind::Timeout);
    assert_eq!(peer.heard().kind(), CANCEL_REQUEST);
    assert_eq!(ping(&server), Ok(()));
    assert_eq!(opener.orb.counters().read(Counter::RepliesToNobody), 1);
}

/// Keeps the reference it is given, and calls it, or the one it has been given before.
#[derive(Default)]
struct Caller {
    kept: Mutex<Option<ObjectRef>>,
    /// Whether its asynchronous calls had results.
    told: Arc<Mutex<Vec<bool>>>,
}

impl Caller {
    fn kept(&self) -> ObjectRef {
        self.kept.lock().unwrap().clone().expect("one was given")
    }
}

impl Servant for Caller {
    fn repository_ids(&self) -> &'static [&'static str] {
        &["IDL:conformance/Caller:1.0"]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        match request.operation() {
            b"keep" => {
                let object: Option<ObjectRef> = Parse::parse(&mut request.arguments())?;
                *self.kept.lock().unwrap() = object;
            }
            b"call" => ping(&self.kept())?,
            b"send" => {
                let told = Arc::clone(&self.told);
                let deliver: Deliver = Box::new(move |reply| {
                    let given = reply.results(|_| Ok(()));
                    told.lock().unwrap().push(given.is_ok());
                    Ok(())
                });
                self.kept()
                    .send_callback("ping", |_| Ok(()), Some(deliver))?;
            }
            b"poll" => {
                let poller = self.kept().send_poller("ping", |_| Ok(()))?;
                poller.poll::<_, SystemException>("ping", u32::MAX, |_| Ok(()), |_, _| Ok(None))?;
            }
            b"await" => {
                let poller = self.kept().send_poller("ping", |_| Ok(()))?;
                let ready = poller.create_pollable_set().ready_pollable(u32::MAX);
                if let Err(PollableSetError::System(raised)) = ready {
                    return Err(raised);
                }
            }
            b"fetch" => {
                let mut asked = self.kept().create_request("ping");
                asked.send_deferred()?;
                if let Err(RequestError::System(raised)) = asked.response() {
                    return Err(raised);
                }
            }
            _ => self.kept().invoke_oneway("note", |w| 5_u32.write(w))?,
        }
        request.reply()?;
        Ok(())
    }
}

/// A server that calls back, and the key of its object.
struct Acceptor {
    orb: Orb,
    caller: Arc<Caller>,
    key: Vec<u8>,
}

impl Acceptor {
    fn new(policies: &Policies) -> Self {
        Self::with(Orb::builder(), policies)
    }

    fn with(builder: OrbBuilder, policies: &Policies) -> Self {
        let builder = builder
            .round_trip_timeout(common::PATIENCE)
            .connect_timeout(Duration::from_secs(5));
        let orb = common::listening(Over::Tcp, builder);
        let root = orb.root_poa().unwrap();
        let manager = root.the_poa_manager();
        manager.activate().unwrap();
        let poa = root.create_poa("both", Some(manager), policies).unwrap();
        let caller = Arc::new(Caller::default());
        let servant: Arc<dyn Servant> = caller.clone();
        let reference = poa.servant_to_reference(&servant).unwrap();
        let key = reference.object_key().unwrap().to_vec();
        Self { orb, caller, key }
    }

    fn request(&self, id: u32, operation: &str) -> Request {
        Request::new(FORM, &self.key, operation).id(id)
    }

    /// Has it keep a reference to the object `Fake` at a port where nobody listens, by a caller that says it listens at `points`.
    fn keep(&self, wire: &mut Wire, points: &[(&str, u16)]) {
        let request = self.request(2, "keep").context(BI_DIR_IIOP, &said(points));
        let answer = wire.ask(&request.with(|octets| nowhere(FORM.0).write(octets)));
        assert_eq!(answer.reply().status, NO_EXCEPTION);
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.caller.kept.lock().unwrap().take();
        let _by_the_test = self.orb.shutdown(true);
    }
}

/// A service context that says where its sender listens.
fn said(points: &[(&str, u16)]) -> Vec<u8> {
    let mut octets = Octets::encapsulation(Order::Little);
    octets.u32(points.len().try_into().unwrap());
    for (host, port) in points {
        octets.string(host).u16(*port);
    }
    octets.octets
}

/// So long from now.
fn time_in(wait: Duration) -> UtcT {
    let since_1970 = (SystemTime::now() + wait).duration_since(SystemTime::UNIX_EPOCH);
    let unix_ns = u64::try_from(since_1970.unwrap().as_nanos()).unwrap();
    UtcT::from_unix_ns(unix_ns, Duration::ZERO)
}

/// A service context by which its request is not to be served before so long.
fn starting_in(wait: Duration) -> Vec<u8> {
    let mut time = Octets::encapsulation(Order::Big);
    time.u64(time_in(wait).time).u32(0).u16(0).u16(0);
    let mut octets = Octets::encapsulation(Order::Big);
    octets.u32(1).u32(REQUEST_START).sequence(&time.octets);
    octets.octets
}

/// Nobody listens there.
const NOWHERE: (&str, u16) = ("127.0.0.1", 1);

fn nowhere(minor: u8) -> Ior {
    Ior {
        type_id: "IDL:conformance/Fake:1.0".to_owned(),
        profiles: vec![(
            TAG_INTERNET_IOP,
            iiop_profile(Order::Big, minor, NOWHERE, b"Fake", &[]),
        )],
    }
}

#[test]
fn a_server_asks_the_opener_over_its_connection_by_odd_numbers() {
    let server = Acceptor::new(&both());
    let mut wire = Wire::to(&server.orb);
    server.keep(&mut wire, &[("elsewhere", 9), NOWHERE]);
    for round in 0..3 {
        wire.say(&server.request(4, "call").bare());
        let asked = wire.hear().expect("a request");
        assert_eq!(asked.kind(), REQUEST);
        let callback = asked.asked();
        assert_eq!(
            (callback.key, callback.operation.as_str()),
            (b"Fake".to_vec(), "ping")
        );
        assert_eq!(callback.id % 2, 1, "round {round}");
        wire.say(&pong(&asked));
        let answer = wire.hear().expect("a reply").reply();
        assert_eq!((answer.id, answer.status), (4, NO_EXCEPTION));
    }
    // Between requests of its opener, too, and one-ways.
    let kept = server.caller.kept();
    let calls = std::thread::spawn(move || ping(&kept));
    let asked = wire.hear().expect("a request");
    wire.say(&pong(&asked));
    assert_eq!(calls.join().unwrap(), Ok(()));
    for scope in [SyncScope::None, SyncScope::WithTransport] {
        let policies = [Policy::SyncScope(scope)];
        let kept = server.caller.kept();
        let kept = kept.set_policy_overrides(&policies, SetOverrideType::AddOverride);
        assert_eq!(
            kept.unwrap().invoke_oneway("note", |w| 5_u32.write(w)),
            Ok(())
        );
        let note = wire.hear().expect("a request").asked();
        assert_eq!((note.operation.as_str(), note.response_flags), ("note", 0));
    }
    assert_eq!(server.orb.counters().read(Counter::ConnectionsTwoWay), 1);
    assert_eq!(server.orb.counters().read(Counter::ConnectionsMade), 0);
}

#[test]
fn what_an_opener_says_of_where_it_listens_counts_before_the_start_of_its_request() {
    let server = Acceptor::with(Orb::builder().clock_bound(Duration::ZERO), &both());
    let mut wire = Wire::to(&server.orb);
    let keep = |id| server.request(id, "keep");
    let early = keep(2).context(BI_DIR_IIOP, &said(&[NOWHERE]));
    let early = early.context(INVOCATION_POLICIES, &starting_in(Duration::from_secs(50)));
    wire.say(&early.with(|octets| nowhere(FORM.0).write(octets)));
    // It is said once, and what comes behind is served.
    let answer = wire.ask(&keep(4).with(|octets| nowhere(FORM.0).write(octets)));
    assert_eq!(
        (answer.reply().id, answer.reply().status),
        (4, NO_EXCEPTION)
    );
    wire.say(&server.request(6, "call").bare());
    let asked = wire.hear().expect("a call over this very connection");
    assert_eq!(asked.kind(), REQUEST);
    wire.say(&pong(&asked));
    let answer = wire.hear().expect("a reply").reply();
    assert_eq!((answer.id, answer.status), (6, NO_EXCEPTION));
    assert_eq!(server.orb.counters().read(Counter::RequestsEarly), 1);
}

#[test]
fn a_servant_that_calls_back_leaves_a_thread_to_read_the_reply() {
    for others in [0, 2] {
        let builder = Orb::builder().threads(1 + others).dynamic_threads(0);
        let server = Acceptor::with(builder, &both());
        let mut wire = Wire::to(&server.orb);
        server.keep(&mut wire, &[NOWHERE]);
        let call = |wire: &mut Wire, id| {
            wire.say(&server.request(id, "call").bare());
            wire.hear().expect("something")
        };
        let waiting: Vec<_> = (0..others)
            .map(|number| call(&mut wire, 4 + 2 * u32::try_from(number).unwrap()))
            .collect();
        assert!(waiting.iter().all(|asked| asked.kind() == REQUEST));
        let mut refused = call(&mut wire, 100).reply();
        assert_eq!((refused.id, refused.status), (100, SYSTEM_EXCEPTION));
        assert_eq!(refused.body.string(), "IDL:omg.org/CORBA/TRANSIENT:1.0");
        for asked in &waiting {
            wire.say(&pong(asked));
            assert_eq!(wire.hear().expect("a reply").reply().status, NO_EXCEPTION);
        }
    }
}

#[test]
fn no_servant_waits_for_an_asynchronous_reply_that_none_but_its_thread_could_read() {
    for threads in [1, 2] {
        let builder = Orb::builder().threads(threads).dynamic_threads(0);
        let server = Acceptor::with(builder, &both());
        let mut wire = Wire::to(&server.orb);
        server.keep(&mut wire, &[NOWHERE]);
        for operation in ["poll", "await", "fetch"] {
            wire.say(&server.request(4, operation).bare());
            let asked = wire.hear().expect("a request");
            assert_eq!(asked.kind(), REQUEST, "{operation}");
            if threads == 2 {
                wire.say(&pong(&asked));
            }
            // Who does not wait any more has the request cancelled.
            let answer = std::iter::from_fn(|| wire.hear()).find(|heard| heard.kind() == REPLY);
            let mut answer = answer.expect("a reply").reply();
            assert_eq!(answer.id, 4);
            if threads == 2 {
                assert_eq!(answer.status, NO_EXCEPTION, "{operation}");
                continue;
            }
            assert_eq!(answer.status, SYSTEM_EXCEPTION, "{operation}");
            let raised = answer.body.string();
            assert_eq!(raised, "IDL:omg.org/CORBA/TRANSIENT:1.0", "{operation}");
        }
    }
}

#[test]
fn asynchronous_calls_go_over_it_both_ways_and_end_with_it() {
    let acceptor = Acceptor::new(&both());
    let mut wire = Wire::to(&acceptor.orb);
    acceptor.keep(&mut wire, &[NOWHERE]);
    let told = |count| {
        wait_for(|| acceptor.caller.told.lock().unwrap().len() == count);
        acceptor.caller.told.lock().unwrap().clone()
    };
    let send = |wire: &mut Wire| {
        wire.say(&acceptor.request(4, "send").bare());
        // Its own reply may come before the call or behind it.
        let (one, other) = (wire.hear().unwrap(), wire.hear().unwrap());
        let asked = [one, other].into_iter().find(|one| one.kind() == REQUEST);
        asked.expect("a call over this very connection")
    };
    let asked = send(&mut wire);
    assert_eq!(asked.asked().id % 2, 1);
    wire.say(&pong(&asked));
    assert_eq!(told(1), [true]);
    // One that the end of the connection finds waiting.
    send(&mut wire);
    drop(wire);
    assert_eq!(told(2), [true, false]);
    assert_eq!(acceptor.orb.counters().read(Counter::ConnectionsMade), 0);

    // By who has opened it, several at a time, with replies in any order.
    let peer = Peer::start(Over::Tcp, |_, wire, tell| {
        let asked: Vec<_> = (0..3).map_while(|_| wire.hear()).collect();
        for asked in asked.iter().rev() {
            wire.say(&pong(asked));
        }
        asked.into_iter().for_each(tell);
        let _until_the_end = wire.hear();
    });
    let opener = Opener::new(&both());
    let server = peer.seen_by(&opener.orb, 2);
    let pollers = [(); 3].map(|()| server.send_poller("ping", |_| Ok(())).unwrap());
    for poller in &pollers {
        let nothing = |_: &str, _: &mut Reader<'_>| Ok(None);
        let polled = poller.poll::<_, SystemException>("ping", u32::MAX, |_| Ok(()), nothing);
        assert_eq!(polled, Ok(()));
        assert_eq!(peer.heard().asked().id % 2, 0);
    }
    assert_eq!(opener.orb.counters().read(Counter::ConnectionsMade), 1);
    // One that nobody waits for any more.
    drop(server.send_poller("ping", |_| Ok(())).unwrap());
}

#[test]
fn the_end_of_its_orb_ends_an_asynchronous_call_over_it() {
    let peer = Peer::start(Over::Tcp, |_, wire, tell| {
        while let Some(heard) = wire.hear() {
            tell(heard);
        }
    });
    let opener = Opener::new(&both());
    let server = peer.seen_by(&opener.orb, 2);
    let poller = server.send_poller("ping", |_| Ok(())).unwrap();
    assert_eq!(peer.heard().kind(), REQUEST);
    opener.orb.shutdown(true).unwrap();
    let nothing = |_: &str, _: &mut Reader<'_>| Ok(None);
    let ended = poller.poll::<(), SystemException>("ping", u32::MAX, |_| Ok(()), nothing);
    let ended = ended.unwrap_err();
    assert_eq!((ended.kind, ended.minor), (Kind::BadInvOrder, 0x4f4d_0004));
}

#[test]
fn a_server_without_the_policy_connects_to_whom_it_calls_back() {
    let server = Acceptor::new(&Policies::root());
    let mut wire = Wire::to(&server.orb);
    server.keep(&mut wire, &[NOWHERE]);
    let mut answer = wire.ask(&server.request(4, "call").bare()).reply();
    assert_eq!(answer.status, SYSTEM_EXCEPTION);
    assert_eq!(answer.body.string(), "IDL:omg.org/CORBA/TRANSIENT:1.0");
    // And a reply is nothing that it has to read.
    wire.say(&message(FORM, REPLY, |octets| {
        octets.u32(1).u32(NO_EXCEPTION).u32(0);
    }));
    let complaint = wire.hear().expect("an answer");
    assert_eq!(complaint.kind(), common::message::MESSAGE_ERROR);
    wire.expect_end();
}

#[test]
fn what_a_peer_announces_is_believed_of_the_references_that_it_sends_alone() {
    let server = Acceptor::new(&both());
    let mut wire = Wire::to(&server.orb);
    // It says that it is somebody else, whose reference the server has from another source.
    server.keep(&mut wire, &[NOWHERE]);
    let elsewhere = server.orb.string_to_object(&nowhere(2).text(Order::Big));
    let failed = ping(&elsewhere.unwrap().unwrap()).unwrap_err();
    assert_eq!(failed.kind, Kind::Transient);
    // And a reference that leads to none of the points that it announces is not called over its connection.
    let mut other = Wire::to(&server.orb);
    server.keep(&mut other, &[("127.0.0.1", 2)]);
    let failed = ping(&server.caller.kept()).unwrap_err();
    assert_eq!(failed.kind, Kind::Transient);
}

#[test]
fn a_callback_is_not_made_over_it_before_giop_1_2() {
    let server = Acceptor::new(&both());
    let mut wire = Wire::to(&server.orb);
    let request = Request::new((1, Order::Big), &server.key, "keep").id(2);
    let request = request.context(BI_DIR_IIOP, &said(&[NOWHERE]));
    let answer = wire.ask(&request.with(|octets| nowhere(1).write(octets)));
    assert_eq!(answer.reply().status, NO_EXCEPTION);
    assert_eq!(server.orb.counters().read(Counter::ConnectionsTwoWay), 0);
}

#[test]
fn a_callback_that_the_end_of_the_connection_finds_waiting_fails() {
    let server = Acceptor::new(&both());
    let mut wire = Wire::to(&server.orb);
    server.keep(&mut wire, &[NOWHERE]);
    for farewell in [false, true] {
        let kept = server.caller.kept();
        let calls = std::thread::spawn(move || ping(&kept));
        if farewell {
            // The connection is gone, and the address in the reference leads nowhere.
            let gone = calls.join().unwrap().unwrap_err();
            assert_eq!(gone.kind, Kind::Transient);
            continue;
        }
        assert!(wire.hear().is_some());
        wire.end();
        wire = Wire::to(&server.orb);
        let lost = calls.join().unwrap().unwrap_err();
        assert_eq!(
            (lost.kind, lost.completed),
            (Kind::CommFailure, Completion::Maybe)
        );
    }
}

#[test]
fn two_orbs_of_ours_ask_each_other_over_one_connection() {
    let (opener, server) = (Opener::new(&both()), Acceptor::new(&both()));
    let root = server.orb.root_poa().unwrap();
    let poa = root.find_poa("both", false).unwrap();
    let servant: Arc<dyn Servant> = server.caller.clone();
    let text = poa.servant_to_reference(&servant).unwrap().to_string();
    let seen = opener.orb.string_to_object(&text).unwrap().unwrap();
    let keep: Result<(), SystemException> = seen.invoke(
        "keep",
        |w| Some(opener.object.clone()).write(w),
        |_| Ok(()),
        |_, _| Ok(None),
    );
    assert_eq!(keep, Ok(()));
    for _ in 0..50 {
        let call: Result<(), SystemException> =
            seen.invoke("call", |_| Ok(()), |_| Ok(()), |_, _| Ok(None));
        assert_eq!(call, Ok(()));
        let note: Result<(), SystemException> =
            seen.invoke("note", |_| Ok(()), |_| Ok(()), |_, _| Ok(None));
        assert_eq!(note, Ok(()));
    }
    wait_for(|| opener.probe.notes().len() == 50);
    assert_eq!(opener.probe.calls(), 100);
    assert_eq!(opener.orb.counters().read(Counter::ConnectionsAccepted), 0);
    assert_eq!(server.orb.counters().read(Counter::ConnectionsAccepted), 1);
    assert_eq!(server.orb.counters().read(Counter::ConnectionsMade), 0);
}

#[test]
fn the_policy_is_made_from_its_standard_number_and_value() {
    let any = |value: u16| Any::from_value(&value).unwrap();
    let kind = PolicyType(37);
    let made = Policy::create(kind, &any(1));
    assert_eq!(
        made,
        Ok(Policy::Bidirectional(BidirectionalPolicyValue::Both))
    );
    let made = Policy::create(kind, &any(0));
    assert_eq!(
        made,
        Ok(Policy::Bidirectional(BidirectionalPolicyValue::Normal))
    );
    let made = Policy::create(kind, &any(2));
    assert_eq!(made, Err(PolicyErrorCode::BadPolicyValue));
}

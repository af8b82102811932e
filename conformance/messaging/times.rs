//! Start and end times of requests and replies by clause (CORBA 3.3 part 1, clauses 17.2.4 and 17.3.3). The other
//! side's octets are made by hand.
//!
//! Past and future times here are an hour away, so that a slow machine changes no result. `sim/times.rs` tests times to
//! the nanosecond.

use std::time::{Duration, SystemTime};

use crate::common;
use crate::common::lanes::{LaneWorld, priority};
use crate::common::message::{
    CANCEL_REQUEST, NO_EXCEPTION, SYNC_NONE, SYNC_WITH_SERVER, SYNC_WITH_TARGET, SYSTEM_EXCEPTION,
    done,
};
use crate::common::servant::{call, note};
use crate::common::{
    Cursor, FORMS, Lanes, ORDERS, Octets, Order, Over, Peer, Received, Request, Wire, World,
    message, over_each, wait_for,
};
use deckwatch_cdr::Any;
use deckwatch_orb::{
    Completion, Counter, ObjectRef, Orb, Policies, Policy, PolicyErrorCode, PolicyType,
    RequestBuffering, SetOverrideType, SystemException, SystemExceptionKind as Kind, UtcT,
    own_minor,
};

const HOUR: i64 = 3_600;
const INVOCATION_POLICIES: u32 = 7;
const REQUEST_START: u32 = 27;
const REQUEST_END: u32 = 28;
const REPLY_START: u32 = 29;
const REPLY_END: u32 = 30;
const REQUEST_DISCARDED: u32 = 0x4f4d_0001;

const ENDED: SystemException =
    SystemException::new(Kind::Timeout, own_minor::END_TIME_PASSED, Completion::No);

/// The time this many seconds from now, in units of 100 ns since 15 October 1582.
fn time(ahead_s: i64) -> u64 {
    let since_1970 = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .expect("later");
    let units = u64::try_from(since_1970.as_nanos() / 100).expect("for centuries");
    // 1 January 1970 in these units; UUIDs of version 1 use the same epoch.
    (units + 0x01B2_1DD2_1381_4000).saturating_add_signed(ahead_s * 10_000_000)
}

/// A `UtcT` in an encapsulation.
fn utc(order: Order, time: u64, inaccuracy: u64) -> Vec<u8> {
    let low = u32::try_from(inaccuracy & 0xffff_ffff).expect("masked");
    let high = u16::try_from(inaccuracy >> 32).expect("48 bits");
    let mut octets = Octets::encapsulation(order);
    octets.u64(time).u32(low).u16(high).u16(0);
    octets.octets
}

/// The data of the service context: policies, each with a type and a time.
fn policies(order: Order, policies: &[(u32, u64)]) -> Vec<u8> {
    let mut octets = Octets::encapsulation(order);
    octets.u32(u32::try_from(policies.len()).expect("few"));
    for (kind, time) in policies {
        octets.u32(*kind).sequence(&utc(order, *time, 0));
    }
    octets.octets
}

fn timed(request: Request, order: Order, times: &[(u32, u64)]) -> Request {
    request.context(INVOCATION_POLICIES, &policies(order, times))
}

/// A server whose clock has a bound of one minute.
fn knowing(over: Over) -> World {
    World::with(over, Orb::builder().clock_bound(Duration::from_secs(60)))
}

fn with(object: &ObjectRef, policies: &[Policy]) -> ObjectRef {
    object
        .set_policy_overrides(policies, SetOverrideType::AddOverride)
        .expect("one of each kind")
}

fn at(ahead_s: i64) -> UtcT {
    UtcT::new(time(ahead_s), 0, 0)
}

/// The policies in the service context of a request: type, time, inaccuracy.
fn said(asked: &Received) -> Option<Vec<(u32, u64, u64)>> {
    let contexts = asked.asked().contexts;
    let (_, data) = contexts.iter().find(|(id, _)| *id == INVOCATION_POLICIES)?;
    let mut r = Cursor::encapsulated(data);
    let count = r.u32();
    let policies = (0..count).map(|_| {
        let kind = r.u32();
        let mut value = Cursor::encapsulated(&r.sequence());
        let (time, low, high) = (value.u64(), value.u32(), value.u16());
        value.u16();
        assert!(value.rest().is_empty());
        (kind, time, u64::from(high) << 32 | u64::from(low))
    });
    let policies = policies.collect();
    assert!(r.rest().is_empty());
    Some(policies)
}

over_each! {
    fn a_request_past_its_end_is_answered_by_timeout_and_not_served(over) {
        let world = knowing(over);
        for form in FORMS {
            for order in ORDERS {
                for kind in [REQUEST_END, REPLY_END] {
                    let request = timed(world.request(form, "ping"), order, &[(kind, time(-HOUR))]);
                    let answer = world.dial().ask(&request.bare()).reply();
                    assert_eq!(answer.status, SYSTEM_EXCEPTION);
                    let (id, minor, completed) = answer.exception();
                    assert_eq!(id, "IDL:omg.org/CORBA/TIMEOUT:1.0");
                    assert_eq!((minor, completed), (own_minor::END_TIME_PASSED, 1));
                }
            }
        }
        assert_eq!(world.probe.calls(), 0);
        let dropped = world.orb.counters().read(Counter::RequestsDropped);
        assert_eq!(dropped, FORMS.len() as u64 * 4);
    }

    fn a_request_before_its_end_is_served(over) {
        let world = knowing(over);
        for form in FORMS {
            let times = [(REQUEST_START, time(-HOUR)), (REQUEST_END, time(HOUR)), (REPLY_START, time(HOUR)), (REPLY_END, time(HOUR))];
            let request = timed(world.request(form, "ping"), Order::Big, &times);
            assert_eq!(world.dial().ask(&request.bare()).reply().status, NO_EXCEPTION);
        }
        assert_eq!(world.probe.calls(), FORMS.len() as u64);
        assert_eq!(world.orb.counters().read(Counter::RequestsDropped), 0);
    }

    fn a_oneway_past_its_end_is_dropped_in_silence(over) {
        let world = knowing(over);
        let mut wire = world.dial();
        let late = timed(world.request((2, Order::Big), "note").flags(SYNC_NONE), Order::Little, &[(REQUEST_END, time(-HOUR))]);
        wire.say(&late.with(|o| { o.u32(1); }));
        // A reply end time means nothing for a request without a reply.
        let no_reply = timed(world.request((2, Order::Big), "note").flags(SYNC_NONE), Order::Little, &[(REPLY_END, time(-HOUR))]);
        wire.say(&no_reply.with(|o| { o.u32(2); }));
        assert_eq!(wire.ask(&world.request((2, Order::Big), "ping").bare()).reply().status, NO_EXCEPTION);
        assert_eq!(world.probe.notes(), [2]);
        for flags in [SYNC_WITH_SERVER, SYNC_WITH_TARGET] {
            let asked = timed(world.request((2, Order::Big), "note").flags(flags), Order::Big, &[(REQUEST_END, time(-HOUR))]);
            assert_eq!(wire.ask(&asked.with(|o| { o.u32(3); })).reply().status, SYSTEM_EXCEPTION, "{flags}");
        }
        assert_eq!(world.probe.notes(), [2]);
    }

    fn a_server_that_does_not_know_its_clock_serves_what_seems_late(over) {
        let world = World::new(over, Lanes::Many);
        let times = [(REQUEST_START, time(HOUR)), (REQUEST_END, time(-HOUR))];
        let request = timed(world.request((2, Order::Big), "ping"), Order::Big, &times);
        assert_eq!(world.dial().ask(&request.bare()).reply().status, NO_EXCEPTION);
        assert_eq!(world.orb.counters().read(Counter::TimesIgnored), 1);
    }

    fn the_inaccuracy_that_comes_with_an_end_delays_it(over) {
        let world = knowing(over);
        for (inaccuracy_s, status) in [(HOUR, SYSTEM_EXCEPTION), (3 * HOUR, NO_EXCEPTION)] {
            let inaccuracy = u64::try_from(inaccuracy_s).expect("ahead") * 10_000_000;
            let mut context = Octets::encapsulation(Order::Big);
            context.u32(1).u32(REQUEST_END).sequence(&utc(Order::Little, time(-2 * HOUR), inaccuracy));
            let request = world.request((2, Order::Little), "ping").context(INVOCATION_POLICIES, &context.octets);
            assert_eq!(world.dial().ask(&request.bare()).reply().status, status, "{inaccuracy_s}");
        }
    }

    fn a_request_before_its_start_waits_for_it(over) {
        let world = World::with(over, Orb::builder().clock_bound(Duration::ZERO));
        let start = time(0) + 500_000;
        let request = timed(world.request((2, Order::Big), "ping"), Order::Big, &[(REQUEST_START, start)]);
        assert_eq!(world.dial().ask(&request.bare()).reply().status, NO_EXCEPTION);
        assert!(time(0) >= start, "it was served before its start");
        let far = timed(world.request((2, Order::Big), "ping"), Order::Big, &[(REQUEST_START, time(HOUR))]);
        let (id, minor, completed) = world.dial().ask(&far.bare()).reply().exception();
        assert_eq!((id.as_str(), minor, completed), ("IDL:omg.org/CORBA/TRANSIENT:1.0", REQUEST_DISCARDED, 1));
    }

    fn the_only_thread_of_a_lane_serves_others_while_a_request_waits_for_its_start(over) {
        let world = World::with(over, Orb::builder().clock_bound(Duration::ZERO).threads(1).dynamic_threads(0));
        let mut early = world.dial();
        for (number, start) in [(1, 50), (2, 40)] {
            let far = timed(world.request((2, Order::Big), "note").flags(SYNC_NONE), Order::Big, &[(REQUEST_START, time(start))]);
            early.say(&far.with(|o| { o.u32(number); }));
        }
        // Sent after them, on the same connection and on another.
        assert_eq!(early.ask(&world.request((2, Order::Big), "ping").bare()).reply().status, NO_EXCEPTION);
        assert_eq!(world.dial().ask(&world.request((2, Order::Big), "ping").bare()).reply().status, NO_EXCEPTION);
        assert_eq!(world.orb.counters().read(Counter::RequestsEarly), 2);
        assert!(world.probe.notes().is_empty());
        // The start time of this request comes while the thread waits.
        let start = time(0) + 500_000;
        let soon = timed(world.request((2, Order::Big), "ping"), Order::Big, &[(REQUEST_START, start)]);
        assert_eq!(early.ask(&soon.bare()).reply().status, NO_EXCEPTION);
        assert!(time(0) >= start, "it was served before its start");
        assert!(world.probe.notes().is_empty());
    }

    fn one_ways_of_a_connection_that_waited_for_their_start_do_not_overlap(over) {
        let world = World::with(over, Orb::builder().clock_bound(Duration::ZERO).threads(2).dynamic_threads(0));
        let (mut oneways, mut other) = (world.dial(), world.dial());
        // Far enough apart for the reading of two clocks, by which the server knows its start times.
        let (start, apart) = (time(1), 1_000_000);
        let at = |start, operation, flags| {
            let request = world.request((2, Order::Big), operation).flags(flags);
            timed(request, Order::Big, &[(REQUEST_START, start)])
        };
        oneways.say(&at(start, "meet", SYNC_NONE).bare());
        oneways.say(&at(start + apart, "note", SYNC_NONE).with(|o| { o.u32(7); }));
        wait_for(|| world.orb.counters().read(Counter::RequestsEarly) == 2);
        // The first one-way keeps one of the two threads. The other thread serves a request with a later start, and has
        // had to pass over the second one-way.
        assert_eq!(other.ask(&at(start + 2 * apart, "ping", SYNC_WITH_TARGET).bare()).reply().status, NO_EXCEPTION);
        world.probe.gate.wait_for_arrivals(1);
        assert!(world.probe.notes().is_empty());
        world.probe.gate.open();
        wait_for(|| world.probe.notes() == [7]);
    }

    fn a_request_that_is_cancelled_before_its_start_is_not_served(over) {
        let world = World::with(over, Orb::builder().clock_bound(Duration::ZERO));
        let mut wire = world.dial();
        let early = || world.orb.counters().read(Counter::RequestsEarly);
        let mut say = |number: u32, start| {
            let early = timed(world.request((2, Order::Big), "note").id(number), Order::Big, &[(REQUEST_START, start)]);
            wire.say(&early.with(|o| { o.u32(number); }));
        };
        say(1, time(50));
        // A request that a thread still holds cannot be found by a CancelRequest.
        wait_for(|| early() == 1);
        // The other request waits beside it. On a machine slower than its start time, it is already served.
        say(2, time(2));
        wait_for(|| early() == 2 || world.probe.notes() == [2]);
        wire.say(&message((2, Order::Big), CANCEL_REQUEST, |o| { o.u32(1); }));
        wire.say(&world.request((2, Order::Big), "ping").id(3).bare());
        let mut answers = [(); 2].map(|()| {
            let answer = wire.hear().expect("a reply").reply();
            (answer.id, answer.status)
        });
        answers.sort_unstable();
        assert_eq!(answers, [(2, NO_EXCEPTION), (3, NO_EXCEPTION)]);
        assert_eq!(world.orb.counters().read(Counter::RequestsDiscarded), 1);
        assert_eq!(world.probe.notes(), [2]);
    }

    fn a_context_that_cannot_be_read_is_marshal_and_other_policies_are_passed_over(over) {
        let world = knowing(over);
        let whole = policies(Order::Big, &[(REQUEST_END, time(HOUR))]);
        for length in [0, 5, 11, 20, whole.len() - 1] {
            let request = world.request((2, Order::Big), "ping").context(INVOCATION_POLICIES, &whole[..length]);
            let (id, _, completed) = world.dial().ask(&request.bare()).reply().exception();
            assert_eq!((id.as_str(), completed), ("IDL:omg.org/CORBA/MARSHAL:1.0", 1), "{length}");
        }
        let mut others = Octets::encapsulation(Order::Little);
        others.u32(2).u32(23).sequence(&[1, 0, 0]).u32(0x5441_0008).sequence(&[]);
        let request = world.request((2, Order::Big), "ping").context(INVOCATION_POLICIES, &others.octets);
        assert_eq!(world.dial().ask(&request.bare()).reply().status, NO_EXCEPTION);
    }

    fn absolute_times_travel_as_they_were_set(over) {
        let peer = Peer::answering(over, |_, asked| done(asked));
        let client = common::client();
        let (start, end) = (UtcT::new(time(-HOUR), 7, 60), UtcT::new(time(HOUR), UtcT::INACCURACY_MAX, 0));
        for minor in peer.minors() {
            let object = with(&peer.seen_by(&client, minor), &[
                Policy::RequestStartTime(start),
                Policy::RequestEndTime(end),
                Policy::ReplyStartTime(start),
                Policy::ReplyEndTime(end),
            ]);
            assert_eq!(call(&object, "ping"), Ok(()));
            let (started, ended) = ((start.time, 7), (end.time, UtcT::INACCURACY_MAX));
            let expected = [(REQUEST_START, started), (REQUEST_END, ended), (REPLY_START, started), (REPLY_END, ended)];
            let expected: Vec<_> = expected.map(|(kind, (time, inaccuracy))| (kind, time, inaccuracy)).into();
            assert_eq!(said(&peer.heard()), Some(expected), "1.{minor}");
        }
    }

    fn relative_timeouts_travel_as_end_times_where_the_clock_is_known(over) {
        let peer = Peer::answering(over, |_, asked| done(asked));
        let bound = Duration::from_millis(3);
        let client = Orb::builder().clock_bound(bound).build().expect("a client");
        let limits = [
            Policy::RelativeRequestTimeout(Duration::from_secs(1_000)),
            Policy::RelativeRoundtripTimeout(Duration::from_secs(2_000)),
        ];
        let before = time(0);
        assert_eq!(call(&with(&peer.seen_by(&client, 2), &limits), "ping"), Ok(()));
        let after = time(0);
        let said_here = said(&peer.heard()).expect("its times");
        for ((kind, end, inaccuracy), (expected, limit_s)) in said_here.iter().zip([(REQUEST_END, 1_000), (REPLY_END, 2_000)]) {
            assert_eq!((*kind, *inaccuracy), (expected, 30_000));
            let limit = limit_s * 10_000_000;
            assert!((before + limit..=after + limit).contains(end), "{end}");
        }
        assert_eq!(said_here.len(), 2);
        // A call without limits sends no times, and neither does an ORB whose clock bound is not known.
        assert_eq!(call(&peer.seen_by(&client, 2), "ping"), Ok(()));
        assert_eq!(said(&peer.heard()), None);
        let peer = Peer::answering(over, |_, asked| done(asked));
        let other = common::client();
        assert_eq!(call(&with(&peer.seen_by(&other, 2), &limits), "ping"), Ok(()));
        assert_eq!(said(&peer.heard()), None);
    }

    fn a_request_whose_end_has_passed_is_not_sent(over) {
        let peer = Peer::answering(over, |_, asked| done(asked));
        let client = common::client();
        let object = peer.seen_by(&client, 2);
        for end in [Policy::RequestEndTime(at(-HOUR)), Policy::ReplyEndTime(at(-HOUR))] {
            let object = with(&object, &[end]);
            assert_eq!(call(&object, "ping"), Err(ENDED));
            assert_eq!(note(&object, 1), Err(ENDED));
        }
        assert_eq!(client.counters().read(Counter::RequestsPastEnd), 4);
        assert_eq!(call(&object, "ping"), Ok(()));
        assert_eq!(peer.heard().asked().operation, "ping");
        assert_eq!(peer.heard_so_far(), 0);
    }

    fn both_ends_of_a_call_keep_its_times(over) {
        let world = knowing(over);
        let client = Orb::builder().clock_bound(Duration::ZERO).build().expect("a client");
        let object = world.seen_by(&client);
        let start = UtcT::new(time(0) + 300_000, 0, 0);
        let object = with(&object, &[Policy::RequestStartTime(start), Policy::ReplyEndTime(at(HOUR))]);
        assert_eq!(call(&object, "ping"), Ok(()));
        assert!(time(0) >= start.time);
        assert_eq!(world.probe.calls(), 1);
    }
}

#[test]
fn policies_of_times_are_made_of_a_utct_and_of_nothing_else() {
    let value = UtcT::new(1, 2, 3);
    let (utc, wrong) = (
        Any::from_value(&value).unwrap(),
        Any::from_value(&1_u64).unwrap(),
    );
    for (kind, policy) in [
        (REQUEST_START, Policy::RequestStartTime(value)),
        (REQUEST_END, Policy::RequestEndTime(value)),
        (REPLY_START, Policy::ReplyStartTime(value)),
        (REPLY_END, Policy::ReplyEndTime(value)),
    ] {
        assert_eq!(Policy::create(PolicyType(kind), &utc), Ok(policy));
        assert_eq!(policy.policy_type(), PolicyType(kind));
        assert_eq!(
            Policy::create(PolicyType(kind), &wrong),
            Err(PolicyErrorCode::BadPolicyType)
        );
    }
}

#[test]
fn a_request_that_waits_for_a_thread_beyond_its_end_is_dropped() {
    let world = LaneWorld::with(Over::Tcp, Orb::builder().clock_bound(Duration::ZERO));
    let limits = RequestBuffering {
        max_buffered_requests: 4,
        max_request_buffer_size: 0,
    };
    let rt = world.orb.rt_orb();
    let pool = rt.create_threadpool(0, 1, 0, priority(5), Some(limits));
    let policies = Policies {
        threadpool: Some(pool.expect("one thread")),
        ..Policies::default()
    };
    let told = world.object(&world.adapter("served", &policies));
    let mut busy = Wire::at(&told.address());
    busy.say(&told.request("meet").bare());
    world.witness.probe.gate.wait_for_arrivals(1);
    let end = time(0) + 300_000;
    let note = |number: u32, end: u64| {
        let request = timed(told.request("note"), Order::Big, &[(REQUEST_END, end)]);
        let mut wire = Wire::at(&told.address());
        wire.say(&request.with(|body| {
            body.u32(number);
        }));
        wire
    };
    let (mut late, mut in_time) = (note(1, end), note(2, time(HOUR)));
    wait_for(|| world.orb.counters().read(Counter::RequestsBuffered) == 2);
    // The end time passes while the request waits.
    wait_for(|| time(0) > end);
    world.witness.probe.gate.open();
    let (id, minor, completed) = late.hear().expect("a reply").reply().exception();
    assert_eq!(id, "IDL:omg.org/CORBA/TIMEOUT:1.0");
    assert_eq!((minor, completed), (own_minor::END_TIME_PASSED, 1));
    assert_eq!(
        in_time.hear().expect("a reply").reply().status,
        NO_EXCEPTION
    );
    assert_eq!(world.witness.probe.notes(), [2]);
    assert_eq!(world.orb.counters().read(Counter::RequestsDropped), 1);
}

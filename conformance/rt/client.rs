//! Real-time CORBA by clause (RTCORBA 1.2), at the client: references made by hand in TAO's form, and hand-written
//! servers at their endpoints.

use std::sync::mpsc::channel;

use crate::common;
use crate::common::asynchronous::{poll, same};
use crate::common::message::{LOCATE_REQUEST, LOCATION_FORWARD};
use crate::common::rt::{
    Reference, at, client, fresh, lane, refused, said_priority, two_lanes, with,
};
use crate::common::servant::{call, note};
use crate::common::{Order, Over, PATIENCE, Peer};
use deckwatch_cdr::Write;
use deckwatch_dynamic::{CreateRequest, Poller};
use deckwatch_orb::{Counter, Deliver, Policy, PolicyType, Priority, SyncScope, own_minor};

#[test]
fn a_call_goes_to_the_lane_of_its_callers_priority_and_says_it() {
    let (low, high, reference) = two_lanes();
    let client = client();
    let object = reference.propagated(5).seen_by(&client);
    for (peer, number) in [(&high, 20), (&low, 5), (&high, 20)] {
        assert_eq!(at(&client, number, || call(&object, "ping")), Ok(()));
        let asked = peer.heard().asked();
        assert_eq!(
            (asked.operation.as_str(), said_priority(&asked)),
            ("ping", Some(number))
        );
    }
    assert_eq!((low.heard_so_far(), high.heard_so_far()), (0, 0));
    assert_eq!(client.counters().read(Counter::ConnectionsMade), 2);
}

#[test]
fn a_thread_that_changes_its_priority_changes_the_lane() {
    let (low, high, reference) = two_lanes();
    let client = client();
    let object = reference.propagated(5).seen_by(&client);
    at(&client, 5, || {
        call(&object, "ping").expect("a lane");
        low.heard();
        let priority = Priority::new(20).expect("not negative");
        client
            .rt_current()
            .set_the_priority(priority)
            .expect("any is permitted");
        call(&object, "ping").expect("a lane");
        assert_eq!(said_priority(&high.heard().asked()), Some(20));
    });
}

#[test]
fn a_caller_without_a_priority_goes_to_the_servers_and_says_none() {
    let (low, high, reference) = two_lanes();
    let client = client();
    let object = reference.propagated(20).seen_by(&client);
    assert_eq!(fresh(|| call(&object, "ping")), Ok(()));
    assert_eq!(said_priority(&high.heard().asked()), None);
    assert_eq!(low.heard_so_far(), 0);
}

#[test]
fn a_caller_without_a_priority_goes_to_the_servers_band_where_no_lane_has_the_priority() {
    let (low, high, reference) = two_lanes();
    let client = client();
    let bands = [(0, 9), (10, 32_767)];
    let object = reference.propagated(15).bands(&bands).seen_by(&client);
    assert_eq!(fresh(|| call(&object, "ping")), Ok(()));
    assert_eq!(high.heard().asked().operation, "_bind_priority_band");
    assert_eq!(said_priority(&high.heard().asked()), None);
    assert_eq!(low.heard_so_far(), 0);
}

#[test]
fn an_object_that_declares_its_priority_is_asked_at_that_lane_and_is_told_none() {
    let (low, high, reference) = two_lanes();
    let client = client();
    let object = reference.declared(20).seen_by(&client);
    for number in [5, 20, 100] {
        assert_eq!(at(&client, number, || call(&object, "ping")), Ok(()));
        assert_eq!(said_priority(&high.heard().asked()), None);
    }
    assert_eq!(low.heard_so_far(), 0);
}

#[test]
fn a_priority_without_a_lane_is_inv_policy_and_nobody_is_asked() {
    let (low, high, reference) = two_lanes();
    let client = client();
    let object = reference.propagated(5).seen_by(&client);
    at(&client, 6, || {
        assert_eq!(call(&object, "ping"), refused(own_minor::LANES_MISSED));
        assert_eq!(
            object.validate_connection().map(drop),
            refused(own_minor::LANES_MISSED)
        );
        assert_eq!(
            object.inconsistent_policies(),
            Ok(&[PolicyType::PRIORITY_MODEL][..])
        );
    });
    assert_eq!((low.heard_so_far(), high.heard_so_far()), (0, 0));
}

#[test]
fn a_server_without_lanes_is_asked_at_its_one_endpoint_whatever_the_priority() {
    let peer = lane();
    let client = client();
    // TAO puts its endpoint into the reference without a priority (-1); other ORBs put none.
    let told = Reference::with_lanes(&[(&peer, -1)]).propagated(0);
    for reference in [Reference::without_lanes(&peer).propagated(0), told] {
        let object = reference.seen_by(&client);
        for number in [0, 7, i16::MAX] {
            assert_eq!(at(&client, number, || call(&object, "ping")), Ok(()));
            assert_eq!(said_priority(&peer.heard().asked()), Some(number));
        }
    }
    assert_eq!(client.counters().read(Counter::ConnectionsMade), 1);
}

#[test]
fn an_object_without_a_priority_model_is_told_none() {
    let peer = lane();
    let client = client();
    let object = Reference::without_lanes(&peer).seen_by(&client);
    assert_eq!(at(&client, 9, || call(&object, "ping")), Ok(()));
    assert_eq!(peer.heard().asked().contexts, []);
}

#[test]
fn one_ways_go_to_the_lane_of_their_caller_and_say_his_priority() {
    let (low, high, reference) = two_lanes();
    let client = client();
    let object = reference.propagated(5).seen_by(&client);
    for scope in [
        SyncScope::None,
        SyncScope::WithTransport,
        SyncScope::WithServer,
        SyncScope::WithTarget,
    ] {
        let object = with(&object, &[Policy::SyncScope(scope)]);
        assert_eq!(at(&client, 20, || note(&object, 1)), Ok(()));
        assert_eq!(said_priority(&high.heard().asked()), Some(20), "{scope:?}");
    }
    assert_eq!(low.heard_so_far(), 0);
}

#[test]
fn a_request_says_the_priority_that_its_caller_had_when_he_sent_it() {
    let (_low, high, reference) = two_lanes();
    let client = client();
    let object = reference.propagated(5).seen_by(&client);
    let priority = |number| Priority::new(number).expect("not negative");
    at(&client, 20, || {
        let mut request = object.create_request("ping");
        request.send_deferred().expect("a lane");
        client
            .rt_current()
            .set_the_priority(priority(5))
            .expect("any is permitted");
        assert_eq!(
            request.response().map_err(|error| error.to_string()),
            Ok(())
        );
    });
    assert_eq!(said_priority(&high.heard().asked()), Some(20));
}

#[test]
fn forwarded_calls_go_to_the_lanes_of_where_they_were_forwarded_to() {
    let (low, high, reference) = two_lanes();
    let to = reference.propagated(5).ior();
    let origin = Peer::answering_all(Over::Tcp, move |_, heard| {
        heard.answered(LOCATION_FORWARD, |o| to.write(o))
    });
    let client = client();
    let object = Reference::without_lanes(&origin)
        .propagated(0)
        .seen_by(&client);
    for (peer, number) in [(&high, 20), (&low, 5)] {
        assert_eq!(at(&client, number, || call(&object, "ping")), Ok(()));
        assert_eq!(said_priority(&peer.heard().asked()), Some(number));
    }
}

#[test]
fn explicit_binding_makes_the_connection_of_the_threads_priority_and_its_calls_use_it() {
    let (low, high, reference) = two_lanes();
    let client = client();
    let object = reference
        .propagated(5)
        .bands(&[(0, 9), (10, 99)])
        .seen_by(&client);
    at(&client, 20, || {
        assert_eq!(object.validate_connection(), Ok(true));
        assert_eq!(high.heard().asked().operation, "_bind_priority_band");
        assert_eq!(high.heard().kind(), LOCATE_REQUEST);
        assert_eq!(call(&object, "ping"), Ok(()));
        assert_eq!(high.heard().asked().operation, "ping");
    });
    assert_eq!(client.counters().read(Counter::ConnectionsMade), 1);
    assert_eq!(low.heard_so_far(), 0);
}

#[test]
fn what_cannot_be_read_of_a_real_time_reference_is_passed_over() {
    let peer = lane();
    let client = client();
    for (tag, data) in [
        (2, vec![]),
        (2, vec![1, 0, 0, 0, 255, 255, 255, 255]),
        (
            2,
            vec![1, 0, 0, 0, 1, 0, 0, 0, 40, 0, 0, 0, 2, 0, 0, 0, 1, 0],
        ),
        (0x5441_4F02, vec![1, 0, 0, 0, 255, 255, 255, 127]),
        (0x5441_4F02, vec![]),
    ] {
        let reference = Reference::without_lanes(&peer).component(tag, &data);
        let object = reference.seen_by(&client);
        assert_eq!(
            at(&client, 3, || call(&object, "ping")),
            Ok(()),
            "{tag} {data:?}"
        );
        assert_eq!(said_priority(&peer.heard().asked()), None);
        assert_eq!(object.priority_model(), Ok(None));
    }
    let negative = Reference::without_lanes(&peer)
        .propagated(-1)
        .seen_by(&client);
    assert_eq!(negative.priority_model(), Ok(None));
    assert_eq!(at(&client, 3, || call(&negative, "ping")), Ok(()));
}

#[test]
fn references_of_the_other_byte_order_lead_to_the_same_lanes() {
    let (low, high) = (lane(), lane());
    let mut endpoints = common::Octets::encapsulation(Order::Big);
    endpoints.u32(2);
    for (peer, number) in [(&low, 5), (&high, 20)] {
        endpoints.string("127.0.0.1").u16(peer.port()).u16(number);
    }
    let mut policies = common::Octets::encapsulation(Order::Big);
    policies
        .u32(1)
        .u32(40)
        .sequence(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 5]);
    let reference = Reference::without_lanes(&low)
        .component(0x5441_4F02, &endpoints.octets)
        .component(2, &policies.octets);
    let client = client();
    let object = reference.seen_by(&client);
    assert_eq!(at(&client, 20, || call(&object, "ping")), Ok(()));
    assert_eq!(said_priority(&high.heard().asked()), Some(20));
    assert_eq!(low.heard_so_far(), 0);
}

#[test]
fn handlers_are_called_at_their_callers_priority_the_highest_first() {
    let peer = Peer::answering(Over::Tcp, |_, asked| same(asked));
    let client = client();
    let object = peer.seen_by(&client, 2);
    let (begun, has_begun) = channel();
    let (open, gate) = channel::<()>();
    let waits: Deliver = Box::new(move |_| {
        begun.send(()).expect("the test waits");
        gate.recv_timeout(PATIENCE).expect("the test opens it");
        Ok(())
    });
    let call = |deliver| object.send_callback("number", |w| 1_u64.write(w), Some(deliver));
    fresh(|| call(waits)).expect("it goes");
    has_begun.recv_timeout(PATIENCE).expect("a reply");
    let (tell, told) = channel();
    let tells = |number: i16| -> Deliver {
        let (tell, current) = (tell.clone(), client.rt_current());
        Box::new(move |_| {
            let priority = current.the_priority().map(Priority::value);
            let _ = tell.send((number, priority.ok())); // The test may be over.
            Ok(())
        })
    };
    peer.heard();
    fresh(|| call(tells(0))).expect("it goes");
    for number in [5, 20, 5] {
        at(&client, number, || call(tells(number))).expect("it goes");
    }
    (0..4).for_each(|_| drop(peer.heard()));
    // This request is behind the others and is read after them.
    let last = fresh(|| Poller::send(&object, "number", |w| 1_u64.write(w)));
    assert_eq!(poll(&last.expect("it goes"), u32::MAX), Ok(1));
    open.send(()).expect("it waits");
    let next = |_| told.recv_timeout(PATIENCE).expect("a handler");
    let in_order: Vec<_> = (0..4).map(next).collect();
    let expected = [(20, Some(20)), (5, Some(5)), (5, Some(5)), (0, None)];
    assert_eq!(in_order, expected);
}

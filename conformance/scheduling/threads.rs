//! Distributable threads by clause (RT-CORBA 1.2, module RTScheduling): segments, calls within segments, cancellation.

use std::collections::HashSet;
use std::sync::mpsc::channel;

use super::distributable::{
    Host, SCHEDULING_INFO, by_importance, cancelled, client, due, important, info, outside, raised,
    system,
};
use crate::common;
use crate::common::message::{NO_EXCEPTION, done_if_wanted};
use crate::common::servant::{call, note};
use crate::common::{Cursor, Octets, Order, Over, Peer, Received, Wire, wait_for};
use deckwatch_orb::{
    Completion, ObjectRef, SystemException, SystemExceptionKind as Kind, own_minor,
};
use deckwatch_rtscheduling::{Current, DtState, IdType, SchedulerOrb, SegmentError};

/// The id and the importance in the service context of a request, if it has one.
pub(super) fn said(asked: &Received) -> Option<([u8; 16], Option<i16>)> {
    let contexts = asked.asked().contexts;
    let (_, data) = contexts.iter().find(|(id, _)| *id == SCHEDULING_INFO)?;
    let mut r = Cursor::encapsulated(data);
    let flags = r.u8();
    assert_eq!(r.u32(), 0x4457_5254);
    let id = r.sequence().try_into().expect("sixteen octets");
    r.u16();
    let importance = r.u16().cast_signed();
    r.u64();
    r.u64();
    r.u64();
    assert!(r.rest().is_empty());
    Some((id, (flags & 2 != 0).then_some(importance)))
}

#[test]
fn a_segment_makes_a_thread_distributable_and_its_end_ends_that() {
    let (_orb, current) = client();
    assert_eq!(current.id(), Err(outside()));
    assert_eq!(current.end_scheduling_segment(""), Err(outside()));
    assert_eq!(
        current.update_scheduling_segment("", important(1), None),
        Err(outside().into())
    );
    assert_eq!(
        current.begin_scheduling_segment("watch", important(3), Some(important(2))),
        Ok(())
    );
    let id = current.id().expect("within a segment");
    assert_eq!(current.scheduling_parameter(), Ok(important(3)));
    assert_eq!(
        current.implicit_scheduling_parameter(),
        Ok(Some(important(2)))
    );
    assert_eq!(
        current.begin_scheduling_segment("turn", important(9), None),
        Ok(())
    );
    assert_eq!(current.id(), Ok(id), "nested in the same thread");
    assert_eq!(
        current.current_scheduling_segment_names(),
        ["turn", "watch"]
    );
    assert_eq!(
        current.update_scheduling_segment("turn 2", important(10), None),
        Ok(())
    );
    assert_eq!(
        current.current_scheduling_segment_names(),
        ["turn 2", "watch"]
    );
    assert_eq!(current.scheduling_parameter(), Ok(important(10)));
    assert_eq!(current.end_scheduling_segment("turn 2"), Ok(()));
    assert_eq!(current.scheduling_parameter(), Ok(important(3)));
    let thread = current.lookup(id).expect("it is known");
    assert_eq!((thread.id(), thread.state()), (id, Ok(DtState::Active)));
    assert_eq!(current.end_scheduling_segment("watch"), Ok(()));
    assert_eq!(current.id(), Err(outside()));
    assert!(current.lookup(id).is_none());
    let unknown = Err(raised(Kind::ObjectNotExist, own_minor::THREAD_UNKNOWN));
    assert_eq!(thread.cancel(), unknown);
    assert_eq!(thread.state().map(drop), unknown);
}

#[test]
fn ids_are_those_of_no_other_thread() {
    let (_one, first) = client();
    let (_other, second) = client();
    let mut ids = HashSet::new();
    for current in [first, second] {
        for _ in 0..500 {
            current
                .begin_scheduling_segment("", important(0), None)
                .expect("it can go by that");
            assert!(ids.insert(current.id().expect("within a segment")));
            current
                .end_scheduling_segment("")
                .expect("within a segment");
        }
    }
}

#[test]
fn a_call_carries_its_thread_and_the_parameter_of_its_segment() {
    let peer = Peer::answering(Over::Tcp, |_, asked| done_if_wanted(asked));
    let (orb, current) = client();
    let object = peer.seen_by(&orb, 2);
    assert_eq!(call(&object, "ping"), Ok(()));
    assert_eq!(said(&peer.heard()), None);
    current
        .begin_scheduling_segment("", important(4), None)
        .expect("it can go by that");
    let own = current.id().expect("within a segment").0;
    assert_eq!(call(&object, "ping"), Ok(()));
    assert_eq!(said(&peer.heard()), Some((own, Some(4))));
    current
        .update_scheduling_segment("", important(5), Some(important(-6)))
        .expect("it can go by that");
    assert_eq!(call(&object, "ping"), Ok(()));
    assert_eq!(said(&peer.heard()), Some((own, Some(5))));
}

#[test]
fn a_oneway_carries_a_new_thread_with_the_implicit_parameter() {
    let peer = Peer::start(Over::Tcp, |_, wire, tell| {
        while let Some(asked) = wire.hear() {
            tell(asked);
        }
    });
    let (orb, current) = client();
    let object = peer.seen_by(&orb, 2);
    current
        .begin_scheduling_segment("", important(4), None)
        .expect("it can go by that");
    let mut ids = HashSet::from([current.id().expect("within a segment").0]);
    for (implicit, travels) in [(None, 4), (Some(important(-6)), -6)] {
        current
            .update_scheduling_segment("", important(4), implicit)
            .expect("it can go by that");
        assert_eq!(note(&object, 1), Ok(()));
        let (id, importance) = said(&peer.heard()).expect("a thread");
        assert!(ids.insert(id), "a thread of its own");
        assert_eq!(importance, Some(travels));
    }
}

#[test]
fn the_thread_that_serves_goes_on_as_the_callers() {
    let host = Host::new(by_importance());
    let (orb, current) = client();
    let object = host.seen_by(&orb);
    assert_eq!(
        call(&object, "see").unwrap_err().kind,
        Kind::BadInvOrder,
        "of no distributable thread"
    );
    current
        .begin_scheduling_segment("caller", important(4), None)
        .expect("it can go by that");
    let id = current.id().expect("within a segment");
    assert_eq!(call(&object, "see"), Ok(()));
    assert_eq!(call(&object, "nest"), Ok(()));
    assert_eq!(note(&object, 1), Ok(()));
    wait_for(|| host.deck.seen().len() == 4);
    let seen = host.deck.seen();
    let outer = vec![String::new()];
    assert_eq!(seen[0], (id, important(4), outer.clone()));
    assert_eq!(
        seen[1],
        (id, important(77), vec!["inner".to_owned(), String::new()])
    );
    assert_eq!(seen[2], (id, important(4), outer));
    assert!(seen[3].0 != id && seen[3].1 == important(4));
    let there = host.deck.current();
    assert!(there.lookup(id).is_none(), "it has gone home");
    assert_eq!(current.current_scheduling_segment_names(), ["caller"]);
    assert_eq!(current.end_scheduling_segment("caller"), Ok(()));
    assert_eq!(call(&object, "see").unwrap_err().kind, Kind::BadInvOrder);
}

#[test]
fn a_thread_goes_on_through_several_hosts_and_through_its_own() {
    let (first, second) = (Host::new(by_importance()), Host::new(by_importance()));
    first
        .deck
        .next
        .set((second.seen_by(&first.orb), "go_on"))
        .expect("once");
    // The second host calls back into the first.
    second
        .deck
        .next
        .set((first.seen_by(&second.orb), "see"))
        .expect("once");
    let (orb, current) = client();
    current
        .begin_scheduling_segment("", important(4), None)
        .expect("it can go by that");
    let id = current.id().expect("within a segment");
    assert_eq!(call(&first.seen_by(&orb), "go_on"), Ok(()));
    let ids = |host: &Host| {
        host.deck
            .seen()
            .iter()
            .map(|seen| seen.0)
            .collect::<Vec<_>>()
    };
    assert_eq!((ids(&first), ids(&second)), (vec![id, id], vec![id]));
    // A collocated call does not use the network, and the same holds for it.
    let own = first.orb.rt_scheduler_current().expect("a scheduler");
    own.begin_scheduling_segment("", important(8), None)
        .expect_err("within a segment of another ORB");
    current
        .end_scheduling_segment("")
        .expect("within a segment");
    own.begin_scheduling_segment("here", important(8), None)
        .expect("it can go by that");
    assert_eq!(call(&first.seen_by(&first.orb), "see"), Ok(()));
    assert_eq!(
        first.deck.seen().last().expect("seen").0,
        own.id().expect("within a segment")
    );
    assert_eq!(own.current_scheduling_segment_names(), ["here"]);
    own.end_scheduling_segment("here")
        .expect("within a segment");
}

#[test]
fn a_cancelled_thread_learns_it_at_its_next_scheduling_point() {
    type Point = fn(&Current, &ObjectRef) -> Result<(), SystemException>;
    let host = Host::new(by_importance());
    let (orb, current) = client();
    let object = host.seen_by(&orb);
    let points: [(&str, Point); 5] = [
        ("begin", |current, _| {
            current
                .begin_scheduling_segment("", important(1), None)
                .map_err(system)
        }),
        ("update", |current, _| {
            current
                .update_scheduling_segment("", important(1), None)
                .map_err(system)
        }),
        ("end", |current, _| current.end_scheduling_segment("")),
        ("call", |_, object| call(object, "see")),
        ("one-way", |_, object| note(object, 1)),
    ];
    for (name, point) in points {
        current
            .begin_scheduling_segment("outer", important(1), None)
            .expect("it can go by that");
        current
            .begin_scheduling_segment("inner", important(2), None)
            .expect("it can go by that");
        let id = current.id().expect("within a segment");
        let thread = current.lookup(id).expect("it is known");
        assert_eq!(thread.cancel(), Ok(()));
        assert_eq!(thread.cancel(), Ok(()), "once more is the same");
        assert_eq!(thread.state(), Ok(DtState::Cancelled));
        assert_eq!(
            point(&current, &object),
            Err(cancelled(Completion::No)),
            "{name}"
        );
        assert_eq!(current.id(), Err(outside()), "{name}");
        assert!(current.lookup(id).is_none());
    }
    assert_eq!(host.deck.seen(), [], "nothing was sent");
}

#[test]
fn a_thread_that_is_cancelled_where_it_serves_is_cancelled_where_it_came_from() {
    for (operation, completed) in [
        ("cancel", Completion::Yes),
        ("cancel_and_begin", Completion::No),
    ] {
        let host = Host::new(by_importance());
        let (orb, current) = client();
        current
            .begin_scheduling_segment("", important(1), None)
            .expect("it can go by that");
        assert_eq!(
            call(&host.seen_by(&orb), operation),
            Err(cancelled(completed)),
            "{operation}"
        );
        assert_eq!(current.id(), Err(outside()));
        assert!(
            call(&host.seen_by(&orb), "see").is_err(),
            "as no distributable thread"
        );
    }
}

#[test]
fn a_cancellation_comes_back_through_the_hosts_between() {
    let (first, second) = (Host::new(by_importance()), Host::new(by_importance()));
    first
        .deck
        .next
        .set((second.seen_by(&first.orb), "cancel"))
        .expect("once");
    let (orb, current) = client();
    current
        .begin_scheduling_segment("", important(1), None)
        .expect("it can go by that");
    let raised = call(&first.seen_by(&orb), "go_on").unwrap_err();
    assert_eq!(raised.kind, Kind::ThreadCancelled);
    assert_eq!(current.id(), Err(outside()));
}

#[test]
fn a_thread_that_is_cancelled_at_home_learns_it_when_it_comes_back() {
    let host = Host::new(by_importance());
    let (orb, current) = client();
    let object = host.seen_by(&orb);
    std::thread::scope(|scope| {
        let (here, arrived) = channel();
        let own = current.clone();
        let away = scope.spawn(move || {
            own.begin_scheduling_segment("", important(1), None)
                .expect("it can go by that");
            here.send(own.id().expect("within a segment"))
                .expect("the test waits");
            (call(&object, "wait"), own.id())
        });
        let id = arrived.recv().expect("it begins");
        host.deck.gate.wait_for_arrivals(1);
        current
            .lookup(id)
            .expect("it began here")
            .cancel()
            .expect("it is known");
        host.deck.gate.open();
        let back = away.join().expect("no panic");
        assert_eq!(back, (Err(cancelled(Completion::Yes)), Err(outside())));
    });
}

#[test]
fn a_request_of_a_thread_that_is_cancelled_here_is_not_served() {
    let host = Host::new(by_importance());
    let (orb, current) = client();
    let object = host.seen_by(&orb);
    let id = *b"0123456789abcdef";
    let key = object.object_key().expect("an IIOP profile");
    let request = |operation: &str| {
        common::Request::new((2, Order::Big), key, operation)
            .context(SCHEDULING_INFO, &info(Order::Little, id, &important(1)))
    };
    let mut waiting = Wire::to(&host.orb);
    waiting.say(&request("wait").bare());
    host.deck.gate.wait_for_arrivals(1);
    host.deck
        .current()
        .lookup(IdType(id))
        .expect("it serves")
        .cancel()
        .expect("it is known");
    let (name, _, completed) = Wire::to(&host.orb)
        .ask(&request("see").bare())
        .reply()
        .exception();
    assert_eq!(
        (name.as_str(), completed),
        ("IDL:omg.org/CORBA/THREAD_CANCELLED:1.0", 1)
    );
    host.deck.gate.open();
    let (name, _, completed) = waiting.hear().expect("a reply").reply().exception();
    assert_eq!(
        (name.as_str(), completed),
        ("IDL:omg.org/CORBA/THREAD_CANCELLED:1.0", 0)
    );
    assert_eq!(host.deck.seen().len(), 1);
    drop(current);
}

#[test]
fn contexts_of_that_number_that_are_not_ours_are_passed_over() {
    let host = Host::new(by_importance());
    let (orb, _) = client();
    let key = host
        .seen_by(&orb)
        .object_key()
        .expect("an IIOP profile")
        .to_vec();
    let mut depth = Octets::encapsulation(Order::Big);
    depth.u32(2);
    let whole = info(Order::Big, [7; 16], &important(1));
    // Data of other users of this context id: the transaction depth of fault tolerance, the counter of a TAO scheduler,
    // and no data.
    for foreign in [&depth.octets[..], &[9, 0, 0, 0, 0, 0, 0, 0], &[]] {
        let request =
            common::Request::new((2, Order::Big), &key, "see").context(SCHEDULING_INFO, foreign);
        let (name, ..) = Wire::to(&host.orb).ask(&request.bare()).reply().exception();
        assert_eq!(
            name, "IDL:omg.org/CORBA/BAD_INV_ORDER:1.0",
            "served, as no distributable thread"
        );
    }
    let short =
        common::Request::new((2, Order::Big), &key, "see").context(SCHEDULING_INFO, &whole[..40]);
    let (name, ..) = Wire::to(&host.orb).ask(&short.bare()).reply().exception();
    assert_eq!(name, "IDL:omg.org/CORBA/MARSHAL:1.0");
    // An ORB without a scheduler ignores this service context.
    let plain = common::World::new(Over::Tcp, common::Lanes::Many);
    for data in [&whole[..], &whole[..40], &depth.octets] {
        let request = plain
            .request((2, Order::Big), "ping")
            .context(SCHEDULING_INFO, data);
        assert_eq!(
            plain.dial().ask(&request.bare()).reply().status,
            NO_EXCEPTION
        );
    }
}

#[test]
fn spawn_begins_a_distributable_thread_of_its_own() {
    let (_orb, current) = client();
    let spawn = |parameter| {
        let (here, arrived) = channel();
        let own = current.clone();
        let see = move || {
            let seen = (
                own.id(),
                own.scheduling_parameter(),
                own.current_scheduling_segment_names(),
            );
            here.send(seen).expect("the test waits");
        };
        let spawned = current.spawn(see, "spawned", parameter, None, 256 << 10, None);
        spawned.map(|thread| (thread.id(), arrived.recv().expect("it runs")))
    };
    assert_eq!(spawn(None), Err(outside().into()));
    current
        .begin_scheduling_segment("", important(4), Some(important(3)))
        .expect("it can go by that");
    for (given, parameter) in [(None, important(3)), (Some(important(8)), important(8))] {
        let (id, seen) = spawn(given).expect("a thread");
        assert_ne!(Ok(id), current.id());
        assert_eq!(seen, (Ok(id), Ok(parameter), vec!["spawned".to_owned()]));
        wait_for(|| current.lookup(id).is_none());
    }
    assert_eq!(
        spawn(Some(due(1))),
        Err(SegmentError::UnsupportedSchedulingDiscipline)
    );
    current
        .end_scheduling_segment("")
        .expect("within a segment");
}

#[test]
fn a_thread_that_ends_within_its_segments_ends_them() {
    let (_orb, current) = client();
    let own = current.clone();
    let id = std::thread::spawn(move || {
        own.begin_scheduling_segment("outer", important(1), None)
            .expect("it can go by that");
        own.begin_scheduling_segment("inner", important(1), None)
            .expect("it can go by that");
        own.id().expect("within a segment")
    });
    let id = id.join().expect("no panic");
    wait_for(|| current.lookup(id).is_none());
}

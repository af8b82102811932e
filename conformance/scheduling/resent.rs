//! Requests that are sent again, by clause (RT-CORBA 1.2, RTScheduling::Scheduler): which distributable thread they
//! carry, and what the scheduler is called for.

use std::collections::HashSet;
use std::sync::Arc;

use super::distributable::{by_importance, client, important};
use super::schedulers::Remembering;
use super::threads::said;
use crate::common::asynchronous::{ask, heard, poll, poller, same};
use crate::common::message::{LOCATION_FORWARD, NO_EXCEPTION, done};
use crate::common::servant::call;
use crate::common::{Over, Peer};
use deckwatch_cdr::Write;
use deckwatch_orb::{ObjectRef, Orb, Policy, SetOverrideType, SyncScope};
use deckwatch_rtscheduling::{SchedulerBuilder, SchedulerOrb};

/// A peer that forwards every request, and the one that it forwards them to.
fn forwarding() -> (Peer, Peer) {
    let there = Peer::answering(Over::Tcp, |_, asked| {
        match asked.asked().operation.as_str() {
            "number" => same(asked),
            "_is_a" => asked.answered(NO_EXCEPTION, |octets| {
                octets.u8(1);
            }),
            _ => done(asked),
        }
    });
    let ior = there.ior(2, b"There");
    let here = Peer::answering(Over::Tcp, move |_, asked| {
        asked.answered(LOCATION_FORWARD, |octets| ior.write(octets))
    });
    (here, there)
}

fn awaited_oneway(object: &ObjectRef) {
    let scope = [Policy::SyncScope(SyncScope::WithTarget)];
    let object = object.set_policy_overrides(&scope, SetOverrideType::AddOverride);
    let sent = object
        .expect("a known policy")
        .invoke_oneway("note", |w| 1_u32.write(w));
    assert_eq!(sent, Ok(()));
}

#[test]
fn a_request_that_starts_a_thread_carries_that_thread_however_often_it_is_sent() {
    type Send = fn(&ObjectRef);
    let kinds: [(&str, Send); 3] = [
        ("callback", |object| {
            assert_eq!(heard(&ask(object, 3)), Ok(3))
        }),
        ("deferred", |object| {
            assert_eq!(poll(&poller(object, 4), u32::MAX), Ok(4));
        }),
        ("one-way", awaited_oneway),
    ];
    for (name, send) in kinds {
        let (here, there) = forwarding();
        let (orb, current) = client();
        let own = (current.begin_scheduling_segment("", important(4), Some(important(-6))))
            .and_then(|()| Ok(current.id()?.0));
        send(&here.seen_by(&orb, 2));
        let (first, second) = (said(&here.heard()), said(&there.heard()));
        let (id, importance) = first.unwrap_or_else(|| panic!("{name}: a thread"));
        assert_eq!(importance, Some(-6), "{name}");
        assert_ne!(Ok(id), own, "{name}: a thread of its own");
        assert_eq!(second, first, "{name}: the same");
        current
            .end_scheduling_segment("")
            .expect("within a segment");
    }
}

#[test]
fn a_request_of_no_distributable_thread_carries_none_when_it_is_sent_again() {
    let (here, there) = forwarding();
    let orb = by_importance().turned_by_hand();
    let orb = orb.build().expect("a client");
    let current = orb.rt_scheduler_current().expect("it has a scheduler");
    let request = poller(&here.seen_by(&orb, 2), 4);
    // The thread that sends it again is a distributable thread by then.
    current
        .begin_scheduling_segment("", important(4), None)
        .expect("it can go by that");
    assert_eq!(poll(&request, u32::MAX), Ok(4));
    assert_eq!((said(&here.heard()), said(&there.heard())), (None, None));
}

#[test]
fn the_scheduler_is_called_at_each_attempt_of_a_call_and_once_for_a_request_that_starts_a_thread() {
    let scheduler = Remembering::default();
    let log = Arc::clone(&scheduler.0);
    let orb = Orb::builder().scheduler(scheduler).build();
    let orb = orb.expect("a client");
    let current = orb.rt_scheduler_current().expect("a scheduler");
    let take = || std::mem::take(&mut *log.lock().expect("no panic"));
    let parameter = important(4);
    current
        .begin_scheduling_segment("a", parameter, None)
        .expect("it goes by nothing");
    take();
    // A call: the points of portable interceptors.
    let (here, there) = forwarding();
    let object = here.seen_by(&orb, 2);
    assert_eq!(call(&object, "ping"), Ok(()));
    assert_eq!(take(), ["send", "other", "send", "reply"]);
    let ids: HashSet<_> = [here.heard(), there.heard()]
        .iter()
        .map(|asked| said(asked).expect("a thread").0)
        .collect();
    assert_eq!(
        ids,
        HashSet::from([current.id().expect("within a segment").0])
    );
    // Implicit operations are calls, too: the distributable thread runs at the server meanwhile.
    assert_eq!(object.is_a("IDL:conformance/Other:1.0"), Ok(true));
    assert_eq!(take(), ["send", "reply"]);
    assert!(said(&there.heard()).is_some());
    // Requests that start a distributable thread.
    for send in [
        (|object| assert_eq!(heard(&ask(object, 3)), Ok(3))) as fn(&ObjectRef),
        awaited_oneway,
    ] {
        let (here, _there) = forwarding();
        send(&here.seen_by(&orb, 2));
        assert_eq!(take(), ["send one-way"]);
    }
}

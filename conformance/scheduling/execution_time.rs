//! The execution time of a segment by clause (RT-CORBA 1.2, RTScheduling): it decreases as the distributable thread runs,
//! on whichever host, and least laxity ranks threads by what is left.

use std::sync::mpsc::channel;
use std::time::Duration;

use super::distributable::{Host, RUN, SCHEDULING_INFO, due, run_for};
use super::schedulers::native;
use crate::common::message::done;
use crate::common::rt::may_be_real_time;
use crate::common::servant::call;
use crate::common::{Cursor, Over, Peer, Received};
use deckwatch_orb::{Orb, OrbBuilder, Scheduling};
use deckwatch_os::schedule::processor_time;
use deckwatch_rtscheduling::{
    Band, Current, RankedScheduler, SchedulerBuilder, SchedulerOrb, SchedulingParameter,
};

/// More than a test uses.
const STATED: Duration = Duration::from_secs(1_000);

/// The resolution of a time in a service context.
const UNIT: Duration = Duration::from_nanos(100);

fn needing(execution_time: Duration) -> SchedulingParameter {
    SchedulingParameter {
        execution_time: Some(execution_time),
        ..due(1 << 60)
    }
}

fn by_laxity() -> OrbBuilder {
    Orb::builder().scheduler(RankedScheduler::least_laxity())
}

fn client() -> (Orb, Current) {
    let orb = by_laxity().build().expect("a client");
    let current = orb.rt_scheduler_current().expect("it has a scheduler");
    (orb, current)
}

fn left(current: &Current) -> Duration {
    let left = current.execution_time_left().expect("within a segment");
    left.expect("it has an execution time")
}

/// The execution time in the service context of a request.
fn sent(asked: &Received) -> Duration {
    let contexts = asked.asked().contexts;
    let found = contexts.iter().find(|(id, _)| *id == SCHEDULING_INFO);
    let mut r = Cursor::encapsulated(&found.expect("a distributable thread").1);
    assert_eq!(r.u8() & 8, 8, "it has an execution time");
    r.u32();
    r.sequence();
    r.u16();
    r.u16();
    r.u64();
    r.u64();
    Duration::from_nanos(r.u64() * 100)
}

#[test]
fn a_call_carries_the_execution_time_that_is_left() {
    let peer = Peer::answering(Over::Tcp, |_, asked| done(asked));
    let (orb, current) = client();
    let object = peer.seen_by(&orb, 2);
    let begun = processor_time();
    current
        .begin_scheduling_segment("", needing(STATED), None)
        .expect("the parameter is whole");
    let times = [(); 2].map(|()| {
        run_for(RUN);
        assert_eq!(call(&object, "ping"), Ok(()));
        sent(&peer.heard())
    });
    let last = left(&current);
    let used = processor_time() - begun;
    assert!(times[0] <= STATED - RUN, "{times:?}");
    assert!(times[1] <= times[0] + UNIT - RUN, "{times:?}");
    assert!(last <= times[1] + UNIT, "{last:?} {times:?}");
    // Not more than the thread has used.
    assert!(STATED - last <= used, "{last:?}, used {used:?}");
    assert_eq!(
        current.scheduling_parameter(),
        Ok(needing(STATED)),
        "as it was set"
    );
    // An update replaces the execution time left. It is zero after the thread has run for longer.
    current
        .update_scheduling_segment("", needing(RUN), None)
        .expect("the parameter is whole");
    run_for(RUN);
    assert_eq!(left(&current), Duration::ZERO);
    current
        .end_scheduling_segment("")
        .expect("within a segment");
}

#[test]
fn a_nested_segment_uses_the_time_of_the_outer_one_too() {
    let (_orb, current) = client();
    current
        .begin_scheduling_segment("outer", needing(STATED), None)
        .expect("the parameter is whole");
    current
        .begin_scheduling_segment("inner", needing(STATED), None)
        .expect("the parameter is whole");
    run_for(RUN);
    assert!(left(&current) <= STATED - RUN);
    current
        .end_scheduling_segment("")
        .expect("within a segment");
    assert!(left(&current) <= STATED - RUN);
    current
        .end_scheduling_segment("")
        .expect("within a segment");
}

#[test]
fn servers_on_the_way_use_the_execution_time_and_the_caller_learns_how_much() {
    let (first, second) = (Host::new(by_laxity()), Host::new(by_laxity()));
    let next = (second.seen_by(&first.orb), "run_and_go_on");
    first.deck.next.set(next).expect("once");
    let (orb, current) = client();
    let object = first.seen_by(&orb);
    let begun = processor_time();
    current
        .begin_scheduling_segment("", needing(STATED), None)
        .expect("the parameter is whole");
    assert_eq!(call(&object, "run_and_go_on"), Ok(()));
    let last = left(&current);
    let used_here = processor_time() - begun;
    let arrived = |host: &Host| {
        let (_, parameter, _) = host.deck.seen()[0].clone();
        parameter.execution_time.expect("it travels")
    };
    let (at_first, at_second) = (arrived(&first), arrived(&second));
    assert!(at_first <= STATED);
    assert!(at_second <= at_first - RUN, "{at_first:?} {at_second:?}");
    // What this thread has used, what the first server used before its call, and what the second used.
    assert!(last <= at_second - RUN + UNIT, "{at_second:?} {last:?}");
    assert!(
        STATED - last > used_here,
        "{last:?}, used here {used_here:?}"
    );
    current
        .end_scheduling_segment("")
        .expect("within a segment");
}

#[test]
fn a_collocated_call_counts_once() {
    let host = Host::new(by_laxity());
    let current = host.orb.rt_scheduler_current().expect("a scheduler");
    let object = host.seen_by(&host.orb);
    let begun = processor_time();
    current
        .begin_scheduling_segment("", needing(STATED), None)
        .expect("the parameter is whole");
    assert_eq!(call(&object, "run_and_go_on"), Ok(()));
    let last = left(&current);
    let used = processor_time() - begun;
    assert!(
        (RUN..=used).contains(&(STATED - last)),
        "{last:?}, used {used:?}"
    );
    current
        .end_scheduling_segment("")
        .expect("within a segment");
}

#[test]
fn a_thread_that_has_run_ranks_behind_one_with_less_laxity() {
    if !may_be_real_time() {
        return;
    }
    let band = Band::new(Scheduling::Fifo, 21, 25).expect("not empty");
    let scheduler = RankedScheduler::least_laxity().within(band);
    let orb = Orb::builder().scheduler(scheduler).build();
    let orb = orb.expect("a client");
    let first = orb.rt_scheduler_current().expect("a scheduler");
    let second = first.clone();
    std::thread::scope(|scope| {
        let (go, gate) = channel::<()>();
        let (here, seen) = channel();
        scope.spawn(move || {
            // It needs three and has run for more than two.
            first
                .begin_scheduling_segment("", needing(RUN * 3), None)
                .expect("permitted");
            here.send(native()).expect("the test waits");
            run_for(RUN * 2);
            here.send(native()).expect("the test waits");
            gate.recv().expect("the test goes on");
            here.send(native()).expect("the test waits");
            first.end_scheduling_segment("").expect("within a segment");
        });
        assert_eq!(seen.recv().expect("it begins"), (1, 25));
        assert_eq!(seen.recv().expect("it has run"), (1, 25));
        let other = scope.spawn(move || {
            // It needs two: less than the first one stated, and more than that one has left.
            second
                .begin_scheduling_segment("", needing(RUN * 2), None)
                .expect("permitted");
            let own = native();
            go.send(()).expect("the other waits");
            let others = seen.recv().expect("the other answers");
            second.end_scheduling_segment("").expect("within a segment");
            (own, others)
        });
        assert_eq!(other.join().expect("no panic"), ((1, 25), (1, 24)));
    });
}

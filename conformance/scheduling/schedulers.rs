//! Schedulers of distributable threads by clause (RT-CORBA 1.2, RTScheduling::Scheduler): their notifications, the
//! order of threads, and native priorities. `crates/rtscheduling/tests/theory.rs` compares the scheduling disciplines
//! with theory.

use std::fs::read_to_string;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::distributable::{
    Host, SCHEDULING_INFO, by_importance, cancelled, due, important, info, outside, raised,
};
use crate::common;
use crate::common::lanes::{DecodedReference, LaneWorld, lane, priority, propagated};
use crate::common::message::NO_EXCEPTION;
use crate::common::rt::may_be_real_time;
use crate::common::servant::call;
use crate::common::{Order, Over, Wire, wait_for};
use deckwatch_orb::{
    Completion, Counter, Orb, Policies, RequestBuffering, Scheduling, Servant, ServerRequest,
    SystemException, SystemExceptionKind as Kind, ThreadpoolLane, UtcT, own_minor,
};
use deckwatch_rtscheduling::{
    Band, IdType, RankedScheduler, Scheduler, SchedulerBuilder, SchedulerOrb, SchedulingParameter,
    SegmentError,
};

#[test]
fn a_parameter_that_the_scheduler_cannot_go_by_begins_nothing() {
    let priority = SchedulingParameter {
        priority: Some(priority(5)),
        ..SchedulingParameter::default()
    };
    let laxity = SchedulingParameter {
        execution_time: Some(Duration::from_millis(1)),
        ..due(9)
    };
    for (scheduler, fit, unfit, name) in [
        (
            RankedScheduler::fixed_priority(),
            priority,
            important(1),
            "fixed priority",
        ),
        (
            RankedScheduler::most_important_first(),
            important(1),
            due(9),
            "most important first",
        ),
        (
            RankedScheduler::earliest_deadline_first(),
            due(9),
            priority,
            "earliest deadline first",
        ),
        (
            RankedScheduler::least_laxity(),
            laxity,
            due(9),
            "least laxity",
        ),
    ] {
        let orb = Orb::builder()
            .scheduler(scheduler)
            .build()
            .expect("a client");
        let current = orb.rt_scheduler_current().expect("a scheduler");
        assert_eq!(
            orb.rt_scheduler()
                .expect("a scheduler")
                .scheduling_discipline_name(),
            name
        );
        let unsupported = Err(SegmentError::UnsupportedSchedulingDiscipline);
        assert_eq!(
            current.begin_scheduling_segment("", unfit, None),
            unsupported,
            "{name}"
        );
        assert_eq!(current.id(), Err(outside()));
        assert_eq!(
            current.begin_scheduling_segment("", fit, None),
            Ok(()),
            "{name}"
        );
        assert_eq!(
            current.begin_scheduling_segment("", unfit, None),
            unsupported
        );
        assert_eq!(
            current.update_scheduling_segment("", unfit, None),
            unsupported
        );
        assert_eq!(current.scheduling_parameter(), Ok(fit));
        assert_eq!(current.end_scheduling_segment(""), Ok(()));
    }
    assert!(
        Orb::builder()
            .build()
            .expect("a client")
            .rt_scheduler_current()
            .is_none()
    );
}

/// Keeps the only thread of a pool, or of its lane of priority 5, in a request while these requests wait. Returns their
/// numbers in the order in which they are served.
fn queue_order(
    lanes: &[ThreadpoolLane],
    scheduler: RankedScheduler,
    requests: &[(u32, Option<SchedulingParameter>)],
) -> Vec<u32> {
    let world = LaneWorld::with(Over::Tcp, Orb::builder().scheduler(scheduler));
    let (rt, buffering) = (world.orb.rt_orb(), Some(RequestBuffering::default()));
    let pool = match lanes {
        [] => rt.create_threadpool(0, 1, 0, priority(5), buffering),
        lanes => rt.create_threadpool_with_lanes(0, lanes, false, buffering),
    };
    let policies = Policies {
        threadpool: Some(pool.expect("threads")),
        priority_model: propagated(5).filter(|_| !lanes.is_empty()),
        ..Policies::default()
    };
    let told: DecodedReference = world.object(&world.adapter("served", &policies));
    let at = told.address();
    let mut busy = Wire::at(&at);
    busy.say(&told.request("meet").bare());
    world.witness.probe.gate.wait_for_arrivals(1);
    let mut wires = Vec::new();
    for (waiting, (number, parameter)) in (1..).zip(requests) {
        let mut request = told.request("note");
        if let Some(parameter) = parameter {
            let id = [u8::try_from(*number).expect("few"); 16];
            request = request.context(SCHEDULING_INFO, &info(Order::Big, id, parameter));
        }
        let mut wire = Wire::at(&at);
        wire.say(&request.with(|o| {
            o.u32(*number);
        }));
        // The next request is sent once this one waits.
        wait_for(|| world.orb.counters().read(Counter::RequestsBuffered) >= waiting);
        wires.push(wire);
    }
    // The other lanes still serve at once.
    for other in lanes.iter().skip(1).map(|lane| lane.lane_priority.value()) {
        assert_eq!(told.ask_lane(other).0, other);
    }
    world.witness.probe.gate.open();
    for mut wire in wires {
        assert_eq!(wire.hear().expect("a reply").reply().status, NO_EXCEPTION);
    }
    world.witness.probe.notes()
}

#[test]
fn the_scheduler_orders_the_requests_that_wait_for_a_thread() {
    let parameter = |weight: i16, deadline: u64, execution_units: u64| SchedulingParameter {
        priority: Some(priority(weight)),
        importance: Some(weight),
        deadline: Some(UtcT::new(1_000_000 + deadline, 0, 0)),
        execution_time: Some(Duration::from_nanos(execution_units * 100)),
    };
    let requests = [
        (1, None),
        (2, Some(parameter(1, 10, 2))),
        (3, Some(parameter(3, 12, 7))),
        (4, Some(parameter(2, 9, 1))),
        (5, Some(parameter(4, 20, 3))),
        (6, None),
    ];
    let disciplines: [(fn() -> RankedScheduler, _); 4] = [
        (RankedScheduler::fixed_priority, [5, 3, 4, 2, 1, 6]),
        (RankedScheduler::most_important_first, [5, 3, 4, 2, 1, 6]),
        (RankedScheduler::earliest_deadline_first, [4, 2, 3, 5, 1, 6]),
        (RankedScheduler::least_laxity, [3, 2, 4, 5, 1, 6]),
    ];
    for (made, order) in disciplines {
        for lanes in [&[][..], &[lane(5), lane(90)]] {
            let name = format!("{:?}, {lanes:?}", made());
            assert_eq!(queue_order(lanes, made(), &requests), order, "{name}");
        }
    }
}

/// A scheduler that orders nothing and records its notifications.
#[derive(Default)]
pub(super) struct Remembering(pub(super) Arc<Mutex<Vec<String>>>);

impl Remembering {
    fn tell(&self, what: &str) {
        self.0.lock().expect("no panic").push(what.to_owned());
    }
}

impl Scheduler for Remembering {
    fn scheduling_discipline_name(&self) -> &str {
        "what comes"
    }

    fn order(&self, _: &SchedulingParameter) -> u64 {
        0
    }

    fn begin_new_scheduling_segment(
        &self,
        _: &IdType,
        name: &str,
        _: &SchedulingParameter,
    ) -> Result<(), SegmentError> {
        self.tell(&format!("begin {name}"));
        Ok(())
    }

    fn begin_nested_scheduling_segment(
        &self,
        _: &IdType,
        name: &str,
        _: &SchedulingParameter,
    ) -> Result<(), SegmentError> {
        self.tell(&format!("nest {name}"));
        Ok(())
    }

    fn update_scheduling_segment(
        &self,
        _: &IdType,
        name: &str,
        _: &SchedulingParameter,
    ) -> Result<(), SegmentError> {
        self.tell(&format!("update {name}"));
        Ok(())
    }

    fn end_scheduling_segment(&self, _: &IdType, name: &str) {
        self.tell(&format!("end {name}"));
    }

    fn end_nested_scheduling_segment(&self, _: &IdType, name: &str, _: &SchedulingParameter) {
        self.tell(&format!("unnest {name}"));
    }

    fn send_request(&self, _: &IdType, parameter: &mut SchedulingParameter) {
        parameter.importance = Some(99);
        self.tell("send");
    }

    fn send_oneway(&self, _: &IdType, _: &mut SchedulingParameter) {
        self.tell("send one-way");
    }

    fn receive_reply(&self, _: &IdType, _: &SchedulingParameter) {
        self.tell("reply");
    }

    fn receive_exception(&self, _: &IdType, _: &SchedulingParameter) {
        self.tell("exception");
    }

    fn receive_other(&self, _: &IdType, _: &SchedulingParameter) {
        self.tell("other");
    }

    fn receive_request(
        &self,
        _: &IdType,
        parameter: &SchedulingParameter,
    ) -> Result<(), SystemException> {
        self.tell(&format!("serve at {:?}", parameter.importance));
        if parameter.importance == Some(13) {
            return Err(raised(Kind::NoPermission, 13));
        }
        Ok(())
    }

    fn send_reply(&self, _: &IdType) {
        self.tell("answered");
    }

    fn send_exception(&self, _: &IdType) {
        self.tell("raised");
    }

    fn cancel(&self, _: &IdType) {
        self.tell("cancelled");
    }
}

#[test]
fn a_scheduler_of_the_applications_is_told_every_step() {
    let (at_home, there) = (Remembering::default(), Remembering::default());
    let (home_told, there_told) = (Arc::clone(&at_home.0), Arc::clone(&there.0));
    let host = Host::new(Orb::builder().scheduler(there));
    let orb = Orb::builder().scheduler(at_home).build().expect("a client");
    let current = orb.rt_scheduler_current().expect("a scheduler");
    let object = host.seen_by(&orb);
    let nothing = SchedulingParameter::default();
    current
        .begin_scheduling_segment("a", nothing, None)
        .expect("it goes by nothing");
    current
        .begin_scheduling_segment("b", nothing, None)
        .expect("it goes by nothing");
    current
        .update_scheduling_segment("c", nothing, None)
        .expect("it goes by nothing");
    assert_eq!(call(&object, "see"), Ok(()));
    assert!(call(&object, "no such").is_err());
    current
        .end_scheduling_segment("c")
        .expect("within a segment");
    current
        .lookup(current.id().expect("within a segment"))
        .expect("it is known")
        .cancel()
        .expect("once");
    assert_eq!(
        current.end_scheduling_segment("a"),
        Err(cancelled(Completion::No))
    );
    let take = |told: &Mutex<Vec<String>>| std::mem::take(&mut *told.lock().expect("no panic"));
    assert_eq!(
        take(&home_told),
        [
            "begin a",
            "nest b",
            "update c",
            "send",
            "reply",
            "send",
            "exception",
            "unnest c",
            "cancelled",
            "end a"
        ]
    );
    assert_eq!(
        take(&there_told),
        [
            "serve at Some(99)",
            "answered",
            "serve at Some(99)",
            "raised"
        ]
    );
    // A request that the scheduler refuses is not served.
    let key = object.object_key().expect("an IIOP profile");
    let refused = common::Request::new((2, Order::Big), key, "see")
        .context(SCHEDULING_INFO, &info(Order::Big, [1; 16], &important(13)));
    let (name, minor, _) = Wire::to(&host.orb).ask(&refused.bare()).reply().exception();
    assert_eq!(
        (name.as_str(), minor),
        ("IDL:omg.org/CORBA/NO_PERMISSION:1.0", 13)
    );
    assert_eq!(host.deck.seen().len(), 1);
    assert!(host.deck.current().lookup(IdType([1; 16])).is_none());
}

/// Scheduling class and native priority of the calling thread in the kernel; class 1 is SCHED_FIFO, 2 is SCHED_RR.
pub(super) fn native() -> (u32, u8) {
    let stat = read_to_string("/proc/thread-self/stat").expect("proc is there");
    let fields: Vec<&str> = stat
        .rsplit_once(") ")
        .expect("a name")
        .1
        .split(' ')
        .collect();
    let number = |place: usize| fields[place].parse::<u32>().expect("a number");
    // These are fields 40 and 41 of the file. The list of fields here starts with the third, after the name.
    (number(38), u8::try_from(number(37)).expect("at most 99"))
}

#[test]
fn ranks_become_native_priorities_within_the_band() {
    let permitted = may_be_real_time();
    let band = Band::new(Scheduling::Fifo, 21, 23).expect("not empty");
    let orb = Orb::builder()
        .scheduler(RankedScheduler::earliest_deadline_first().within(band))
        .build()
        .expect("a client");
    let current = orb.rt_scheduler_current().expect("a scheduler");
    if !permitted {
        let denied = current.begin_scheduling_segment("", due(1), None);
        assert_eq!(
            denied,
            Err(raised(Kind::NoPermission, own_minor::PRIORITY_DENIED).into())
        );
        assert_eq!(current.id(), Err(outside()));
        return;
    }
    // Four threads start one after the other. Each reports its priority when asked to, then ends; otherwise it only
    // waits.
    let deadlines = [40, 20, 30, 10];
    std::thread::scope(|scope| {
        let threads: Vec<_> = deadlines
            .map(|deadline| {
                let (orders, inbox) = channel::<Option<u64>>();
                let (outbox, looks) = channel();
                let current = current.clone();
                scope.spawn(move || {
                    current
                        .begin_scheduling_segment("", due(deadline), None)
                        .expect("permitted");
                    outbox.send(native()).expect("the test waits");
                    while let Ok(Some(deadline)) = inbox.recv() {
                        if deadline != 0 {
                            current
                                .update_scheduling_segment("", due(deadline), None)
                                .expect("permitted");
                        }
                        outbox.send(native()).expect("the test waits");
                    }
                    current
                        .end_scheduling_segment("")
                        .expect("within a segment");
                    outbox.send(native()).expect("the test waits");
                });
                let first = looks.recv().expect("it begins");
                assert_eq!(first.0, 1, "SCHED_FIFO");
                (orders, looks)
            })
            .into();
        let order = |at: usize, order: Option<u64>| {
            threads[at].0.send(order).expect("it waits");
            threads[at].1.recv().expect("it answers")
        };
        let all = || [0, 1, 2, 3].map(|at| order(at, Some(0)).1);
        // With deadlines 40, 20, 30 and 10, the ranks are 4, 2, 3 and 1. A band of three has no priority of its own for
        // the last rank.
        assert_eq!(all(), [21, 22, 21, 23]);
        order(0, Some(5));
        assert_eq!(all(), [23, 21, 21, 22]);
        order(1, Some(10));
        assert_eq!(all(), [23, 22, 21, 22], "equals share a rank");
        assert_eq!(order(0, None), (0, 0), "what it was before");
        let left = [1, 2, 3].map(|at| order(at, Some(0)).1);
        assert_eq!(left, [23, 22, 23]);
        for at in [1, 2, 3] {
            order(at, None);
        }
    });
}

#[test]
fn a_thread_that_ends_within_a_segment_leaves_no_rank_behind() {
    if !may_be_real_time() {
        return;
    }
    let band = Band::new(Scheduling::Fifo, 25, 27).expect("not empty");
    let scheduler = RankedScheduler::earliest_deadline_first().within(band);
    let orb = Orb::builder().scheduler(scheduler).build();
    let current = orb
        .expect("a client")
        .rt_scheduler_current()
        .expect("a scheduler");
    let begin = |deadline| {
        let current = current.clone();
        let thread = std::thread::spawn(move || {
            current
                .begin_scheduling_segment("", due(deadline), None)
                .expect("permitted");
            native()
        });
        thread.join().expect("no panic")
    };
    assert_eq!(begin(10), (1, 27));
    assert_eq!(begin(20), (1, 27), "nobody is before it any more");
}

#[test]
fn a_band_lies_within_the_real_time_priorities() {
    let malformed = Err(raised(Kind::BadParam, own_minor::BAND_MALFORMED));
    for (class, lowest, highest) in [
        (Scheduling::Fifo, 0, 5),
        (Scheduling::Fifo, 6, 5),
        (Scheduling::RoundRobin, 5, 100),
        (Scheduling::Other, 1, 5),
    ] {
        assert_eq!(Band::new(class, lowest, highest), malformed);
    }
    assert!(Band::new(Scheduling::RoundRobin, 1, 99).is_ok());
}

#[test]
fn a_thread_that_serves_has_the_rank_of_the_one_it_goes_on_as() {
    if !may_be_real_time() {
        return;
    }
    let band = Band::new(Scheduling::RoundRobin, 11, 15).expect("not empty");
    let scheduler = RankedScheduler::most_important_first().within(band);
    let world = LaneWorld::with(Over::Tcp, Orb::builder().scheduler(scheduler).threads(4));
    let servant: Arc<dyn Servant> = Arc::new(Native);
    let object = world
        .root
        .servant_to_reference(&servant)
        .expect("implicit activation");
    let key = object.object_key().expect("an IIOP profile");
    let ask = |importance: Option<i16>| {
        let mut request = common::Request::new((2, Order::Big), key, "native");
        if let Some(importance) = importance {
            let data = info(Order::Big, [9; 16], &important(importance));
            request = request.context(SCHEDULING_INFO, &data);
        }
        let mut body = Wire::to(&world.orb).ask(&request.bare()).reply().body;
        (body.u32(), body.u32())
    };
    assert_eq!(ask(None), (0, 0), "of no distributable thread");
    assert_eq!(ask(Some(1)), (2, 15), "alone it is the first");
    // A more important thread of the same process, which only waits.
    let current = world.orb.rt_scheduler_current().expect("a scheduler");
    let (go, gate) = channel::<()>();
    let (here, arrived) = channel();
    let other = std::thread::spawn(move || {
        current
            .begin_scheduling_segment("", important(5), None)
            .expect("permitted");
        here.send(native()).expect("the test waits");
        let _ = gate.recv(); // Sent, or the test is over.
        current
            .end_scheduling_segment("")
            .expect("within a segment");
    });
    assert_eq!(arrived.recv().expect("it begins"), (2, 15));
    assert_eq!(ask(Some(1)), (2, 14));
    assert_eq!(ask(Some(5)), (2, 15), "equals share a rank");
    assert_eq!(ask(None), (0, 0), "the lane's threads are what they were");
    go.send(()).expect("it waits");
    other.join().expect("no panic");
    assert_eq!(ask(Some(1)), (2, 15));
}

#[test]
fn a_thread_that_waits_for_its_reply_has_no_rank_and_keeps_its_priority() {
    if !may_be_real_time() {
        return;
    }
    let host = Host::new(by_importance());
    let band = Band::new(Scheduling::Fifo, 31, 33).expect("not empty");
    let scheduler = RankedScheduler::most_important_first().within(band);
    let orb = Orb::builder()
        .scheduler(scheduler)
        .build()
        .expect("a client");
    let current = orb.rt_scheduler_current().expect("a scheduler");
    let object = host.seen_by(&orb);
    let (first, second) = (current.clone(), current);
    let (here, seen) = channel();
    let more = here.clone();
    let away = std::thread::spawn(move || {
        let begun = first.begin_scheduling_segment("", important(9), None);
        begun.expect("permitted");
        assert_eq!(call(&object, "wait"), Ok(()));
        more.send(native()).expect("the test waits");
        first.end_scheduling_segment("").expect("within a segment");
    });
    host.deck.gate.wait_for_arrivals(1);
    let (go, gate) = channel::<()>();
    let other = std::thread::spawn(move || {
        let begun = second.begin_scheduling_segment("", important(1), None);
        begun.expect("permitted");
        here.send(native()).expect("the test waits");
        gate.recv().expect("it is told");
        here.send(native()).expect("the test waits");
        second.end_scheduling_segment("").expect("within a segment");
    });
    assert_eq!(
        seen.recv().expect("it begins"),
        (1, 33),
        "nobody above it could run"
    );
    host.deck.gate.open();
    assert_eq!(seen.recv().expect("it comes back"), (1, 33));
    away.join().expect("no panic");
    go.send(()).expect("it waits");
    assert_eq!(seen.recv().expect("it goes on"), (1, 33), "alone again");
    other.join().expect("no panic");
}

/// A servant that returns scheduling class and native priority of its thread.
struct Native;

impl Servant for Native {
    fn repository_ids(&self) -> &'static [&'static str] {
        &["IDL:deckwatch.test/Native:1.0"]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let (class, priority) = native();
        let mut reply = request.reply()?;
        reply.write_u32(class)?;
        Ok(reply.write_u32(u32::from(priority))?)
    }
}

//! The threads of threadpools as the operating system sees them: priorities, stacks, start and end.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::common::rt::may_be_real_time;
use crate::support::{Bench, TEST_ID, call, wait_for};
use deckwatch_orb::delivery::{Deliveries, DeliveryOptions};
use deckwatch_orb::{
    Counter, Direct, ObjectRef, Orb, OrbBuilder, Policies, Priority, PriorityModel,
    PriorityModelPolicy, RequestBuffering, RtOrb, Scheduling, Servant, ServerRequest,
    SystemException, SystemExceptionKind as Kind, ThreadpoolId, ThreadpoolLane,
};
use deckwatch_os::schedule::{self, Class};
use deckwatch_testkit::{alone, alone_as_nobody};

/// A servant that returns the scheduling class and the stack size of its thread.
#[derive(Default)]
struct Witness {
    bench: Bench,
    orb: OnceLock<Orb>,
}

impl Servant for Witness {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[TEST_ID]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        match request.operation() {
            b"class" => {
                let class = schedule::class().expect("readable").to_string();
                request.reply()?.write_octet_sequence(class.as_bytes())?;
            }
            b"rise" => {
                let current = self
                    .orb
                    .get()
                    .expect("set before it is served")
                    .rt_current();
                current.set_the_priority(priority(11))?;
                request.reply()?;
            }
            b"stack" => {
                let here = 0_u8;
                let size = mapping_around(std::ptr::from_ref(&here).addr());
                request.reply()?.write_count(size)?;
            }
            _ => return self.bench.dispatch(request),
        }
        Ok(())
    }
}

/// Size in octets of the memory mapping of this process that contains an address.
fn mapping_around(address: usize) -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the kernel tells");
    let range = |line: &str| {
        let (from, rest) = line.split_once('-')?;
        let (to, _) = rest.split_once(' ')?;
        let number = |digits| usize::from_str_radix(digits, 16).ok();
        Some((number(from)?, number(to)?))
    };
    let mut ranges = maps.lines().filter_map(range);
    let found = ranges.find(|(from, to)| (*from..*to).contains(&address));
    found.map(|(from, to)| to - from).expect("it is mapped")
}

struct World {
    orb: Orb,
    witness: Arc<Witness>,
}

fn priority(number: i16) -> Priority {
    Priority::new(number).expect("not negative")
}

fn lane(number: i16) -> ThreadpoolLane {
    ThreadpoolLane {
        lane_priority: priority(number),
        static_threads: 1,
        dynamic_threads: 0,
    }
}

impl World {
    fn new(builder: OrbBuilder) -> Self {
        let orb = builder.listen("127.0.0.1:0").and_then(OrbBuilder::build);
        let orb = orb.expect("a free port");
        let root = orb.root_poa().expect("it listens");
        root.the_poa_manager().activate().expect("a fresh manager");
        let witness = Arc::new(Witness {
            orb: orb.clone().into(),
            ..Witness::default()
        });
        Self { orb, witness }
    }

    /// Native priorities are equal to CORBA priorities. A thread that does not block ends the process (see
    /// `limit_real_time`).
    fn real_time(scheduling: Scheduling) -> Option<Self> {
        if !may_be_real_time() {
            return None;
        }
        let builder = Orb::builder().scheduling(scheduling);
        Some(Self::new(builder.priority_mapping(Direct(scheduling))))
    }

    fn rt(&self) -> RtOrb {
        self.orb.rt_orb()
    }

    /// A SERVER_DECLARED object of a new adapter with this pool, as a client sees it.
    fn declared(&self, name: &str, pool: ThreadpoolId, number: i16) -> ObjectRef {
        let policies = Policies {
            threadpool: Some(pool),
            priority_model: Some(PriorityModelPolicy {
                priority_model: PriorityModel::ServerDeclared,
                server_priority: priority(number),
            }),
            ..Policies::default()
        };
        let root = self.orb.root_poa().expect("it lives");
        let manager = root.the_poa_manager();
        let poa = root.create_poa(name, Some(manager), &policies);
        let poa = poa.expect("policies that go together");
        let id = poa.activate_object(self.witness.clone()).expect("an id");
        let text = poa.id_to_reference(&id).expect("it is active").to_string();
        let client = Orb::builder().build().expect("a client needs nothing");
        client
            .string_to_object(&text)
            .expect("ours")
            .expect("not nil")
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.witness.bench.gate.open();
        let _ = self.orb.shutdown(true); // The test may have shut it down.
    }
}

fn class(object: &ObjectRef) -> String {
    let octets = object.invoke(
        "class",
        |_| Ok(()),
        |r| Ok(r.read_octet_sequence()?.to_vec()),
        |_, _| Ok(None),
    );
    let octets: Result<Vec<u8>, SystemException> = octets;
    String::from_utf8(octets.expect("it is served")).expect("plain words")
}

fn stack(object: &ObjectRef) -> usize {
    let size: Result<u32, SystemException> =
        object.invoke("stack", |_| Ok(()), |r| r.read_u32(), |_, _| Ok(None));
    size.expect("it is served") as usize
}

/// The number of threads of this process whose name begins with `name`.
fn threads_named(name: &str) -> usize {
    deckwatch_testkit::threads(|it| it.starts_with(name)).len()
}

/// Calls in another thread.
fn call_apart(object: &ObjectRef, operation: &'static str) -> std::thread::JoinHandle<()> {
    let object = object.clone();
    std::thread::spawn(move || call(&object, operation).expect("it is served"))
}

#[test]
fn threads_of_a_lane_are_in_the_class_and_at_the_native_priority_of_the_lane() {
    for (scheduling, name) in [
        (Scheduling::Fifo, "SCHED_FIFO"),
        (Scheduling::RoundRobin, "SCHED_RR"),
    ] {
        let Some(world) = World::real_time(scheduling) else {
            return;
        };
        let lanes = [lane(3), lane(7)];
        let pool = world
            .rt()
            .create_threadpool_with_lanes(0, &lanes, false, None);
        let pool = pool.expect("it is permitted");
        for number in [3, 7] {
            let object = world.declared(&number.to_string(), pool, number);
            assert_eq!(class(&object), format!("{name} {number}"));
        }
        assert!(!world.orb.has_priority_fallback());
    }
}

#[test]
fn a_thread_of_a_pool_without_lanes_has_the_native_priority_of_its_request_while_it_serves_it() {
    let Some(world) = World::real_time(Scheduling::Fifo) else {
        return;
    };
    let pool = world.rt().create_threadpool(0, 1, 0, priority(2), None);
    let pool = pool.expect("it is permitted");
    let (own, other) = (
        world.declared("own", pool, 2),
        world.declared("other", pool, 9),
    );
    for _ in 0..3 {
        assert_eq!(class(&own), "SCHED_FIFO 2");
        assert_eq!(class(&other), "SCHED_FIFO 9");
    }
    assert_eq!(world.orb.counters().read(Counter::PriorityChanges), 3);
    // Threads of the default pool are real-time threads only while they serve such a request.
    let object = world.declared("default", ThreadpoolId(0), 4);
    assert_eq!(class(&object), "SCHED_FIFO 4");
    let root = world.orb.root_poa().expect("it lives");
    let servant: Arc<dyn Servant> = world.witness.clone();
    let plain = root.servant_to_reference(&servant).expect("implicit");
    let client = Orb::builder().build().expect("a client needs nothing");
    let plain = client.string_to_object(&plain.to_string());
    let plain = plain.expect("ours").expect("not nil");
    assert_eq!(class(&plain), "SCHED_OTHER");
}

#[test]
fn a_priority_that_a_servant_takes_is_its_threads_no_longer_than_the_request() {
    if World::real_time(Scheduling::Fifo).is_none() {
        return;
    }
    // With one thread, the next request gets the thread as this request left it.
    let builder = Orb::builder().threads(1).dynamic_threads(0);
    let world = World::new(builder.priority_mapping(Direct(Scheduling::Fifo)));
    let pool = world.rt().create_threadpool(0, 1, 0, priority(2), None);
    let lanes = world
        .rt()
        .create_threadpool_with_lanes(0, &[lane(3)], false, None);
    let root = world.orb.root_poa().expect("it lives");
    let servant: Arc<dyn Servant> = world.witness.clone();
    let plain = root.servant_to_reference(&servant).expect("implicit");
    let client = Orb::builder().build().expect("a client needs nothing");
    let plain = client.string_to_object(&plain.to_string());
    for (object, own) in [
        (
            world.declared("lane", lanes.expect("permitted"), 3),
            "SCHED_FIFO 3",
        ),
        (
            world.declared("pool", pool.expect("permitted"), 2),
            "SCHED_FIFO 2",
        ),
        (plain.expect("ours").expect("not nil"), "SCHED_OTHER"),
    ] {
        assert_eq!(call(&object, "rise"), Ok(()));
        assert_eq!(class(&object), own);
    }
}

#[test]
fn a_borrowed_thread_has_the_native_priority_of_the_lane_that_borrows_until_it_has_served() {
    let Some(world) = World::real_time(Scheduling::Fifo) else {
        return;
    };
    let lanes = [lane(3), lane(7)];
    let pool = world
        .rt()
        .create_threadpool_with_lanes(0, &lanes, true, None);
    let pool = pool.expect("it is permitted");
    let (low, high) = (
        world.declared("low", pool, 3),
        world.declared("high", pool, 7),
    );
    let busy = call_apart(&high, "meet");
    world.witness.bench.gate.wait_for_arrivals(1);
    for borrowed in 1..=5 {
        assert_eq!(class(&high), "SCHED_FIFO 7");
        assert_eq!(
            world.orb.counters().read(Counter::ThreadsBorrowed),
            borrowed
        );
        assert_eq!(class(&low), "SCHED_FIFO 3");
    }
    world.witness.bench.gate.open();
    busy.join().expect("it is served");
}

#[test]
fn threads_have_the_stack_that_the_pool_asks_for() {
    let world = World::new(Orb::builder().scheduling(Scheduling::Other));
    const SIZE: u32 = 48 << 20;
    let large = world.rt().create_threadpool(SIZE, 1, 0, priority(1), None);
    let usual = world.rt().create_threadpool(0, 1, 0, priority(1), None);
    let large = world.declared("large", large.expect("memory"), 1);
    let usual = world.declared("usual", usual.expect("memory"), 1);
    assert!(stack(&large) >= SIZE as usize, "{}", stack(&large));
    assert!(stack(&usual) < SIZE as usize, "{}", stack(&usual));
}

#[test]
fn threads_that_were_added_end_when_they_have_nothing_to_do() {
    alone(|| {
        let world = World::new(
            Orb::builder()
                .scheduling(Scheduling::Other)
                .dynamic_thread_idle(Duration::from_millis(20)),
        );
        // Creates pools until the next pool number is unused by other tests in this process.
        for _ in 1..17 {
            let pool = world.rt().create_threadpool(0, 1, 0, priority(1), None);
            world
                .rt()
                .destroy_threadpool(pool.expect("one thread"))
                .expect("it is there");
        }
        let pool = world.rt().create_threadpool(0, 1, 2, priority(1), None);
        let pool = pool.expect("one thread");
        assert_eq!((pool, threads_named("orb-17.0-")), (ThreadpoolId(17), 1));
        let object = world.declared("a", pool, 1);
        let calls: Vec<_> = (0..3).map(|_| call_apart(&object, "meet")).collect();
        world.witness.bench.gate.wait_for_arrivals(3);
        assert_eq!(threads_named("orb-17.0-"), 3);
        world.witness.bench.gate.open();
        calls
            .into_iter()
            .for_each(|call| call.join().expect("it is served"));
        wait_for(|| threads_named("orb-17.0-") == 1);
        call(&object, "ping").expect("the static thread serves on");
        let added = world.orb.counters().read(Counter::ThreadsAdded);
        assert!(added >= 2, "{added}");
    });
}

#[test]
fn the_thread_of_deliveries_has_the_class_of_the_thread_that_starts_them() {
    if !may_be_real_time() {
        return;
    }
    alone(|| {
        for wanted in [Class::Fifo(7), Class::Other] {
            schedule::set_class(wanted).expect("it is permitted");
            let world = World::new(Orb::builder());
            let deliveries = Deliveries::start(&world.orb, DeliveryOptions::default());
            let deliveries = deliveries.expect("threads can be made");
            let class = || classes_of("orb-delivery");
            wait_for(|| class() == [wanted]);
            drop(deliveries);
            wait_for(|| class().is_empty());
        }
    });
}

/// The classes of this process's threads with this name.
fn classes_of(name: &str) -> Vec<Class> {
    let threads = deckwatch_testkit::threads(|it| it == name).into_iter();
    threads
        .filter_map(|thread| schedule::class_of(thread).ok())
        .collect()
}

#[test]
fn without_permission_no_pool_is_made_unless_the_orb_may_do_without() {
    alone_as_nobody(|| {
        let is_permitted = std::thread::spawn(|| schedule::set_class(Class::Fifo(1)).is_ok());
        if is_permitted.join().expect("no panic") {
            return deckwatch_testkit::skip(
                "real-time-class-refused",
                "every user may have it here",
            );
        }
        let buffering = Some(RequestBuffering::default());
        let builder = || Orb::builder().scheduling(Scheduling::Fifo);
        let strict = World::new(builder());
        let lanes = [lane(3), lane(7)];
        let made = strict
            .rt()
            .create_threadpool_with_lanes(0, &lanes, true, buffering);
        assert_eq!(made.expect_err("no permission").kind, Kind::NoResources);
        let made = strict.rt().create_threadpool(0, 2, 2, priority(3), None);
        assert_eq!(made.expect_err("no permission").kind, Kind::NoResources);
        assert_eq!(threads_named("orb-1."), 0, "nothing is left of them");
        assert!(!strict.orb.has_priority_fallback());

        let lenient = World::new(builder().allow_priority_fallback());
        let made = lenient
            .rt()
            .create_threadpool_with_lanes(0, &lanes, false, None);
        assert!(lenient.orb.has_priority_fallback());
        assert_eq!(lenient.orb.counters().read(Counter::PriorityFallbacks), 2);
        let object = lenient.declared("a", made.expect("without priorities"), 7);
        assert_eq!(class(&object), "SCHED_OTHER");
    });
}

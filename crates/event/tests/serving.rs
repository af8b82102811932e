//! What an event costs a channel that serves: no allocation, and few system calls. Each count is also checked to detect
//! one more.
//!
//! The tests have processes of their own, because whole processes are counted.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::counting::{self, THREAD_ALLOCATIONS};
use crate::raw::{Answering, Supplier};
use crate::realtime;
use crate::support::{World, counted_orb, number, wait_for};
use deckwatch_cdr::Any;
use deckwatch_event::cos_event_comm::{PushConsumer, PushConsumerPushError, PushConsumerSkeleton};
use deckwatch_event::received::{
    AnyConsumer, AnyConsumerServant, EventConsumer, EventConsumerServant, ReceivedAny,
    ReceivedEvents,
};
use deckwatch_event::{ChannelOptions, rtec_event_comm};
use deckwatch_orb::{Servant, SystemException};
use deckwatch_os::perf::{Event, EventCount};
use deckwatch_testkit::alone;

/// A channel with a supplier and consumers of bare sockets.
struct Served {
    world: World,
    supplier: Supplier,
    taken: Arc<AtomicUsize>,
    consumers: usize,
    pushed: usize,
}

impl Served {
    fn new(consumers: usize) -> Self {
        let world = World::of(counted_orb(), ChannelOptions::default());
        let taken = Arc::new(AtomicUsize::new(0));
        for _ in 0..consumers {
            let consumer = Answering::new();
            let object = consumer.object(&world.user);
            consumer.run(taken.clone());
            drop(world.connect(object));
        }
        Self::of(world, taken, consumers)
    }

    /// All consumers are of one process.
    fn together(consumers: usize) -> Self {
        let world = World::of(counted_orb(), ChannelOptions::default());
        let taken = Arc::new(AtomicUsize::new(0));
        let process = Answering::new();
        let object = process.object(&world.user);
        process.run_together(consumers, taken.clone());
        for _ in 0..consumers {
            drop(world.connect(object.clone()));
        }
        Self::of(world, taken, consumers)
    }

    fn of(world: World, taken: Arc<AtomicUsize>, consumers: usize) -> Self {
        let supplier = Supplier::new(world.supplier().object(), &number(7));
        world.server.seal();
        let mut served = Self {
            world,
            supplier,
            taken,
            consumers,
            pushed: 0,
        };
        served.push(200);
        served
    }

    /// Pushes events, each once all consumers have answered the one before.
    fn push(&mut self, count: usize) {
        for _ in 0..count {
            self.supplier.push();
            self.pushed += 1;
            let all = self.pushed * self.consumers;
            wait_for(|| self.taken.load(Ordering::SeqCst) == all);
            wait_for(|| self.world.served.counts().delivered == all as u64);
        }
    }
}

/// Asserts that `push` allocates nothing, and that one allocation more is counted. The best of some rounds counts: the
/// pool grows by a body if a thread was held up that still has the last one, and that cannot go on.
#[track_caller]
pub(crate) fn assert_allocates_nothing(name: &str, mut push: impl FnMut()) {
    const ROUNDS: usize = 4;
    let mut fewest = |also: fn()| {
        let mut round = |_| {
            let before = counting::allocations();
            push();
            also();
            counting::allocations() - before
        };
        (0..ROUNDS).map(&mut round).min()
    };
    assert_eq!(fewest(|| {}), Some(0), "{name}");
    let one = || drop(std::hint::black_box(vec![1_u8]));
    assert_eq!(fewest(one), Some(1), "{name}");
}

#[test]
fn channel_that_serves_allocates_nothing_and_an_allocation_is_counted() {
    const EVENTS: usize = 500;
    alone(|| {
        counting::start();
        for consumers in [1, 3] {
            let mut served = Served::new(consumers);
            let name = format!("{consumers} consumers");
            assert_allocates_nothing(&name, || served.push(EVENTS));
            served.world.end();
        }
    });
}

#[test]
fn push_of_a_supplier_of_the_library_allocates_nothing() {
    // The type code of a sequence is written with its parameters, which took memory once.
    let event = Any::from_value(&vec![3_u8; 384]).expect("octets");
    let world = World::new();
    let supplier = world.supplier();
    let push = |count| {
        let before = THREAD_ALLOCATIONS.get();
        for _ in 0..count {
            supplier.push(&event).expect("it is taken");
        }
        THREAD_ALLOCATIONS.get() - before
    };
    push(200);
    assert_eq!(push(500), 0);
    let before = THREAD_ALLOCATIONS.get();
    drop(std::hint::black_box(vec![1_u8]));
    assert_eq!(THREAD_ALLOCATIONS.get() - before, 1);
    world.end();
}

/// What a consumer's thread allocates between two events that it gets: all that an event takes there.
#[derive(Default)]
struct Allocations {
    /// Events that came to the thread of the event before.
    events: AtomicUsize,
    allocations: AtomicUsize,
}

thread_local! {
    /// The allocations of this thread when its last event came.
    static BEFORE: Cell<Option<usize>> = const { Cell::new(None) };
}

impl Allocations {
    fn note(&self) {
        let now = THREAD_ALLOCATIONS.get();
        if let Some(before) = BEFORE.replace(Some(now)) {
            self.allocations.fetch_add(now - before, Ordering::Relaxed);
            self.events.fetch_add(1, Ordering::Release);
        }
    }

    /// Returns the allocations of an event, rounded down, while `push` brings events.
    fn of_an_event(&self, mut push: impl FnMut()) -> usize {
        const EVENTS: usize = 500;
        let mut until = |count| {
            while self.events.load(Ordering::Acquire) < count {
                push();
            }
        };
        // Buffers grow with the first events.
        until(200);
        let before = (
            self.events.load(Ordering::Acquire),
            self.allocations.load(Ordering::Relaxed),
        );
        until(before.0 + EVENTS);
        (self.allocations.load(Ordering::Relaxed) - before.1) / EVENTS
    }
}

/// A consumer of either channel.
struct Counting(Arc<Allocations>);

impl AnyConsumer for Counting {
    fn push(&self, _event: ReceivedAny<'_>) -> Result<(), PushConsumerPushError> {
        self.0.note();
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl EventConsumer for Counting {
    fn push(&self, events: ReceivedEvents<'_>) -> Result<(), SystemException> {
        for event in events {
            assert_eq!(event?.payload, b"a few octets");
            self.0.note();
        }
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// The same behind the generated skeleton.
impl PushConsumer for Counting {
    fn push(&self, _event: &Any) -> Result<(), PushConsumerPushError> {
        self.0.note();
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn event_takes_no_memory_at_a_consumer_that_reads_it_in_its_message() {
    let event = Any::from_value(&vec![3_u8; 384]).expect("octets");
    let count = |consumer: fn(Counting) -> Arc<dyn Servant>| {
        let world = World::new();
        let counts = Arc::new(Allocations::default());
        let servant = consumer(Counting(Arc::clone(&counts)));
        let _proxy = world.connect(world.activate(servant));
        let supplier = world.supplier();
        let found = counts.of_an_event(|| supplier.push(&event).expect("it is taken"));
        world.end();
        found
    };
    assert_eq!(count(|it| Arc::new(AnyConsumerServant::new(it))), 0);
    let decoded = count(|it| Arc::new(PushConsumerSkeleton::new(it)));
    assert!(decoded > 0, "a skeleton decodes");

    let world = realtime::World::new();
    let counts = Arc::new(Allocations::default());
    let servant = EventConsumerServant::new(Counting(Arc::clone(&counts)));
    let consumer = world.activate(Arc::new(servant));
    let consumer = rtec_event_comm::PushConsumerRef::unchecked_narrow(consumer);
    let proxy = world.proxy_supplier();
    let connected = proxy.connect_push_consumer(Some(&consumer), &realtime::any_of(&[(0, 20)]));
    connected.expect("it connects");
    let supplier = world.supply(&[(1, 20)]);
    let event = [realtime::event(1, 20, "a few octets")];
    let found = counts.of_an_event(|| supplier.push(&event).expect("it is sent"));
    assert_eq!(found, 0);
    world.end();
}

/// Counters of the system calls of the threads that serve the channel; `None`: the host does not permit them.
fn counts_of_threads() -> Option<Vec<EventCount>> {
    let mut counts = Vec::new();
    for thread in deckwatch_testkit::threads(|name| name.starts_with("orb-")) {
        match EventCount::of_thread(Event::SystemCalls, thread) {
            Ok(count) => counts.push(count),
            Err(error) => {
                deckwatch_testkit::skip("perf events", &error.to_string());
                return None;
            }
        }
    }
    Some(counts)
}

#[test]
fn an_event_takes_few_system_calls_however_many_consumers_a_process_has() {
    const BATCH: u64 = 10;
    const BATCHES: u64 = 100;
    alone(|| {
        let mut served = Served::together(35);
        let Some(counts) = counts_of_threads() else {
            return;
        };
        let sum = || {
            counts
                .iter()
                .map(|count| count.read().unwrap())
                .sum::<u64>()
        };
        let batch = |served: &mut Served| {
            let before = sum();
            served.push(BATCH as usize);
            sum() - before
        };
        let least = (0..BATCHES).map(|_| batch(&mut served)).min().unwrap();
        // The lane: wait, read, write to the process, read on, answer the supplier. The I/O thread: wait, read the
        // replies, read on.
        let calls = (least + BATCH / 2) / BATCH;
        println!("{calls} system calls for an event");
        assert!((3..=9).contains(&calls), "{calls} system calls");
        served.world.end();
    });
}

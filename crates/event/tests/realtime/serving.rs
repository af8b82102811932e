//! What the real-time channel costs: no allocation for an event, and bounded memory and no thread for a consumer.
//!
//! The tests have processes of their own, because whole processes are counted.

use super::{World, any_of, event, next};
use crate::counting;
use crate::raw::{Answering, Supplier};
use crate::serving::assert_allocates_nothing;
use crate::support::{counted_orb, wait_for};
use deckwatch_event::dispatch::{Dispatching, LaneOptions, QueueOptions};
use deckwatch_event::rt::RtChannelOptions;
use deckwatch_event::rtec_event_comm::PushConsumerRef;
use deckwatch_orb::Priority;
use deckwatch_testkit::alone;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const CONSUMERS: usize = 3;

/// A channel with a supplier and consumers of bare sockets.
struct Served {
    world: World,
    supplier: Supplier,
    taken: Arc<AtomicUsize>,
    pushed: usize,
}

impl Served {
    fn new(dispatching: Dispatching) -> Self {
        let world = World::of(
            counted_orb(),
            RtChannelOptions {
                dispatching,
                allow_priority_fallback: true,
                ..RtChannelOptions::default()
            },
        );
        let taken = Arc::new(AtomicUsize::new(0));
        for _ in 0..CONSUMERS {
            let consumer = Answering::new();
            let object = PushConsumerRef::unchecked_narrow(consumer.object(&world.user));
            consumer.run(Arc::clone(&taken));
            world
                .proxy_supplier()
                .connect_push_consumer(Some(&object), &any_of(&[(0, 20)]))
                .unwrap();
        }
        let proxy = world.supply(&[(1, 20)]);
        let supplier = Supplier::new(proxy.object(), &vec![event(1, 20, "a few octets")]);
        world.server.seal();
        let mut served = Self {
            world,
            supplier,
            taken,
            pushed: 0,
        };
        served.push(200);
        served
    }

    /// Pushes events, each once all consumers have the one before.
    fn push(&mut self, count: usize) {
        for _ in 0..count {
            self.supplier.push();
            self.pushed += 1;
            let all = self.pushed * CONSUMERS;
            wait_for(|| self.taken.load(Ordering::SeqCst) == all);
            wait_for(|| self.world.served.counts().delivered == all as u64);
        }
    }
}

#[test]
fn real_time_channel_that_serves_allocates_nothing_and_an_allocation_is_counted() {
    const EVENTS: usize = 500;
    alone(|| {
        counting::start();
        let lane = LaneOptions {
            priority: Priority::new(5).expect("a priority"),
            threads: 1,
            queue: QueueOptions::default(),
        };
        for dispatching in [Dispatching::Reactive, Dispatching::Lanes(vec![lane])] {
            let name = format!("{dispatching:?}");
            let mut served = Served::new(dispatching);
            assert_allocates_nothing(&name, || served.push(EVENTS));
            served.world.end();
        }
    });
}

/// Octets of memory that an idle consumer may take in the channel.
const IDLE_CONSUMER_SIZE_MAX: usize = 4 << 10;

fn threads() -> usize {
    deckwatch_testkit::threads(|_| true).len()
}

#[test]
fn ten_thousand_idle_consumers_of_other_types_take_no_thread_and_bounded_memory() {
    const IDLE: usize = 10_000;
    alone(|| {
        counting::start();
        let world = World::with(RtChannelOptions {
            share_percent: 100,
            ..RtChannelOptions::default()
        });
        let (_proxy, sets) = world.connect(&any_of(&[(0, 20)]));
        let (idle, idle_sets) = world.consumer();
        let admin = world.channel.for_consumers().unwrap().expect("an admin");
        let supplier = world.supply(&[]);
        supplier.push(&[event(1, 20, "first")]).unwrap();
        assert_eq!(next(&sets), ["first"]);
        let (held, before) = (counting::held(), threads());
        for number in 0..IDLE {
            let proxy = admin.obtain_push_supplier().unwrap().expect("a proxy");
            let other = 100 + i32::try_from(number).expect("small");
            proxy
                .connect_push_consumer(Some(&idle), &any_of(&[(0, other)]))
                .unwrap();
        }
        let each = usize::try_from(counting::held() - held).expect("more is held") / IDLE;
        println!("{IDLE} idle consumers: {each} octets of heap each");
        assert!(each <= IDLE_CONSUMER_SIZE_MAX, "{each} octets each");
        assert!(
            each > size_of::<usize>(),
            "the count sees what is allocated"
        );
        // A lane that is busy meanwhile starts a thread or two, whatever it serves.
        assert!(threads() <= before + 4, "{before} threads before");
        supplier.push(&[event(1, 20, "second")]).unwrap();
        assert_eq!(next(&sets), ["second"]);
        supplier.push(&[event(1, 100, "one of them")]).unwrap();
        assert_eq!(next(&idle_sets), ["one of them"]);
        assert!(idle_sets.try_recv().is_err());
        world.end();
    });
}

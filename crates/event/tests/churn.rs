//! Clients that connect and disconnect as fast as they can, beside a live consumer of a channel with a store. No
//! descriptor, thread or place is left of them, and the live consumer gets every event. Of a channel without a store,
//! whose cache would be a part of the changes, the count of live allocations is compared: pools keep large buffers.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use deckwatch_cdr::Any;
use deckwatch_event::deckwatch::ChannelStatusRef;
use deckwatch_event::rt::{RtChannelOptions, RtEventChannel};
use deckwatch_event::rtec_event_comm::PushConsumerRef;
use deckwatch_event::{
    ChannelOptions, ChannelStore, EventChannel, cos_event_channel_admin as cos,
    cos_event_comm as cos_comm, rtec_event_channel_admin as rt,
};
use deckwatch_orb::{ObjectRef, Orb, Servant, SystemException};
use deckwatch_testkit::alone;

use crate::counting;
use crate::realtime::{self, event, list, next};
use crate::support::{self, PATIENCE, number, serving_orb, wait_for};

/// Clients that come and go in the counted part: each visit is four writes that reach the disk.
const VISITS: usize = 200;
/// Clients that come and go in each of the rounds between which the heap is compared.
const COUNTED_VISITS: usize = 120;
const ROUNDS: usize = 4;
/// Allocations that may be more than before: fewer than one for each visit.
const LIVE_SPARE: i64 = (COUNTED_VISITS * ROUNDS / 2) as i64;
/// Clients whose process ends without a word.
const DESERTERS: usize = 8;
/// Connections and threads that may come and go: fewer than the deserters.
const SPARE: usize = 6;

/// A channel of some kind, with one live consumer.
trait Channel: Sync {
    /// A client connects, and disconnects.
    fn visit(&self);
    /// A consumer in an ORB of its own connects, and the ORB ends.
    fn desert(&self);
    /// A proxy of each kind is obtained, and forgotten.
    fn forget(&self);
    fn push(&self, value: u32);
    fn object(&self) -> &ObjectRef;
}

/// Descriptors and threads of this process.
#[derive(Clone, Copy)]
struct Held {
    descriptors: usize,
    threads: usize,
}

impl Held {
    fn by_process() -> Self {
        let count = |of: &str| std::fs::read_dir(of).expect("Linux").count();
        Self {
            descriptors: count("/proc/self/fd"),
            threads: count("/proc/self/task"),
        }
    }

    /// Whether no visit has left anything since. An idle connection or a thread of the pools may come and go.
    fn is_all(self) -> bool {
        let now = Self::by_process();
        now.descriptors <= self.descriptors + SPARE && now.threads <= self.threads + SPARE
    }
}

/// Two threads make visits. Meanwhile `push` pushes events one by one, and checks that the live consumer gets each.
fn visit(channel: &dyn Channel, push: &dyn Fn()) {
    let left = AtomicUsize::new(2);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for number in 0..VISITS / 2 {
                    channel.visit();
                    if number % 32 == 0 {
                        channel.forget();
                    }
                }
                left.fetch_sub(1, Ordering::SeqCst);
            });
        }
        while left.load(Ordering::SeqCst) != 0 {
            push();
        }
    });
}

fn check(channel: &dyn Channel, take: &dyn Fn(u32)) {
    let status = ChannelStatusRef::narrow(channel.object()).expect("it answers");
    let status = status.expect("a channel of ours");
    let clients = || {
        let report = status.report().expect("it answers");
        (report.consumers, report.suppliers)
    };
    let value = Cell::new(0);
    let push = || {
        value.set(value.get() + 1);
        channel.push(value.get());
        take(value.get());
    };
    // A consumer that is dead is found by pushes.
    let settle = || {
        wait_for(|| {
            push();
            clients().0 == 1
        });
    };
    // What grows once has grown.
    visit(channel, &push);
    channel.desert();
    settle();
    let suppliers = clients().1;
    let before = Held::by_process();
    visit(channel, &push);
    settle();
    assert_eq!(clients(), (1, suppliers));
    wait_for(|| before.is_all());
    for _ in 0..DESERTERS {
        channel.desert();
    }
    settle();
    wait_for(|| before.is_all());
    println!("{VISITS} visits, {} events: all taken", value.get());
}

/// Has clients come and go, and waits until the heap is as it was. What a visit leaves behind adds up: it never is.
fn check_heap(channel: &dyn Channel) {
    let round = || (0..COUNTED_VISITS).for_each(|_| channel.visit());
    // What grows once has grown.
    round();
    // At one moment more calls are under way than at another.
    let lives = (0..ROUNDS).map(|_| {
        round();
        counting::live()
    });
    let before = lives.max().expect("some rounds");
    (0..ROUNDS).for_each(|_| round());
    println!("{before} allocations, then {}", counting::live());
    wait_for(|| counting::live() <= before + LIVE_SPARE);
}

/// A store in a folder of its own.
struct Stored(PathBuf);

impl Stored {
    fn new(name: &str) -> (Self, ChannelStore) {
        let name = format!("deckwatch-churn-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("writable");
        let store = ChannelStore::open(&folder.join("it")).expect("a store");
        (Self(folder), store)
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A consumer of the COS channel that keeps nothing.
struct Deaf;

impl cos_comm::PushConsumer for Deaf {
    fn push<'a>(&'a self, _: &'a Any) -> Result<(), cos_comm::PushConsumerPushError> {
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

fn deaf(orb: &Orb) -> ObjectRef {
    let servant: Arc<dyn Servant> = Arc::new(cos_comm::PushConsumerSkeleton::new(Deaf));
    let root = orb.root_poa().expect("a root adapter");
    root.servant_to_reference(&servant).expect("a reference")
}

struct Cos {
    world: support::World,
    supplier: cos::ProxyPushConsumerRef,
    visitor: ObjectRef,
}

impl Cos {
    fn new(served: EventChannel, server: Orb) -> Self {
        let world = support::World::serving(server, served);
        Self {
            supplier: world.supplier(),
            visitor: deaf(&world.user),
            world,
        }
    }

    fn check_heap(served: EventChannel, server: Orb) {
        let it = Self::new(served, server);
        check_heap(&it);
        it.world.end();
    }

    fn check(served: EventChannel, server: Orb) {
        let it = Self::new(served, server);
        let (live, events) = it.world.consumer();
        it.world.connect(live);
        check(&it, &|value| {
            assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(value)));
        });
        it.world.end();
    }
}

impl Channel for Cos {
    fn visit(&self) {
        let proxy = self.world.connect(self.visitor.clone());
        let supplier = self.world.supplier();
        proxy.disconnect_push_supplier().expect("an answer");
        supplier.disconnect_push_consumer().expect("an answer");
    }

    fn desert(&self) {
        let orb = serving_orb();
        let text = orb.object_to_string(&deaf(&orb));
        let consumer = self.world.user.string_to_object(&text).expect("an IOR");
        self.world.connect(consumer.expect("not nil"));
        orb.shutdown(true).expect("it ends");
    }

    fn forget(&self) {
        drop(self.world.obtain_push_consumer());
        drop(self.world.obtain_push_supplier());
    }

    fn push(&self, value: u32) {
        self.supplier.push(&number(value)).expect("served");
    }

    fn object(&self) -> &ObjectRef {
        self.world.channel.object()
    }
}

struct RealTime {
    world: realtime::World,
    supplier: rt::ProxyPushConsumerRef,
    visitor: PushConsumerRef,
}

impl RealTime {
    fn new(served: RtEventChannel, server: Orb) -> Self {
        let world = realtime::World::serving(server, served);
        Self {
            supplier: world.supply(&[]),
            visitor: world.consumer().0,
            world,
        }
    }

    fn check_heap(served: RtEventChannel, server: Orb) {
        let it = Self::new(served, server);
        check_heap(&it);
        it.world.end();
    }

    fn check(served: RtEventChannel, server: Orb) {
        let it = Self::new(served, server);
        let (_proxy, sets) = it.world.connect(&list(&[(0, 16)]));
        check(&it, &|value| {
            assert_eq!(next(&sets), [value.to_string()]);
        });
        it.world.end();
    }

    fn connect(&self, consumer: &PushConsumerRef) -> rt::ProxyPushSupplierRef {
        let proxy = self.world.proxy_supplier();
        let connected = proxy.connect_push_consumer(Some(consumer), &list(&[(0, 16)]));
        connected.expect("it connects");
        proxy
    }
}

impl Channel for RealTime {
    fn visit(&self) {
        let proxy = self.connect(&self.visitor);
        let supplier = self.world.supply(&[(1, 16)]);
        proxy.disconnect_push_supplier().expect("an answer");
        supplier.disconnect_push_consumer().expect("an answer");
    }

    fn desert(&self) {
        let orb = serving_orb();
        let text = orb.object_to_string(&deaf(&orb));
        let consumer = self.world.user.string_to_object(&text).expect("an IOR");
        let consumer = PushConsumerRef::unchecked_narrow(consumer.expect("not nil"));
        self.connect(&consumer);
        orb.shutdown(true).expect("it ends");
    }

    fn forget(&self) {
        drop(self.world.proxy_supplier());
    }

    fn push(&self, value: u32) {
        let event = event(1, 16, &value.to_string());
        self.supplier.push(&[event]).expect("served");
    }

    fn object(&self) -> &ObjectRef {
        self.world.channel.object()
    }
}

#[test]
fn clients_that_come_and_go_leave_nothing_in_a_cos_channel_with_a_store() {
    alone(|| {
        let (_folder, store) = Stored::new("cos");
        let orb = serving_orb();
        let served = EventChannel::start_stored(&orb, ChannelOptions::default(), store);
        Cos::check(served.expect("a channel"), orb);
    });
}

#[test]
fn clients_that_come_and_go_leave_nothing_in_a_real_time_channel_with_a_store() {
    alone(|| {
        let (_folder, store) = Stored::new("rt");
        let orb = serving_orb();
        let served = RtEventChannel::start_stored(&orb, RtChannelOptions::default(), store);
        RealTime::check(served.expect("a channel"), orb);
    });
}

#[test]
fn clients_that_come_and_go_leave_no_live_allocations_in_a_cos_channel() {
    alone(|| {
        counting::start();
        let orb = serving_orb();
        let served = EventChannel::start(&orb, ChannelOptions::default());
        Cos::check_heap(served.expect("a channel"), orb);
    });
}

#[test]
fn clients_that_come_and_go_leave_no_live_allocations_in_a_real_time_channel() {
    alone(|| {
        counting::start();
        let orb = serving_orb();
        let served = RtEventChannel::start(&orb, RtChannelOptions::default());
        RealTime::check_heap(served.expect("a channel"), orb);
    });
}

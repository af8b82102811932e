//! Consumers that read slowly or not at all: what the policies do, and that the octets of all events are bounded.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::around::Around;
use crate::raw::{Answering, CLOSE, Silent, reply};
use crate::support::{PATIENCE, World, number, wait_for};
use deckwatch_cdr::Any;
use deckwatch_event::cos_event_channel_admin::ProxyPushConsumerRef;
use deckwatch_event::{ChannelOptions, WhenFull, limits};
use deckwatch_orb::transport::Endpoint;

const QUEUE_LEN: usize = 4;

fn options(when_full: WhenFull) -> ChannelOptions {
    ChannelOptions {
        queue_len: QUEUE_LEN,
        when_full,
        ..ChannelOptions::default()
    }
}

#[test]
fn consumer_that_stops_reading_loses_events_by_count_and_delays_nobody() {
    let world = World::with(options(WhenFull::DropOldest));
    let silent = Silent::new();
    world.connect(silent.object(&world.user));
    let (fast, events) = world.consumer();
    world.connect(fast);
    let supplier = world.supplier();
    supplier.push(&number(0)).unwrap();
    silent
        .first
        .recv_timeout(PATIENCE)
        .expect("its first event");
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(0)));
    for value in 1..20 {
        supplier.push(&number(value)).unwrap();
        assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(value)));
    }
    // One push is under way, and a queue is full.
    let counts = world.served.counts();
    assert_eq!(
        (counts.displaced, counts.consumers_lost),
        (19 - QUEUE_LEN as u64, 0)
    );
    world.end();
}

#[test]
fn full_queue_that_drops_the_newest_keeps_the_beginning() {
    let world = World::with(options(WhenFull::DropNewest));
    let (leave, gate) = channel();
    let (slow, slow_events) = world.slow_consumer(gate);
    let (fast, events) = world.consumer();
    world.connect(slow);
    world.connect(fast);
    let supplier = world.supplier();
    for value in 0..20 {
        supplier.push(&number(value)).unwrap();
        assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(value)));
    }
    for _ in 0..=QUEUE_LEN {
        leave.send(()).unwrap();
    }
    for value in 0..=QUEUE_LEN as u32 {
        assert_eq!(slow_events.recv_timeout(PATIENCE), Ok(Some(value)));
    }
    assert_eq!(world.served.counts().displaced, 19 - QUEUE_LEN as u64);
    world.end();
}

/// A channel whose clock the test moves, which disconnects a consumer whose queue was full for [`PATIENT`], and a live
/// consumer of it.
struct Patient {
    clock: Arc<Around>,
    world: World,
    supplier: ProxyPushConsumerRef,
    live: Receiver<Option<u32>>,
    pushed: Cell<u32>,
}

/// Longer than a test takes on any machine.
const PATIENT: Duration = Duration::from_secs(5_000);

impl Patient {
    fn new() -> Self {
        let clock = Arc::new(Around::default());
        let options = ChannelOptions {
            push_timeout: 1_000 * PATIENT,
            ..options(WhenFull::Disconnect(PATIENT))
        };
        let world = World::over_with(clock.clone(), options);
        let (consumer, live) = world.consumer();
        world.connect(consumer);
        Self {
            clock,
            supplier: world.supplier(),
            world,
            live,
            pushed: Cell::new(0),
        }
    }

    /// Pushes an event that the live consumer gets.
    fn push(&self) {
        let value = self.pushed.replace(self.pushed.get() + 1);
        self.supplier.push(&number(value)).unwrap();
        assert_eq!(self.live.recv_timeout(PATIENCE), Ok(Some(value)));
    }

    /// More events than a queue holds.
    fn fill(&self) {
        (0..QUEUE_LEN + 2).for_each(|_| self.push());
    }

    /// The consumers that were lost, once the I/O thread has done what was left for it: it reads the reply to each of
    /// these events before the live consumer gets the next one.
    fn lost(&self) -> u64 {
        (0..3).for_each(|_| self.push());
        self.world.served.counts().consumers_lost
    }
}

#[test]
fn consumer_whose_queue_stays_full_is_disconnected_after_the_time_of_the_policy() {
    let it = Patient::new();
    let silent = Silent::new();
    let proxy = it.world.connect(silent.object(&it.world.user));
    it.push();
    silent
        .first
        .recv_timeout(PATIENCE)
        .expect("its first event");
    it.fill();
    assert_eq!(it.lost(), 0, "it has its time");
    it.clock.pass(PATIENT);
    it.push();
    wait_for(|| it.world.served.counts().consumers_lost == 1);
    wait_for(|| proxy.object().is_a("IDL:nobody/Asks:1.0").is_err());
    it.world.end();
}

#[test]
fn consumer_that_takes_an_event_has_the_time_of_the_policy_anew() {
    let it = Patient::new();
    let (leave, gate) = channel();
    let (slow, taken) = it.world.slow_consumer(gate);
    it.world.connect(slow);
    it.fill();
    it.clock.pass(PATIENT * 4 / 5);
    leave.send(()).unwrap();
    assert!(matches!(taken.recv_timeout(PATIENCE), Ok(Some(_))));
    let both = || u64::from(it.pushed.get()) + 1;
    wait_for(|| it.world.served.counts().delivered == both());
    it.fill();
    it.clock.pass(PATIENT * 4 / 5);
    it.push();
    assert_eq!(it.lost(), 0, "its queue was not full all the time");
    it.clock.pass(PATIENT);
    it.push();
    wait_for(|| it.world.served.counts().consumers_lost == 1);
    // The consumer returns from the event that it has.
    leave.send(()).unwrap();
    it.world.end();
}

/// An event with so many octets.
fn large(size: usize) -> Any {
    Any::from_value(&vec![7_u8; size]).expect("it fits")
}

#[test]
fn events_of_hundreds_of_silent_consumers_stay_within_the_channels_bound() {
    const CONSUMERS: usize = 420;
    const SIZE_MAX: usize = limits::CHANNEL_SIZE_MIN;
    let world = World::with(ChannelOptions {
        size_max: SIZE_MAX,
        ..ChannelOptions::default()
    });
    let silent: Vec<_> = (0..16).map(|_| Silent::new()).collect();
    for index in 0..CONSUMERS {
        world.connect(silent[index % silent.len()].object(&world.user));
    }
    let supplier = world.supplier();
    let event = large(SIZE_MAX / 10);
    for _ in 0..50 {
        supplier.push(&event).unwrap();
        let size = world.served.size();
        assert!(size <= SIZE_MAX, "{size} octets are held");
    }
    let counts = world.served.counts();
    assert!(counts.displaced >= 30 * CONSUMERS as u64, "{counts:?}");
    assert!(world.served.size() > SIZE_MAX / 8, "queues hold something");
    world.end();
}

#[test]
fn events_that_are_written_in_part_are_given_up_at_the_bound() {
    const EVENT: usize = 14 << 20;
    const SIZE_MAX: usize = 3 * EVENT;
    let world = World::with(ChannelOptions {
        size_max: SIZE_MAX,
        ..ChannelOptions::default()
    });
    let (supplier, event) = (world.supplier(), large(EVENT));
    // Each holds another event in the middle of its octets, beside what all have in their queues.
    let silent: Vec<_> = (0..6).map(|_| Silent::new()).collect();
    for silent in &silent {
        world.connect(silent.object(&world.user));
        supplier.push(&event).unwrap();
        silent.first.recv_timeout(PATIENCE).expect("it begins");
        assert!(world.served.size() <= SIZE_MAX);
    }
    world.end();
}

#[test]
fn event_above_the_bound_is_refused_and_costs_nobody_an_event() {
    let world = World::with(ChannelOptions {
        size_max: limits::CHANNEL_SIZE_MIN,
        ..ChannelOptions::default()
    });
    let (leave, gate) = channel();
    let (slow, events) = world.slow_consumer(gate);
    world.connect(slow);
    let supplier = world.supplier();
    for value in 0..3 {
        supplier.push(&number(value)).unwrap();
    }
    assert!(supplier.push(&large(limits::CHANNEL_SIZE_MIN)).is_err());
    for value in 0..3 {
        leave.send(()).unwrap();
        assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(value)));
    }
    assert_eq!(world.served.counts().displaced, 0);
    world.end();
}

#[test]
fn consumer_that_takes_nothing_of_its_events_is_removed() {
    let world = World::with(ChannelOptions {
        push_timeout: Duration::from_millis(100),
        ..ChannelOptions::default()
    });
    let silent = Silent::new();
    world.connect(silent.object(&world.user));
    let (supplier, event) = (world.supplier(), large(14 << 20));
    for _ in 0..limits::FAILURES_MAX {
        supplier.push(&event).unwrap();
    }
    wait_for(|| world.served.counts().consumers_lost == 1);
    wait_for(|| world.served.size() == 0);
    world.end();
}

#[test]
fn channel_ends_although_a_consumer_takes_nothing() {
    let world = World::with(ChannelOptions {
        push_timeout: Duration::from_millis(100),
        ..ChannelOptions::default()
    });
    let silent = Silent::new();
    world.connect(silent.object(&world.user));
    world.supplier().push(&large(14 << 20)).unwrap();
    world.channel.destroy().unwrap();
    wait_for(|| world.served.has_ended());
    world.end();
}

#[test]
fn consumer_whose_name_is_not_resolved_delays_nobody() {
    const EVENTS: u32 = 20;
    let (release, held) = channel::<()>();
    let (held, connects) = (Mutex::new(held), AtomicUsize::new(0));
    let transport = Around::asking(move |endpoint, _| {
        let is_named = matches!(endpoint, Endpoint::Tcp { host, .. } if host == "localhost");
        if is_named && connects.fetch_add(1, Ordering::SeqCst) != 0 {
            // Until the end of the test.
            let _ = held.lock().expect("whole").recv();
        }
        Ok(())
    });
    let world = World::over(Arc::new(transport));
    world.connect(Answering::new().close_first(&world.user));
    let (live, events) = world.consumer();
    world.connect(live);
    let supplier = world.supplier();
    for value in 0..EVENTS {
        supplier.push(&number(value)).unwrap();
        assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(value)));
    }
    wait_for(|| world.served.counts().delivered >= u64::from(EVENTS));
    drop(release);
    world.end();
}

#[test]
fn consumer_that_writes_without_end_delays_nobody() {
    let world = World::new();
    let flooding = Answering::new();
    world.connect(flooding.object(&world.user));
    // A reply that never ends: each of its fragments has no octet.
    let first = b"GIOP\x01\x02\x03\x01\x0c\0\0\0\x07\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    let again = b"GIOP\x01\x02\x03\x07\x04\0\0\0\x07\0\0\0".repeat(4_096);
    flooding.run_flooding(first, again);
    let (live, events) = world.consumer();
    world.connect(live);
    let supplier = world.supplier();
    for value in 0..20 {
        supplier.push(&number(value)).unwrap();
        assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(value)));
    }
    world.end();
}

#[test]
fn consumer_that_answers_what_it_was_not_asked_loses_its_connection() {
    let world = World::new();
    let stray = Answering::new();
    world.connect(stray.object(&world.user));
    stray.run_always(|id| {
        let mut octets = reply([0xff; 4], 0, &[]).repeat((1 << 16) + 1);
        octets.extend(reply(id, 0, &[]));
        octets
    });
    world.supplier().push(&number(0)).unwrap();
    wait_for(|| world.served.counts().failed == 1);
    assert_eq!(world.served.counts().delivered, 0);
    world.end();
}

const WINDOW: u16 = 8;

/// A channel and its consumer, which ends its connection by `last` after a window of events.
fn closing(window: u16, last: &'static [u8]) -> (World, Receiver<u32>) {
    let world = World::with(ChannelOptions {
        window,
        ..ChannelOptions::default()
    });
    let consumer = Answering::new();
    let object = consumer.object(&world.user);
    let numbers = consumer.run_closing(usize::from(window), last);
    world.connect(object);
    (world, numbers)
}

#[test]
fn unserved_pushes_of_a_window_are_one_failure_and_come_again_in_order() {
    const EVENTS: u32 = 30;
    let (world, numbers) = closing(WINDOW, CLOSE);
    let supplier = world.supplier();
    for value in 0..EVENTS {
        supplier.push(&number(value)).unwrap();
    }
    // The first eight without an answer; then all that the consumer has not served.
    for expected in (0..u32::from(WINDOW)).chain(1..EVENTS) {
        assert_eq!(numbers.recv_timeout(PATIENCE), Ok(expected));
    }
    wait_for(|| world.served.counts().delivered == u64::from(EVENTS));
    let counts = world.served.counts();
    assert_eq!((counts.displaced, counts.failed), (0, 0));
    assert_eq!(counts.consumers_lost, 0);
    world.end();
}

#[test]
fn lost_connection_loses_the_window_once_and_the_rest_comes_in_order() {
    const EVENTS: u32 = 30;
    let (world, numbers) = closing(WINDOW, b"");
    let supplier = world.supplier();
    for value in 0..u32::from(WINDOW) {
        supplier.push(&number(value)).unwrap();
    }
    let lost = u64::from(WINDOW) - 1;
    wait_for(|| world.served.counts().failed == lost);
    for value in u32::from(WINDOW)..EVENTS {
        supplier.push(&number(value)).unwrap();
    }
    for expected in 0..EVENTS {
        assert_eq!(numbers.recv_timeout(PATIENCE), Ok(expected));
    }
    wait_for(|| world.served.counts().delivered == u64::from(EVENTS) - lost);
    assert_eq!(world.served.counts().consumers_lost, 0);
    world.end();
}

#[test]
fn lie_of_a_consumer_fails_its_window_once_and_costs_nobody_else_an_event() {
    const WIDE: u16 = 256;
    const LATER: u32 = 20;
    const MESSAGE_ERROR: &[u8] = b"GIOP\x01\x02\x01\x06\0\0\0\0";
    for lie in [MESSAGE_ERROR, b"no GIOP message at all"] {
        let (world, numbers) = closing(WIDE, lie);
        let (honest, events) = world.consumer();
        world.connect(honest);
        let supplier = world.supplier();
        let push = |value| {
            supplier.push(&number(value)).unwrap();
            assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(value)));
        };
        (0..u32::from(WIDE)).for_each(push);
        wait_for(|| world.served.counts().failed == u64::from(WIDE) - 1);
        let all = 0..u32::from(WIDE) + LATER;
        all.clone().skip(usize::from(WIDE)).for_each(push);
        for expected in all {
            assert_eq!(numbers.recv_timeout(PATIENCE), Ok(expected));
        }
        let counts = world.served.counts();
        assert_eq!((counts.displaced, counts.consumers_lost), (0, 0));
        world.end();
    }
}

#[test]
fn window_of_late_replies_is_one_failure() {
    let clock = Arc::new(Around::default());
    let options = ChannelOptions {
        window: WINDOW,
        push_timeout: PATIENT,
        ..ChannelOptions::default()
    };
    let world = World::over_with(clock.clone(), options);
    let silent = Silent::new();
    world.connect(silent.object(&world.user));
    let supplier = world.supplier();
    for value in 0..u32::from(WINDOW) {
        supplier.push(&number(value)).unwrap();
    }
    silent
        .first
        .recv_timeout(PATIENCE)
        .expect("its first event");
    clock.pass(PATIENT);
    wait_for(|| world.served.counts().failed == u64::from(WINDOW));
    assert_eq!(
        world.served.counts().consumers_lost,
        0,
        "it has failed once"
    );
    world.end();
}

/// The consumer waits for a window of events before it answers them, as the peer of a slow link does: a round trip
/// delivers eight.
#[test]
fn window_of_pushes_takes_one_round_trip() {
    const ROUNDS: usize = 8;
    let world = World::with(ChannelOptions {
        window: WINDOW,
        ..ChannelOptions::default()
    });
    let (consumer, taken) = (Answering::new(), Arc::new(AtomicUsize::new(0)));
    let object = consumer.object(&world.user);
    consumer.run_together(usize::from(WINDOW), taken.clone());
    world.connect(object);
    let supplier = world.supplier();
    let events = ROUNDS * usize::from(WINDOW);
    for value in 0..events as u32 {
        supplier.push(&number(value)).unwrap();
    }
    wait_for(|| taken.load(Ordering::SeqCst) == events);
    wait_for(|| world.served.counts().delivered == events as u64);
    world.end();
}

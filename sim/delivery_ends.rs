//! What becomes of events when an outlet or its connection ends: each is counted once, whatever has ended, and one lost
//! connection does not end an outlet.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::sim::delivery::{Delivered, Ends, FAREWELL, LAST, options, two_with};
use crate::support::world::World;
use deckwatch_giop::Ior;
use deckwatch_giop::ior::alternate_address;
use deckwatch_orb::delivery::{
    Deliveries, DeliveryOptions, End, OutletOptions, OutletOwner, WhenFull,
};
use deckwatch_orb::transport::{Endpoint, StreamOptions, Transport as _};

/// Longer than the reply timeout.
const LATE: Duration = Duration::from_secs(15);

impl Delivered {
    /// One receiver, which stands still before it reads anything. One event fills the wire.
    fn stopped(window: u16) -> Self {
        Self::stopped_with(options(window, 0))
    }

    fn stopped_with(options: OutletOptions) -> Self {
        let it = two_with(1, 1, |_| options);
        it.world.narrow(30);
        it.world.stall("far", Duration::from_secs(10_000));
        it
    }

    #[track_caller]
    fn expect_all_counted(&self, offered: u64) {
        let counts = self.deliveries.counts();
        let all = counts.delivered + counts.dropped + counts.failed;
        assert_eq!(all, offered, "{counts:?}");
    }

    fn ends(&self) -> Vec<End> {
        self.ends.0.lock().unwrap().clone()
    }

    fn kept(&self) -> Vec<u32> {
        self.keepers[0].0.lock().unwrap().clone()
    }
}

#[test]
fn receiver_that_takes_nothing_of_its_events_ends_after_its_failures_in_a_row() {
    for window in [0, 1] {
        let it = Delivered::stopped(window);
        for number in 0..3 {
            assert_eq!(it.ends(), [], "window {window}: {number} have failed");
            it.offer(number);
            it.world.pass(LATE);
        }
        assert_eq!(it.ends(), [End::Failed], "window {window}");
        assert_eq!(it.deliveries.counts().failed, 3);
        assert_eq!(it.deliveries.size(), 0, "every octet is free");
        it.world.end();
    }
}

#[test]
fn outlet_that_closes_while_its_receiver_takes_nothing_has_its_end_in_time() {
    for window in [0, 1] {
        let it = Delivered::stopped(window);
        it.offer(0);
        it.world.pass(Duration::from_secs(1));
        it.outlets[0].close();
        it.world.pass(2 * LATE);
        assert_eq!(it.ends(), [End::Closed], "window {window}");
        it.expect_all_counted(1);
        it.world.end();
    }
}

#[test]
fn receiver_that_is_slow_but_takes_something_keeps_its_connection() {
    let it = two_with(1, 1, |_| options(0, 0));
    it.world.narrow(20);
    for number in 0..10 {
        it.offer(number);
    }
    for _ in 0..100 {
        it.world.stall("far", Duration::from_secs(9));
        it.world.pass(Duration::from_millis(9_010));
    }
    assert_eq!(it.kept(), (0..10).collect::<Vec<_>>());
    assert_eq!(it.deliveries.counts().failed, 0);
    it.world.end();
}

#[test]
fn outlet_survives_a_lost_connection_with_many_of_its_messages() {
    const LOST: u32 = 10;
    let it = two_with(1, 2, |number| options(0, number));
    it.world.narrow(30);
    it.world.stall("far", Duration::from_secs(1));
    for number in 0..LOST {
        it.offer(number);
    }
    it.world.pass(Duration::from_millis(1));
    it.world.reset(0);
    it.world.narrow(usize::MAX);
    it.world.pass(Duration::from_secs(2));
    it.offer(LOST);
    it.world.pass(Duration::from_secs(2));
    assert_eq!(it.ends(), []);
    for keeper in &it.keepers {
        assert_eq!(*keeper.0.lock().unwrap(), [LOST]);
    }
    it.expect_all_counted(2 * u64::from(LOST + 1));
    assert_eq!(it.deliveries.counts().delivered, 2);
    it.world.end();
}

#[test]
fn farewell_comes_behind_all_events_and_before_the_end_is_told() {
    for window in [0, 1] {
        let mut it = two_with(1, 1, |_| options(window, 0));
        it.world.narrow(30);
        for number in 0..20 {
            it.offer(number);
        }
        it.outlets[0].close();
        it.offer(20);
        it.outlets.clear();
        it.world.pass(LATE);
        assert_eq!(it.ends(), [End::Closed]);
        let all: Vec<u32> = (0..20).chain([FAREWELL]).collect();
        assert_eq!(it.kept(), all, "window {window}");
        let counts = it.deliveries.counts();
        assert_eq!(
            (counts.delivered, counts.dropped, counts.failed),
            (20, 1, 0),
            "the last was offered to a closed outlet"
        );
        it.world.end();
    }
}

#[test]
fn events_of_an_outlet_that_leaves_are_counted() {
    for window in [0, 1, 2] {
        let it = Delivered::stopped(window);
        for number in 0..10 {
            it.offer(number);
        }
        it.outlets[0].leave();
        it.offer(10);
        it.world.pass(2 * LATE);
        it.expect_all_counted(11);
        assert_eq!((it.ends(), it.deliveries.size()), (vec![], 0));
        it.world.end();
    }
}

#[test]
fn events_of_an_outlet_that_ends_by_itself_are_counted() {
    let failing = options(1, 0);
    let too_slow = OutletOptions {
        when_full: WhenFull::Disconnect(Duration::ZERO),
        queue_len: 3,
        ..options(0, 0)
    };
    for (options, end) in [(failing, End::Failed), (too_slow, End::TooSlow)] {
        let it = Delivered::stopped_with(options);
        for number in 0..10 {
            it.offer(number);
        }
        it.world.pass(4 * LATE);
        it.offer(10);
        assert_eq!(it.ends(), [end]);
        it.expect_all_counted(11);
        it.world.end();
    }
}

#[test]
fn events_of_a_receiver_that_is_gone_are_counted() {
    for window in [1, 2] {
        let it = two_with(1, 1, |_| options(window, 0));
        for number in [0, LAST, 1, 2, 3] {
            it.offer(number);
        }
        it.world.pass(LATE);
        it.offer(4);
        assert_eq!(it.ends(), [End::Gone]);
        it.expect_all_counted(6);
        it.world.end();
    }
}

#[test]
fn events_of_an_engine_that_closes_are_counted() {
    for window in [0, 1, 2] {
        let it = Delivered::stopped(window);
        for number in 0..10 {
            it.offer(number);
        }
        it.deliveries.close();
        it.offer(10);
        it.expect_all_counted(11);
        it.world.end();
    }
}

#[test]
fn one_event_gets_to_the_second_address_of_its_receiver() {
    for window in [0, 1] {
        let it = two_with(1, 1, |_| options(window, 0));
        let near = it.world.orb("another");
        it.world.refuse_later("dead");
        let profile = it.outlets[0].object().ior().iiop_profiles().next();
        let mut profile = profile.expect("a profile").expect("whole");
        profile
            .components
            .push(alternate_address(&profile.host, profile.port).expect("short"));
        profile.host = "dead".to_owned();
        let ior = Ior::with_iiop("IDL:deckwatch/Keeper:1.0", &profile).expect("a reference");
        let object = near.string_to_object(&ior.to_string()).unwrap();
        let object = object.expect("not nil");
        let deliveries = Deliveries::start(&near, DeliveryOptions::default()).unwrap();
        let owner: Weak<dyn OutletOwner> = Arc::<Ends>::downgrade(&it.ends);
        let outlet = deliveries
            .outlet(&object, options(window, 7), owner)
            .expect("an outlet");
        let event = deliveries.marshal(outlet.form(), |w| w.write_u32(5));
        outlet.offer(&event.expect("it fits"));
        it.world.pass(LATE);
        assert_eq!(it.kept(), [5], "window {window}");
        it.world.end();
    }
}

#[test]
fn reply_that_arrives_while_the_thread_is_held_up_is_not_overdue() {
    let it = two_with(1, 3, |number| OutletOptions {
        is_private: true,
        ..options(1, number)
    });
    it.offer(0);
    it.world.stall("near", LATE);
    it.world.pass(2 * LATE);
    let counts = it.deliveries.counts();
    assert_eq!((counts.delivered, counts.failed), (3, 0));
    it.world.end();
}

#[test]
fn farewell_that_is_under_way_when_its_outlet_leaves_counts_as_no_event() {
    for window in [1, 2] {
        let it = two_with(1, 1, |_| options(window, 0));
        it.offer(0);
        it.world.pass(LATE);
        it.outlets[0].close();
        // Its receiver has not answered yet.
        it.outlets[0].leave();
        it.world.pass(LATE);
        assert_eq!((it.kept(), it.ends()), (vec![0, FAREWELL], vec![]));
        it.expect_all_counted(1);
        it.world.end();
    }
}

#[test]
fn events_in_front_of_a_farewell_are_counted_after_a_failure_too() {
    let it = Delivered::stopped(0);
    it.offer(0);
    it.world.pass(Duration::from_millis(1));
    // The connection is lost with an event: the next settled one ends the row of failures.
    it.world.reset(0);
    it.world.pass(Duration::from_secs(1));
    it.offer(1);
    it.offer(2);
    it.outlets[0].close();
    it.world.narrow(usize::MAX);
    it.world.stall("far", Duration::ZERO);
    it.world.pass(LATE);
    assert_eq!(
        (it.kept(), it.ends()),
        (vec![1, 2, FAREWELL], vec![End::Closed])
    );
    let counts = it.deliveries.counts();
    assert_eq!((counts.delivered, counts.failed), (2, 1));
    it.world.end();
}

#[test]
fn peer_that_always_has_written_more_leaves_others_their_turn() {
    const CHUNKS: usize = 1_000;
    // A reply that never ends: each of its fragments has no octet.
    const FIRST: &[u8] = b"GIOP\x01\x02\x03\x01\x0c\0\0\0\x07\0\0\0\0\0\0\0\0\0\0\0";
    const AGAIN: &[u8] = b"GIOP\x01\x02\x03\x07\x04\0\0\0\x07\0\0\0";
    let world = World::new(1, (1_000, 1_000));
    let near = world.orb("near");
    let at = Endpoint::tcp("flooding", 2809);
    let listener = world.listen(&at, &StreamOptions::default()).unwrap();
    let deliveries = Deliveries::start(&near, DeliveryOptions::default()).unwrap();
    let object = near.string_to_object("corbaloc:iiop:1.2@flooding:2809/it");
    let object = object.unwrap().expect("not nil");
    let ends = Arc::<Ends>::default();
    let owner: Weak<dyn OutletOwner> = Arc::<Ends>::downgrade(&ends);
    let outlet = deliveries.outlet(&object, options(1, 0), owner).unwrap();
    world.pass(Duration::from_millis(1));
    let flooding = listener.accept().unwrap().expect("it has connected");
    world.stall("near", Duration::from_millis(1));
    assert_eq!(flooding.write_now(FIRST), Ok(FIRST.len()));
    for _ in 0..CHUNKS {
        // Each is a read.
        assert_eq!(flooding.write_now(AGAIN), Ok(AGAIN.len()));
    }
    world.pass(Duration::from_micros(500));
    let unread = world.unread();
    assert_eq!(unread, FIRST.len() + CHUNKS * AGAIN.len());
    assert!(near.turn(Some(Duration::ZERO)));
    assert!(
        world.unread() > unread / 2,
        "{} octets are left",
        world.unread()
    );
    world.pass(Duration::from_secs(1));
    assert_eq!(world.unread(), 0, "all in turn");
    drop((flooding, outlet));
    world.end();
}

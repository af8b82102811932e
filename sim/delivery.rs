//! Deliveries of one ORB to objects of another, in virtual time: what is offered arrives once and in order, however
//! narrow the wire is and whatever is reset on it.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use crate::support::seen_by;
use crate::support::world::World;
use deckwatch_orb::delivery::{
    Batch, Deliveries, DeliveryOptions, End, Outlet, OutletOptions, OutletOwner, WhenFull,
};
use deckwatch_orb::{
    Completion, Orb, Servant, ServerRequest, SystemException, SystemExceptionKind,
};

/// Keeps the numbers that arrive.
#[derive(Default)]
pub(super) struct Keeper(pub(super) Mutex<Vec<u32>>);

/// What a keeper keeps of a farewell.
pub(super) const FAREWELL: u32 = u32::MAX;
/// A keeper that gets it raises OBJECT_NOT_EXIST.
pub(super) const LAST: u32 = u32::MAX - 1;

impl Servant for Keeper {
    fn repository_ids(&self) -> &'static [&'static str] {
        &["IDL:deckwatch/Keeper:1.0"]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let number = match request.operation() {
            b"end" => FAREWELL,
            _ => request.arguments().read_u32()?,
        };
        if number == LAST {
            let kind = SystemExceptionKind::ObjectNotExist;
            return Err(SystemException::new(kind, 0, Completion::No));
        }
        self.0.lock().unwrap().push(number);
        request.reply().map(drop)
    }
}

/// Keeps why outlets have ended.
#[derive(Default)]
pub(super) struct Ends(pub(super) Mutex<Vec<End>>);

impl OutletOwner for Ends {
    fn outlet_ended(&self, _: &Arc<Outlet>, why: End) {
        self.0.lock().unwrap().push(why);
    }
}

pub(super) fn options(window: u16, number: u64) -> OutletOptions {
    OutletOptions {
        number,
        operation: "keep",
        farewell: Some("end"),
        window,
        queue_len: 1_000,
        queue_size_max: 1 << 20,
        when_full: WhenFull::DropOldest,
        priority: None,
        is_private: false,
        failures_max: 3,
        final_exceptions: &[],
    }
}

pub(super) struct Delivered {
    pub(super) world: World,
    pub(super) deliveries: Deliveries,
    pub(super) keepers: Vec<Arc<Keeper>>,
    pub(super) outlets: Vec<Arc<Outlet>>,
    pub(super) ends: Arc<Ends>,
}

fn two(seed: u64, window: u16, receivers: u64) -> Delivered {
    two_with(seed, receivers, |number| options(window, number))
}

pub(super) fn two_with(
    seed: u64,
    receivers: u64,
    options: impl Fn(u64) -> OutletOptions,
) -> Delivered {
    let world = World::new(seed, (1_000, 900_000));
    let (near, far): (Orb, Orb) = (world.orb("near"), world.orb("far"));
    let deliveries = Deliveries::start(&near, DeliveryOptions::default()).unwrap();
    let root = far.root_poa().unwrap();
    root.the_poa_manager().activate().unwrap();
    let ends = Arc::new(Ends::default());
    let (mut keepers, mut outlets) = (Vec::new(), Vec::new());
    for number in 0..receivers {
        let keeper = Arc::new(Keeper::default());
        let servant: Arc<dyn Servant> = keeper.clone();
        let object = seen_by(&near, &root.servant_to_reference(&servant).unwrap());
        let owner: Arc<dyn OutletOwner> = ends.clone();
        let owner: Weak<dyn OutletOwner> = Arc::downgrade(&owner);
        outlets.push(deliveries.outlet(&object, options(number), owner).unwrap());
        keepers.push(keeper);
    }
    Delivered {
        world,
        deliveries,
        keepers,
        outlets,
        ends,
    }
}

impl Delivered {
    pub(super) fn offer(&self, number: u32) {
        let form = self.outlets[0].form();
        let event = self
            .deliveries
            .marshal(form, |w| w.write_u32(number))
            .unwrap();
        let mut batch = Batch::new();
        for outlet in &self.outlets {
            outlet.offer_in(&event, &mut batch);
        }
    }
}

#[test]
fn what_is_offered_arrives_once_and_in_order_over_a_narrow_wire() {
    const EVENTS: u32 = 40;
    for seed in 0..200 {
        for window in [0, 1] {
            let it = two(seed, window, 3);
            it.world.narrow(30 + 7 * (seed as usize % 13));
            for number in 0..EVENTS {
                it.offer(number);
                if number % 5 == 0 {
                    it.world.pass(Duration::from_micros(seed % 700));
                }
            }
            it.world.pass(Duration::from_secs(5));
            for keeper in &it.keepers {
                let kept = keeper.0.lock().unwrap().clone();
                assert_eq!(
                    kept,
                    (0..EVENTS).collect::<Vec<_>>(),
                    "seed {seed}, window {window}"
                );
            }
            let counts = it.deliveries.counts();
            let all = u64::from(EVENTS) * it.keepers.len() as u64;
            assert_eq!(
                (counts.delivered, counts.failed, counts.dropped),
                (all, 0, 0)
            );
            assert_eq!(it.deliveries.connections(), 1);
            assert_eq!(it.deliveries.size(), 0, "every octet is free");
            it.world.end();
        }
    }
}

#[test]
fn after_a_reset_each_event_has_arrived_once_or_is_counted_as_failed() {
    const EVENTS: u32 = 40;
    for seed in 0..200 {
        let it = two(seed, 1, 2);
        for number in 0..EVENTS {
            it.offer(number);
            it.world.pass(Duration::from_micros(300));
            if number == 7 + seed as u32 % 20 {
                it.world.reset(seed as usize);
            }
        }
        it.world.pass(Duration::from_secs(60));
        let counts = it.deliveries.counts();
        let mut arrived = 0;
        for keeper in &it.keepers {
            let kept = keeper.0.lock().unwrap().clone();
            assert!(
                kept.is_sorted() && kept.windows(2).all(|two| two[0] != two[1]),
                "seed {seed}"
            );
            assert_eq!(kept.last(), Some(&(EVENTS - 1)), "seed {seed}");
            arrived += kept.len() as u64;
        }
        let all = u64::from(EVENTS) * it.keepers.len() as u64;
        assert_eq!(counts.delivered + counts.failed, all, "seed {seed}");
        // A failed one may have been served before its reply was lost.
        assert!(
            arrived >= counts.delivered && counts.failed <= 2,
            "seed {seed}: {counts:?}"
        );
        assert_eq!(it.deliveries.size(), 0, "every octet is free");
        assert_eq!(*it.ends.0.lock().unwrap(), []);
        it.world.end();
    }
}

#[test]
fn receiver_that_never_answers_ends_after_its_failures_in_a_row() {
    let it = two(1, 1, 1);
    it.offer(0);
    it.world.pass(Duration::from_secs(1));
    it.world.cut();
    for number in 1..4 {
        it.offer(number);
    }
    it.world.pass(Duration::from_secs(29));
    assert_eq!(*it.ends.0.lock().unwrap(), [], "two have failed");
    it.world.pass(Duration::from_secs(10));
    assert_eq!(*it.ends.0.lock().unwrap(), [End::Failed]);
    assert_eq!(it.deliveries.counts().failed, 3);
    it.world.end();
}

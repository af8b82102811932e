//! What observers are told.

use super::{World, any_of, list};
use crate::support::{PATIENCE, wait_for};
use deckwatch_event::filter::designator::{DISJUNCTION, NEGATION};
use deckwatch_event::rtec_event_channel_admin::{
    ConsumerQOS, EventChannelRemoveObserverError, Observer, ObserverRef, ObserverSkeleton,
    SupplierQOS,
};
use deckwatch_orb::{Completion, SystemException, SystemExceptionKind as Kind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// What an observer is told: "C" or "S", and (source, type) of each header.
pub(super) type Update = (char, Vec<(i32, i32)>);

/// Raises an exception in place of the next so many answers.
#[derive(Default)]
struct Failing(AtomicUsize);

struct Watcher(Mutex<Sender<Update>>, Arc<Failing>);

impl Watcher {
    fn tell(&self, update: Update) -> Result<(), SystemException> {
        let left = |count: usize| count.checked_sub(1);
        if self.1.0.fetch_update(SeqCst, SeqCst, left).is_ok() {
            return Err(SystemException::new(Kind::Internal, 0, Completion::No));
        }
        let _ = self.0.lock().expect("whole").send(update);
        Ok(())
    }
}

impl Observer for Watcher {
    fn update_consumer(&self, sub: &ConsumerQOS) -> Result<(), SystemException> {
        let group = &sub.dependencies[0].event.header;
        assert_eq!(group.r#type, DISJUNCTION);
        assert_eq!(group.source as usize, sub.dependencies.len() - 1);
        let headers = sub.dependencies[1..].iter();
        let headers = headers.map(|each| (each.event.header.source, each.event.header.r#type));
        self.tell(('C', headers.collect()))
    }

    fn update_supplier(&self, r#pub: &SupplierQOS) -> Result<(), SystemException> {
        let headers = r#pub.publications.iter();
        let headers = headers.map(|each| (each.event.header.source, each.event.header.r#type));
        self.tell(('S', headers.collect()))
    }
}

/// An observer, and what it is told.
pub(super) fn watcher(world: &World) -> (ObserverRef, Receiver<Update>) {
    let (sender, updates) = channel();
    let watcher = Watcher(Mutex::new(sender), Arc::default());
    let watcher = world.activate(Arc::new(ObserverSkeleton::new(watcher)));
    (ObserverRef::unchecked_narrow(watcher), updates)
}

/// Waits for an update. Earlier states may come first.
#[track_caller]
pub(super) fn await_update(updates: &Receiver<Update>, expected: &Update) {
    while updates.recv_timeout(PATIENCE).expect("an update") != *expected {}
}

#[test]
fn observer_is_told_the_state_and_each_change_but_not_of_gateways() {
    let world = World::new();
    let (early, _) = world.connect(&any_of(&[(1, 20), (0, 21)]));
    let (watcher, updates) = watcher(&world);
    let handle = world.channel.append_observer(Some(&watcher)).unwrap();
    let next = || updates.recv_timeout(PATIENCE).expect("an update");
    assert_eq!(next(), ('C', vec![(0, 21), (1, 20)]));
    assert_eq!(next(), ('S', vec![]));

    let supplier = world.supply(&[(2, 30), (2, 30), (2, 31)]);
    await_update(&updates, &('S', vec![(2, 30), (2, 31)]));
    let mut gateway = any_of(&[(0, 40)]);
    gateway.is_gateway = true;
    let _unseen = world.connect(&gateway);
    let (_all, _) = world.connect(&list(&[(0, NEGATION), (0, 20)]));
    await_update(&updates, &('C', vec![(0, 0), (0, 21), (1, 20)]));
    early.disconnect_push_supplier().unwrap();
    await_update(&updates, &('C', vec![(0, 0)]));
    supplier.disconnect_push_consumer().unwrap();
    await_update(&updates, &('S', vec![]));

    world.channel.remove_observer(handle).unwrap();
    let again = world.channel.remove_observer(handle);
    assert!(matches!(
        again,
        Err(EventChannelRemoveObserverError::CANTREMOVEOBSERVER(_))
    ));
    world.end();
}

#[test]
fn observer_that_fails_once_is_told_the_change_again() {
    let world = World::new();
    let (sender, updates) = channel();
    let failing = Arc::<Failing>::default();
    let watcher = Watcher(Mutex::new(sender), Arc::clone(&failing));
    let watcher = world.activate(Arc::new(ObserverSkeleton::new(watcher)));
    let watcher = ObserverRef::unchecked_narrow(watcher);
    world.channel.append_observer(Some(&watcher)).unwrap();
    let next = || updates.recv_timeout(PATIENCE).expect("an update");
    assert_eq!(next(), ('C', vec![]));
    assert_eq!(next(), ('S', vec![]));
    for (failures, event_type) in [(1, 20), (2, 21)] {
        failing.0.store(failures, SeqCst);
        let _supplier = world.supply(&[(1, event_type)]);
        let published = (20..=event_type).map(|event_type| (1, event_type));
        assert_eq!(next(), ('S', published.collect()));
    }
    assert_eq!(world.served.counts().observers_lost, 0);
    world.end();
}

/// An observer that no longer exists, and how often it was called.
struct Left(Arc<AtomicUsize>);

impl Left {
    fn refuse(&self) -> Result<(), SystemException> {
        self.0.fetch_add(1, SeqCst);
        Err(SystemException::new(
            Kind::ObjectNotExist,
            0,
            Completion::No,
        ))
    }
}

impl Observer for Left {
    fn update_consumer(&self, _: &ConsumerQOS) -> Result<(), SystemException> {
        self.refuse()
    }

    fn update_supplier(&self, _: &SupplierQOS) -> Result<(), SystemException> {
        self.refuse()
    }
}

#[test]
fn observer_that_is_gone_or_always_fails_is_removed_and_counted() {
    let world = World::new();
    let (stays, updates) = watcher(&world);
    world.channel.append_observer(Some(&stays)).unwrap();
    let poa = world.user.root_poa().unwrap();
    let (gone, _) = watcher(&world);
    let id = poa.reference_to_id(gone.object()).unwrap();
    poa.deactivate_object(&id).unwrap();
    let gone = world.channel.append_observer(Some(&gone)).unwrap();
    wait_for(|| world.served.counts().observers_lost == 1);
    // One whose servant says that it is gone is not asked again.
    let asked = Arc::<AtomicUsize>::default();
    let left = world.activate(Arc::new(ObserverSkeleton::new(Left(Arc::clone(&asked)))));
    let left = ObserverRef::unchecked_narrow(left);
    world.channel.append_observer(Some(&left)).unwrap();
    wait_for(|| world.served.counts().observers_lost == 2);
    assert_eq!(asked.load(SeqCst), 1);
    let failing = Arc::new(Failing(AtomicUsize::new(usize::MAX)));
    let failing = Watcher(Mutex::new(channel().0), failing);
    let failing = world.activate(Arc::new(ObserverSkeleton::new(failing)));
    let failing = ObserverRef::unchecked_narrow(failing);
    let failing = world.channel.append_observer(Some(&failing)).unwrap();
    wait_for(|| world.served.counts().observers_lost == 3);
    for handle in [gone, failing] {
        assert!(world.channel.remove_observer(handle).is_err());
    }
    let _supplier = world.supply(&[(1, 20)]);
    await_update(&updates, &('S', vec![(1, 20)]));
    world.end();
}

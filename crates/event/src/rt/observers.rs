//! Observers: notified of what consumers subscribe to and suppliers publish.
//!
//! One thread calls them, so that no connect waits for an observer. Changes that come faster than an observer answers
//! are sent as one.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::{Arc, Weak};

use deckwatch_orb::{Identity, SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::{Bell, PiMutex};

use super::shared::Shared;
use crate::gate::Gate;
use crate::limits::{FAILURES_MAX, OBSERVER_TIMEOUT, OBSERVERS_MAX};
use crate::peers::Place;
use crate::raise::raise;
use crate::rtec_event_channel_admin::ObserverRef;

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Consumers = 1,
    Suppliers = 2,
}

const BOTH: u8 = 3;

/// The observers of one channel.
#[derive(Default)]
pub(super) struct Observers {
    list: PiMutex<List>,
    bell: Bell,
    has_thread: AtomicBool,
    is_closed: AtomicBool,
}

#[derive(Default)]
struct List {
    last: u32,
    observers: BTreeMap<u32, Observer>,
}

struct Observer {
    reference: ObserverRef,
    /// Who appended it; `None` for this process.
    client: Option<Identity>,
    /// Its place in the share of its peer.
    _place: Place,
    /// [`Change`]s that it has not been told.
    owed: u8,
    failures: u32,
}

impl Observers {
    /// Adds an observer of a client (`None`: this process), which is told the present state first. `place`: its place
    /// in the share of its peer. Returns its handle; `None` if there are too many.
    ///
    /// # Errors
    /// NO_RESOURCES without a thread.
    pub(super) fn append(
        self: &Arc<Self>,
        shared: &Weak<Shared>,
        (reference, client): (&ObserverRef, Option<Identity>),
        place: Place,
    ) -> Result<Option<u32>, SystemException> {
        if !self.has_thread.swap(true, AcqRel) {
            let (own, shared) = (Arc::clone(self), Weak::clone(shared));
            let started = std::thread::Builder::new()
                .name("rt-observers".to_owned())
                .spawn(move || own.serve(&shared));
            if started.is_err() {
                self.has_thread.store(false, Release);
                return Err(raise(Kind::NoResources));
            }
        }
        let object = reference
            .object()
            .with_round_trip_timeout(Some(OBSERVER_TIMEOUT));
        let handle = {
            let mut list = self.list.lock("rt.observers");
            if list.observers.len() >= OBSERVERS_MAX {
                return Ok(None);
            }
            list.last = list.last.wrapping_add(1);
            let handle = list.last;
            let observer = Observer {
                reference: ObserverRef::unchecked_narrow(object),
                client,
                _place: place,
                owed: BOTH,
                failures: 0,
            };
            list.observers.insert(handle, observer);
            handle
        };
        self.bell.ring();
        Ok(Some(handle))
    }

    /// Returns false for an unknown handle.
    pub(super) fn remove(&self, handle: u32) -> bool {
        let mut list = self.list.lock("rt.observers");
        list.observers.remove(&handle).is_some()
    }

    /// Removes the observers whose client the table in force does not permit to observe. Returns their number.
    pub(super) fn remove_refused(&self, gate: &Gate) -> usize {
        let mut list = self.list.lock("rt.observers");
        let before = list.observers.len();
        list.observers
            .retain(|_, observer| gate.may_observe(observer.client.as_ref()));
        before - list.observers.len()
    }

    /// Queues a change for the observers.
    pub(super) fn note(&self, change: Change) {
        if self.has_thread.load(Acquire) {
            let mut list = self.list.lock("rt.observers");
            let observers = list.observers.values_mut();
            observers.for_each(|observer| observer.owed |= change as u8);
            drop(list);
            self.bell.ring();
        }
    }

    pub(super) fn close(&self) {
        self.is_closed.store(true, Release);
        self.bell.ring();
    }

    fn serve(&self, shared: &Weak<Shared>) {
        loop {
            let turn = self.bell.turn();
            if self.is_closed.load(Acquire) {
                return;
            }
            let mut retry_ns = None;
            for (handle, observer, owed) in self.take_owed() {
                let Some(shared) = shared.upgrade() else {
                    return;
                };
                let left = tell(&shared, &observer, owed);
                if self.settle(&shared, handle, left) {
                    let pause_ns = OBSERVER_TIMEOUT.as_nanos() as u64;
                    retry_ns = Some(shared.now_ns().saturating_add(pause_ns));
                }
            }
            self.bell.wait_until(turn, retry_ns);
        }
    }

    /// The observers that are owed changes, and these changes.
    fn take_owed(&self) -> Vec<(u32, ObserverRef, u8)> {
        let mut list = self.list.lock("rt.observers");
        let owed = list
            .observers
            .iter_mut()
            .filter(|(_, observer)| observer.owed != 0);
        owed.map(|(handle, observer)| {
            let owed = std::mem::take(&mut observer.owed);
            (*handle, observer.reference.clone(), owed)
        })
        .collect()
    }

    /// Counts the failures of an observer; too many in a row remove it. `left`: the changes that it was not told, and
    /// why. Returns whether it is to be told again.
    fn settle(
        &self,
        shared: &Shared,
        handle: u32,
        left: Result<(), (u8, SystemException)>,
    ) -> bool {
        let mut list = self.list.lock("rt.observers");
        let Some(observer) = list.observers.get_mut(&handle) else {
            return false;
        };
        let Err((owed, error)) = left else {
            observer.failures = 0;
            return false;
        };
        observer.owed |= owed;
        observer.failures += 1;
        let is_final = matches!(error.kind, Kind::ObjectNotExist | Kind::BadOperation);
        if is_final || observer.failures >= FAILURES_MAX {
            list.observers.remove(&handle);
            shared.count_observer_lost();
            return false;
        }
        true
    }
}

/// Tells an observer what it is owed. Returns what is left if it fails.
fn tell(shared: &Shared, observer: &ObserverRef, owed: u8) -> Result<(), (u8, SystemException)> {
    if owed & Change::Consumers as u8 != 0 {
        let told = observer.update_consumer(&shared.subscriptions());
        told.map_err(|error| (owed, error))?;
    }
    if owed & Change::Suppliers as u8 != 0 {
        let told = observer.update_supplier(&shared.publications());
        told.map_err(|error| (Change::Suppliers as u8, error))?;
    }
    Ok(())
}

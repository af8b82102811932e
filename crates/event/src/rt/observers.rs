//! Observers: notified of what consumers subscribe to and suppliers publish.
//!
//! One thread calls them, so that no connect waits for an observer. Changes that come faster than an observer answers
//! are sent as one.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicU8};
use std::sync::{Arc, Weak};

use deckwatch_orb::{SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::{Bell, PiMutex};

use super::shared::Shared;
use crate::limits::{FAILURES_MAX, OBSERVER_TIMEOUT, OBSERVERS_MAX};
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
    /// [`Change`]s that no observer has been told.
    changes: AtomicU8,
    bell: Bell,
    has_thread: AtomicBool,
    is_closed: AtomicBool,
}

#[derive(Default)]
struct List {
    last: u32,
    observers: BTreeMap<u32, Observer>,
}

#[derive(Clone)]
struct Observer {
    reference: ObserverRef,
    /// It has been told nothing yet.
    is_new: bool,
    failures: u32,
}

impl Observers {
    /// Adds an observer, which is told the present state first. Returns its handle; `None` if there are too many.
    ///
    /// # Errors
    /// NO_RESOURCES without a thread.
    pub(super) fn append(
        self: &Arc<Self>,
        shared: &Weak<Shared>,
        reference: &ObserverRef,
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
                is_new: true,
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

    /// Queues a change for the observers.
    pub(super) fn note(&self, change: Change) {
        if self.has_thread.load(Acquire) {
            self.changes.fetch_or(change as u8, AcqRel);
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
            let changes = self.changes.swap(0, AcqRel);
            let observers = self.list.lock("rt.observers").observers.clone();
            for (handle, observer) in observers {
                let changes = if observer.is_new { BOTH } else { changes };
                let Some(shared) = shared.upgrade() else {
                    return;
                };
                if changes != 0 {
                    let answered = tell(&shared, &observer.reference, changes);
                    self.settle(&shared, handle, answered);
                }
            }
            if self.changes.load(Acquire) == 0 {
                self.bell.wait(turn);
            }
        }
    }

    /// Counts the failures of an observer; too many in a row remove it.
    fn settle(&self, shared: &Shared, handle: u32, answered: Result<(), SystemException>) {
        let mut list = self.list.lock("rt.observers");
        let Some(observer) = list.observers.get_mut(&handle) else {
            return;
        };
        let is_gone = match answered {
            Ok(()) => {
                observer.is_new = false;
                observer.failures = 0;
                false
            }
            Err(error) => {
                observer.failures += 1;
                let is_final = matches!(error.kind, Kind::ObjectNotExist | Kind::BadOperation);
                is_final || observer.failures >= FAILURES_MAX
            }
        };
        if is_gone {
            list.observers.remove(&handle);
            shared.count_observer_lost();
        } else if list.observers[&handle].failures > 0 {
            // It is told again, with the next change or at once if it is new.
            self.bell.ring();
        }
    }
}

fn tell(shared: &Shared, observer: &ObserverRef, changes: u8) -> Result<(), SystemException> {
    if changes & Change::Consumers as u8 != 0 {
        observer.update_consumer(&shared.subscriptions())?;
    }
    if changes & Change::Suppliers as u8 != 0 {
        observer.update_supplier(&shared.publications())?;
    }
    Ok(())
}

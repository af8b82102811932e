//! The thread that fires the timeouts of all filters of a channel.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::{Arc, Weak};

use deckwatch_orb::{SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::{Bell, PiMutex};

use super::shared::Shared;
use crate::raise::raise;

/// When which consumer has a timeout that may fire. A deadline may have moved meanwhile: the consumer knows.
#[derive(Default)]
pub(super) struct Timeouts {
    due: PiMutex<BTreeSet<(u64, u64)>>,
    bell: Bell,
    has_thread: AtomicBool,
    is_closed: AtomicBool,
}

impl Timeouts {
    /// Has a consumer fired at a time. The first use starts the thread.
    ///
    /// # Errors
    /// NO_RESOURCES without a thread.
    pub(super) fn watch(
        self: &Arc<Self>,
        shared: &Weak<Shared>,
        due_ns: u64,
        number: u64,
    ) -> Result<(), SystemException> {
        if !self.has_thread.swap(true, AcqRel) {
            let (own, shared) = (Arc::clone(self), Weak::clone(shared));
            let started = std::thread::Builder::new()
                .name("rt-timeouts".to_owned())
                .spawn(move || own.serve(&shared));
            if started.is_err() {
                self.has_thread.store(false, Release);
                return Err(raise(Kind::NoResources));
            }
        }
        self.due.lock("rt.timeouts").insert((due_ns, number));
        self.bell.ring();
        Ok(())
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
            let next = {
                let Some(shared) = shared.upgrade() else {
                    return;
                };
                self.fire_due(&shared)
            };
            self.bell.wait_until(turn, next);
        }
    }

    /// Fires what is due. Returns when the next is.
    fn fire_due(&self, shared: &Shared) -> Option<u64> {
        loop {
            let now_ns = shared.now_ns();
            let first = {
                let mut due = self.due.lock("rt.timeouts");
                match due.first() {
                    Some((due_ns, _)) if *due_ns <= now_ns => due.pop_first(),
                    first => return first.map(|(due_ns, _)| *due_ns),
                }
            };
            // A consumer that has left is not found.
            if let Some(consumer) = first.and_then(|(_, number)| shared.consumer(number)) {
                consumer.fire(shared, now_ns);
                if let Some(next_ns) = consumer.next_due_ns() {
                    self.due
                        .lock("rt.timeouts")
                        .insert((next_ns, consumer.number));
                }
            }
        }
    }
}

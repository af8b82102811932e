//! The thread that fires the timeouts of all filters of a channel.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::{Arc, Weak};

use deckwatch_orb::{SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::{Bell, PiMutex};

use super::shared::Shared;
use crate::raise::raise;

/// When which consumer has a timeout that may fire. A deadline may have moved meanwhile: the consumer knows.
pub(super) struct Timeouts {
    /// Gives the thread its priority: that of the most urgent lane, or of the thread that started the channel.
    prepare: Box<dyn Fn() -> Result<(), SystemException> + Send + Sync>,
    due: PiMutex<Due>,
    bell: Bell,
    has_thread: AtomicBool,
    is_closed: AtomicBool,
}

/// One time for each consumer that has timeouts.
#[derive(Default)]
struct Due {
    first: BTreeSet<(u64, u64)>,
    by_number: HashMap<u64, u64>,
}

impl Due {
    fn set(&mut self, number: u64, due_ns: Option<u64>) {
        if let Some(before_ns) = self.by_number.remove(&number) {
            self.first.remove(&(before_ns, number));
        }
        if let Some(due_ns) = due_ns {
            self.by_number.insert(number, due_ns);
            self.first.insert((due_ns, number));
        }
    }
}

impl Timeouts {
    /// If `is_by_hand`, there is no thread: the owner calls [`Timeouts::fire_due`].
    pub(super) fn new(
        is_by_hand: bool,
        prepare: Box<dyn Fn() -> Result<(), SystemException> + Send + Sync>,
    ) -> Self {
        Self {
            prepare,
            due: PiMutex::default(),
            bell: Bell::default(),
            has_thread: AtomicBool::new(is_by_hand),
            is_closed: AtomicBool::new(false),
        }
    }

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
        self.due.lock("rt.timeouts").set(number, Some(due_ns));
        self.bell.ring();
        Ok(())
    }

    pub(super) fn forget(&self, number: u64) {
        self.due.lock("rt.timeouts").set(number, None);
    }

    pub(super) fn close(&self) {
        self.is_closed.store(true, Release);
        self.bell.ring();
    }

    fn serve(&self, shared: &Weak<Shared>) {
        // The threads of the lanes have been given theirs: a refusal here was counted there.
        let _ = (self.prepare)();
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
    pub(super) fn fire_due(&self, shared: &Shared) -> Option<u64> {
        loop {
            let now_ns = shared.now_ns();
            let number = {
                let mut due = self.due.lock("rt.timeouts");
                match due.first.first().copied() {
                    Some((due_ns, number)) if due_ns <= now_ns => {
                        due.set(number, None);
                        number
                    }
                    first => return first.map(|(due_ns, _)| due_ns),
                }
            };
            // A consumer that has left is not found.
            if let Some(consumer) = shared.consumer(number) {
                consumer.fire(shared, now_ns);
                if let Some(next_ns) = consumer.next_due_ns() {
                    let mut due = self.due.lock("rt.timeouts");
                    // A consumer that has connected again meanwhile has its own time.
                    if !due.by_number.contains_key(&number) {
                        due.set(number, Some(next_ns));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use deckwatch_orb::Orb;

    use super::*;
    use crate::gate::Gate;
    use crate::home::Home;
    use crate::rt::RtChannelOptions;

    fn wait_for(what: impl Fn() -> bool) {
        let begun = Instant::now();
        while !what() {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "it does not come"
            );
            std::thread::yield_now();
        }
    }

    #[test]
    fn thread_that_waits_for_nothing_ends_when_it_is_closed() {
        let orb = Orb::builder().build().expect("an ORB");
        let home = Home::transient(&orb, Gate::new(&orb, None, true)).expect("a home");
        let shared = Shared::new(home, &orb, RtChannelOptions::default()).expect("a channel");
        let timeouts = Arc::new(Timeouts::new(false, Box::new(|| Ok(()))));
        let watched = timeouts.watch(&shared.own(), 0, 1);
        watched.expect("a thread");
        // It has taken the one time that there was, and holds the timeouts.
        wait_for(|| timeouts.due.lock("rt.timeouts").first.is_empty());
        assert_eq!(Arc::strong_count(&timeouts), 2);
        timeouts.close();
        wait_for(|| Arc::strong_count(&timeouts) == 1);
        orb.shutdown(true).expect("it ends");
    }

    #[test]
    fn consumer_that_has_left_has_no_time() {
        let timeouts = Arc::new(Timeouts::new(true, Box::new(|| Ok(()))));
        for number in 1..=2 {
            let watched = timeouts.watch(&Weak::new(), 9, number);
            watched.expect("without a thread");
        }
        timeouts.forget(1);
        let due = timeouts.due.lock("rt.timeouts");
        assert_eq!(due.first, BTreeSet::from([(9, 2)]));
        assert_eq!(due.by_number, HashMap::from([(2, 9)]));
    }
}

//! The consumers that pull: their queues, and the bound of the pulls that wait.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use deckwatch_orb::transport::Instant64;
use deckwatch_orb::{SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::{PiMutex, SlotKey, SlotTable};

use super::notify;
use super::pull_queue::PullQueue;
use crate::cos_event_comm::PullConsumerRef;
use crate::counters::Counters;
use crate::event::Event;
use crate::limits;
use crate::raise::raise;
use crate::shared::Shared;

/// The consumers of one channel that pull.
pub(crate) struct Pullers {
    max: usize,
    /// Read for each event, without a lock.
    queues: SlotTable<Arc<PullQueue>>,
    all: PiMutex<Vec<Puller>>,
}

/// A connected consumer that pulls.
pub(crate) struct Puller {
    proxy: u64,
    slot: SlotKey,
    queue: Arc<PullQueue>,
    /// Notified of the end. `None` for a consumer that gave no reference.
    reference: Option<PullConsumerRef>,
}

/// A consumer that has connected, and the number of the proxy that gave way to it.
pub(crate) struct Admitted {
    pub(crate) queue: Arc<PullQueue>,
    pub(crate) gone: Option<u64>,
}

impl Pullers {
    /// At most `max` consumers.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            queues: SlotTable::without_memory(),
            all: PiMutex::default(),
        }
    }

    /// Adds a consumer if `admit` returns `Ok`. At the maximum, the consumer that has been quiet longest gives way, if
    /// it has not called for [`limits::PULLER_QUIET_MIN`].
    ///
    /// # Errors
    /// NO_RESOURCES at the maximum if all have called; the errors of `admit`.
    pub(crate) fn connect(
        &self,
        proxy: u64,
        reference: Option<&PullConsumerRef>,
        queue_len: usize,
        now: Instant64,
        admit: impl FnOnce() -> Result<(), SystemException>,
    ) -> Result<Admitted, SystemException> {
        let mut all = self.all.lock("event.pullers");
        let is_full = all.len() >= self.max;
        let quiet = if is_full {
            longest_quiet(&all, now)
        } else {
            None
        };
        if is_full && quiet.is_none() {
            return Err(raise(Kind::NoResources));
        }
        admit()?;
        let gone = quiet.map(|place| {
            let gone = all.swap_remove(place);
            self.close(&gone);
            gone.proxy
        });
        let queue = Arc::new(PullQueue::new(queue_len, now));
        let slot = self.queues.insert(queue.clone());
        let slot = slot.map_err(|_| raise(Kind::NoResources))?;
        all.push(Puller {
            proxy,
            slot,
            queue: queue.clone(),
            reference: reference.cloned(),
        });
        Ok(Admitted { queue, gone })
    }

    /// Removes a consumer and ends its pulls. Returns its reference, if it gave one.
    pub(crate) fn disconnect(&self, proxy: u64) -> Option<PullConsumerRef> {
        let mut all = self.all.lock("event.pullers");
        let place = all.iter().position(|puller| puller.proxy == proxy)?;
        let gone = all.swap_remove(place);
        self.close(&gone);
        gone.reference
    }

    /// Removes all consumers and ends their pulls. Returns the references of consumers that gave one.
    pub(crate) fn take(&self) -> Vec<PullConsumerRef> {
        let all = std::mem::take(&mut *self.all.lock("event.pullers"));
        all.iter().for_each(|puller| self.close(puller));
        all.into_iter()
            .filter_map(|puller| puller.reference)
            .collect()
    }

    fn close(&self, puller: &Puller) {
        self.queues.remove(puller.slot);
        puller.queue.close();
    }

    /// Queues an event for every consumer that pulls; never waits.
    pub(crate) fn offer(&self, event: &Event<'_>, counters: &Counters) {
        self.queues.for_each(|_, queue| match event.any() {
            Ok(any) => queue.offer(any, counters),
            Err(_) => _ = counters.failed.fetch_add(1, Relaxed),
        });
    }
}

/// The position of the consumer whose last call is the oldest, if it is old enough to give way.
fn longest_quiet(all: &[Puller], now: Instant64) -> Option<usize> {
    let called = |puller: &Puller| puller.queue.last_call();
    let (place, oldest) = all
        .iter()
        .enumerate()
        .min_by_key(|(_, puller)| called(puller))?;
    (now.since(called(oldest)) >= limits::PULLER_QUIET_MIN).then_some(place)
}

impl Shared {
    /// Creates the queue of a consumer that pulls.
    pub(crate) fn connect_puller(
        &self,
        proxy: u64,
        reference: Option<&PullConsumerRef>,
    ) -> Result<Arc<PullQueue>, SystemException> {
        let queue_len = self.options().queue_len;
        let now = self.now();
        let admitted = self.pullers.connect(proxy, reference, queue_len, now, || {
            self.check_alive()?;
            self.settle(proxy)
        })?;
        if let Some(gone) = admitted.gone {
            self.counters.consumers_lost.fetch_add(1, Relaxed);
            self.retire(gone);
        }
        Ok(admitted.queue)
    }

    /// Ends the pulls of a consumer, and notifies it if it gave a reference.
    pub(crate) fn disconnect_puller(&self, proxy: u64) {
        let reference = self.pullers.disconnect(proxy);
        self.retire(proxy);
        if let Some(reference) = reference {
            notify(reference.object(), "disconnect_pull_consumer");
        }
    }
}

/// Counts the pulls that wait, each of which occupies a serving thread.
#[derive(Default)]
pub(crate) struct PullPermits(AtomicUsize);

/// A pull that may wait.
pub(crate) struct Waiting<'p>(&'p PullPermits);

impl PullPermits {
    /// Returns `None` if [`limits::PULLS_WAITING_MAX`] pulls wait.
    pub(crate) fn enter(&self) -> Option<Waiting<'_>> {
        let room = |waiting| (waiting < limits::PULLS_WAITING_MAX).then_some(waiting + 1);
        let entered = self.0.fetch_update(AcqRel, Relaxed, room);
        entered.is_ok().then_some(Waiting(self))
    }

    /// Number of pulls that wait now.
    pub(crate) fn waiting(&self) -> usize {
        self.0.load(Relaxed)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, AcqRel);
    }
}

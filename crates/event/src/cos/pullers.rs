//! The consumers that pull: their queues, and the bound of the pulls that wait.

use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::atomic::{AtomicU64, AtomicUsize};

use deckwatch_orb::transport::Instant64;
use deckwatch_orb::{SystemException, SystemExceptionKind as Kind, lane_threads, own_minor};
use deckwatch_sync::{PiMutex, Popped, SlotKey, SlotTable};

use super::pull_queue::PullQueue;
use crate::channel_group::ProxyKind;
use crate::cos_event_comm::PullConsumerRef;
use crate::counters::Counters;
use crate::home::{Client, NoQos};
use crate::limits;
use crate::peers::{Peer, Place, Places};
use crate::raise::raise;
use crate::shared::Shared;

/// The consumers of one channel that pull; `Q` is what one of them pulls from.
pub(crate) struct Pullers<Q> {
    max: usize,
    /// Read for each event, without a lock.
    queues: SlotTable<Arc<Q>>,
    all: PiMutex<Vec<Puller<Q>>>,
}

/// What a consumer pulls from.
pub(crate) trait Pulled {
    /// Octets of the queued events.
    fn size(&self) -> usize;

    /// Drops the oldest event of the largest queue. Returns false if there is none.
    fn drop_oldest(&self, counters: &Counters) -> bool;

    /// Ends the pulls that wait.
    fn close(&self);
}

impl Pulled for PullQueue {
    fn size(&self) -> usize {
        self.size()
    }

    fn drop_oldest(&self, counters: &Counters) -> bool {
        self.drop_oldest(counters)
    }

    fn close(&self) {
        self.close();
    }
}

/// A connected consumer that pulls.
struct Puller<Q> {
    proxy: u64,
    slot: SlotKey,
    source: Connected<Q>,
    /// Notified of the end. `None` for a consumer that gave no reference.
    reference: Option<PullConsumerRef>,
    place: Place,
}

/// The state of a connected consumer that its proxy keeps.
pub(crate) struct Connected<Q> {
    pub(crate) queue: Arc<Q>,
    /// Time of the last call of the consumer, in nanoseconds of the transport's clock.
    called_ns: Arc<AtomicU64>,
}

impl<Q> Connected<Q> {
    fn new(queue: Q, now: Instant64) -> Self {
        Self {
            queue: Arc::new(queue),
            called_ns: Arc::new(AtomicU64::new(now.0)),
        }
    }

    /// Records that the consumer has called.
    pub(crate) fn note_call(&self, now: Instant64) {
        self.called_ns.store(now.0, Relaxed);
    }

    fn last_call(&self) -> Instant64 {
        Instant64(self.called_ns.load(Relaxed))
    }
}

impl<Q> Clone for Connected<Q> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
            called_ns: self.called_ns.clone(),
        }
    }
}

impl<Q: Pulled> Pullers<Q> {
    /// At most `max` consumers.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            queues: SlotTable::without_memory(),
            all: PiMutex::default(),
        }
    }

    /// Adds a consumer if `admit` returns `Ok`. At the maximum, the consumer that has been quiet longest gives way, if
    /// it has not called for [`limits::PULLER_QUIET_MIN`]; at the share of `peer`, one of that peer. Returns the number
    /// of its proxy.
    ///
    /// # Errors
    /// NO_RESOURCES at the maximum, and IMP_LIMIT at the share, if all have called; the errors of `admit`.
    fn connect(
        &self,
        proxy: u64,
        reference: Option<&PullConsumerRef>,
        source: &Connected<Q>,
        now: Instant64,
        (shares, peer): (&Arc<Places>, Peer),
        admit: impl FnOnce() -> Result<(), SystemException>,
    ) -> Result<Option<u64>, SystemException> {
        let mut all = self.all.lock("event.pullers");
        let is_full = all.len() >= self.max;
        let is_own = |puller: &Puller<Q>| puller.place.peer() == peer;
        let quiet = if shares.is_full_for(peer) {
            longest_quiet(&all, now, is_own)
        } else if is_full {
            longest_quiet(&all, now, |_| true)
        } else {
            None
        };
        // One that gives way to another of its peer leaves its place to it.
        let place = match quiet {
            Some(quiet) if is_own(&all[quiet]) => None,
            None if is_full => return Err(raise(Kind::NoResources)),
            _ => Some(shares.take(peer)?),
        };
        admit()?;
        let gone = quiet.map(|quiet| {
            let gone = all.swap_remove(quiet);
            self.close(&gone);
            gone
        });
        let number = gone.as_ref().map(|gone| gone.proxy);
        let left = gone.map(|gone| gone.place);
        let place = place.or(left).expect("a place is taken or left");
        let slot = self.queues.insert(source.queue.clone());
        let slot = slot.map_err(|_| raise(Kind::NoResources))?;
        all.push(Puller {
            proxy,
            slot,
            source: source.clone(),
            reference: reference.cloned(),
            place,
        });
        Ok(number)
    }

    /// Number of connected consumers.
    pub(crate) fn len(&self) -> usize {
        self.all.lock("event.pullers").len()
    }

    /// Removes a consumer and ends its pulls. Returns its reference, if it gave one, and its peer.
    fn disconnect(&self, proxy: u64) -> Option<(PullConsumerRef, Peer)> {
        let mut all = self.all.lock("event.pullers");
        let place = all.iter().position(|puller| puller.proxy == proxy)?;
        let gone = all.swap_remove(place);
        self.close(&gone);
        Some((gone.reference?, gone.place.peer()))
    }

    /// Removes all consumers and ends their pulls. Returns the references of consumers that gave one.
    pub(crate) fn take(&self) -> Vec<PullConsumerRef> {
        let all = std::mem::take(&mut *self.all.lock("event.pullers"));
        all.iter().for_each(|puller| self.close(puller));
        all.into_iter()
            .filter_map(|puller| puller.reference)
            .collect()
    }

    fn close(&self, puller: &Puller<Q>) {
        self.queues.remove(puller.slot);
        puller.source.queue.close();
    }

    /// Octets that the consumer with most of them has queued.
    pub(crate) fn largest(&self) -> usize {
        let mut most = 0;
        self.for_each(|queue| most = most.max(queue.size()));
        most
    }

    /// Drops the oldest events of the consumers that have so many octets queued. Returns false if there is none.
    pub(crate) fn drop_oldest_of(&self, size: usize, counters: &Counters) -> bool {
        let mut has_dropped = false;
        self.for_each(|queue| {
            if queue.size() >= size {
                has_dropped |= queue.drop_oldest(counters);
            }
        });
        has_dropped
    }

    /// Calls `visit` with what each consumer pulls from.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&Q)) {
        self.queues.for_each(|_, queue| visit(queue));
    }
}

/// The position of the consumer whose last call is the oldest, if it is old enough to give way.
fn longest_quiet<Q>(
    all: &[Puller<Q>],
    now: Instant64,
    may_go: impl Fn(&Puller<Q>) -> bool,
) -> Option<usize> {
    let called = |puller: &Puller<Q>| puller.source.last_call();
    let (place, oldest) = all
        .iter()
        .enumerate()
        .filter(|(_, puller)| may_go(puller))
        .min_by_key(|(_, puller)| called(puller))?;
    (now.since(called(oldest)) >= limits::PULLER_QUIET_MIN).then_some(place)
}

/// Why a `pull` returns no event.
pub(crate) enum Unpulled {
    /// The communication has ended.
    Disconnected,
    /// No event has come in time, too many pulls wait, or the ORB shuts down.
    Transient,
}

impl Shared {
    /// Connects a consumer that will pull from `queue`.
    pub(crate) fn connect_puller<Q: Pulled>(
        &self,
        pullers: &Pullers<Q>,
        proxy: u64,
        reference: Option<&PullConsumerRef>,
        queue: Q,
    ) -> Result<Connected<Q>, SystemException> {
        let now = self.now();
        let connected = Connected::new(queue, now);
        let client = Client::<NoQos> {
            number: proxy,
            kind: ProxyKind::PullSupplier,
            reference: reference.map(PullConsumerRef::object),
            qos: None,
            is_suspended: false,
        };
        let place = (&self.shares.pullers, self.shares.caller());
        let gone = self.objects.home.record(&client, || {
            pullers.connect(proxy, reference, &connected, now, place, || {
                self.check_alive()?;
                self.objects.settle(proxy)
            })
        })?;
        if let Some(gone) = gone {
            self.counters.consumers_lost.fetch_add(1, Relaxed);
            self.objects.retire(gone);
        }
        Ok(connected)
    }

    /// Ends the pulls of a consumer, and notifies it if it gave a reference.
    pub(crate) fn disconnect_puller<Q: Pulled>(&self, pullers: &Pullers<Q>, proxy: u64) {
        let reference = pullers.disconnect(proxy);
        self.objects.retire(proxy);
        if let Some((reference, peer)) = reference {
            let farewells = &self.shares.farewells;
            farewells.say(peer, reference.object(), "disconnect_pull_consumer");
        }
    }

    /// Takes the oldest event of a queue, if there is one.
    pub(super) fn try_pull<E: Clone>(&self, queue: &PullQueue<E>) -> Option<E> {
        let event = queue.try_take()?;
        self.counters.delivered.fetch_add(1, Relaxed);
        Some(event)
    }

    /// Takes the oldest event of a queue. Waits for one, at most for [`limits::PULL_WAIT`].
    pub(super) fn pull<E: Clone>(&self, queue: &PullQueue<E>) -> Result<E, Unpulled> {
        if let Some(event) = self.try_pull(queue) {
            return Ok(event);
        }
        let Some(_waiting) = self.permits.enter(self.shares.caller()) else {
            self.counters.pulls_refused.fetch_add(1, Relaxed);
            return Err(Unpulled::Transient);
        };
        let limit = self.now().after(limits::PULL_WAIT);
        loop {
            let now = self.now();
            if now >= limit || !self.is_orb_alive() {
                return Err(Unpulled::Transient);
            }
            match queue.take_until(limit.min(now.after(limits::PULL_SLICE))) {
                Popped::Value(event) => {
                    self.counters.delivered.fetch_add(1, Relaxed);
                    return Ok(event);
                }
                Popped::Closed => return Err(Unpulled::Disconnected),
                Popped::TimedOut => {}
            }
        }
    }
}

/// Counts the pulls that wait, each of which occupies a serving thread.
pub(crate) struct PullPermits {
    waiting: AtomicUsize,
    max: usize,
    shares: Arc<Places>,
}

/// A pull that may wait.
pub(crate) struct Waiting<'p> {
    permits: &'p PullPermits,
    _place: Place,
}

impl Default for PullPermits {
    fn default() -> Self {
        // A process with few addresses has fewer threads.
        let max = limits::PULLS_WAITING_MAX.min(lane_threads() / 2);
        let share = limits::PULLS_WAITING_SHARE.min(max / 2);
        Self {
            waiting: AtomicUsize::new(0),
            max,
            shares: Places::new(share, own_minor::CONSUMER_SHARE_FULL),
        }
    }
}

impl PullPermits {
    /// Returns `None` if [`limits::PULLS_WAITING_MAX`] pulls wait, or [`limits::PULLS_WAITING_SHARE`] of this peer.
    pub(crate) fn enter(&self, peer: Peer) -> Option<Waiting<'_>> {
        let place = self.shares.take(peer).ok()?;
        let room = |waiting| (waiting < self.max).then_some(waiting + 1);
        let entered = self.waiting.fetch_update(AcqRel, Relaxed, room);
        // Not `then_some`: a value that is not given away would give back a permit that it does not have.
        entered.is_ok().then(|| Waiting {
            permits: self,
            _place: place,
        })
    }

    /// Number of pulls that wait now.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Relaxed)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.permits.waiting.fetch_sub(1, AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue with so many events of one octet.
    struct Queued(AtomicUsize);

    impl Pulled for Queued {
        fn size(&self) -> usize {
            self.0.load(Relaxed)
        }

        fn drop_oldest(&self, _: &Counters) -> bool {
            let left = |size: usize| size.checked_sub(1);
            self.0.fetch_update(Relaxed, Relaxed, left).is_ok()
        }

        fn close(&self) {}
    }

    fn queued(events: usize, called_ns: u64) -> Connected<Queued> {
        Connected::new(Queued(AtomicUsize::new(events)), Instant64(called_ns))
    }

    #[test]
    fn place_of_one_that_gives_way_to_another_peer_counts_for_that_one() {
        let pullers = Pullers::new(2);
        let shares = Places::new(2, 0);
        let quiet = Instant64(0).after(limits::PULLER_QUIET_MIN);
        let connect = |proxy, user, now: Instant64| {
            let of = (&shares, Peer::User(user));
            pullers.connect(proxy, None, &queued(0, now.0), now, of, || Ok(()))
        };
        assert_eq!(connect(1, 7, Instant64(0)), Ok(None));
        assert_eq!(connect(2, 7, quiet), Ok(None));
        assert!(shares.is_full_for(Peer::User(7)));
        assert_eq!(connect(3, 8, quiet), Ok(Some(1)));
        assert!(!shares.is_full_for(Peer::User(7)), "it has left a place");
        assert_eq!(
            connect(4, 8, quiet.after(limits::PULLER_QUIET_MIN)),
            Ok(Some(2))
        );
        assert!(shares.is_full_for(Peer::User(8)), "it has both places");
    }

    #[test]
    fn largest_queues_lose_their_oldest_event() {
        let pullers = Pullers::new(2);
        let shares = Places::new(2, 0);
        let queues = [3, 2].map(|events| queued(events, 0));
        for (queue, proxy) in queues.iter().zip(1..) {
            let of = (&shares, Peer::User(7));
            let connected = pullers.connect(proxy, None, queue, Instant64(0), of, || Ok(()));
            assert_eq!(connected, Ok(None));
        }
        let sizes = || queues.each_ref().map(|each| each.queue.size());
        let counters = Counters::default();
        assert!(pullers.drop_oldest_of(3, &counters));
        assert_eq!(sizes(), [2, 2]);
        assert!(pullers.drop_oldest_of(2, &counters));
        assert_eq!(sizes(), [1, 1]);
        assert!(!pullers.drop_oldest_of(2, &counters), "none is so large");
    }

    #[test]
    fn waiting_pulls_of_one_peer_leave_room_for_those_of_others() {
        let permits = PullPermits::default();
        let enter = |user| permits.enter(Peer::User(user));
        let stranger: Vec<_> = std::iter::from_fn(|| enter(1)).collect();
        assert_eq!(stranger.len(), limits::PULLS_WAITING_SHARE);
        let other: Vec<_> = std::iter::from_fn(|| enter(2)).collect();
        assert_eq!(stranger.len() + other.len(), limits::PULLS_WAITING_MAX);
        assert!(enter(3).is_none());
        drop(stranger);
        assert!(enter(3).is_some());
        assert_eq!(permits.waiting(), other.len());
    }
}

//! The bounded queue between the servant that receives events and the thread that reads them.
//!
//! The servant never waits: an event for which there is no room is dropped and counted, so that a slow terminal or disk
//! does not delay the channel.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use super::selection::Selection;
use super::{Event, Moment, Received};
use crate::limits::{EVENTS_QUEUED_MAX, EVENTS_QUEUED_SIZE_MAX};

/// The end that the servant fills.
#[derive(Clone)]
pub struct Inbox {
    wanted: Arc<Selection>,
    queue: SyncSender<Received>,
    counts: Arc<Counts>,
}

/// The end that is read.
pub struct Outbox {
    queue: Receiver<Received>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    taken: AtomicU64,
    dropped: AtomicU64,
    unwanted: AtomicU64,
    size_bytes: AtomicUsize,
    has_ended: AtomicBool,
}

/// What became of the events that were received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct InboxCounts {
    /// Events queued for the reader.
    pub taken: u64,
    /// Events dropped because the reader was too slow.
    pub dropped: u64,
    /// Events that the selection does not want.
    pub unwanted: u64,
}

/// Returns both ends of a queue for the events that are wanted.
#[must_use]
pub fn inbox(wanted: Selection) -> (Inbox, Outbox) {
    let (sender, receiver) = sync_channel(EVENTS_QUEUED_MAX);
    let counts = Arc::new(Counts::default());
    let inbox = Inbox {
        wanted: Arc::new(wanted),
        queue: sender,
        counts: Arc::clone(&counts),
    };
    let outbox = Outbox {
        queue: receiver,
        counts,
    };
    (inbox, outbox)
}

impl Inbox {
    /// The events that are wanted.
    #[must_use]
    pub fn wanted(&self) -> &Selection {
        &self.wanted
    }

    /// Queues an event that was received now, unless it is not wanted or there is no room.
    pub fn offer(&self, event: Event) {
        if !self.wanted.wants(&event) {
            self.counts.unwanted.fetch_add(1, Relaxed);
            return;
        }
        let at = Moment::now();
        let size = event.size();
        let before = self.counts.size_bytes.fetch_add(size, Relaxed);
        // One event always fits: no limit of the queue is smaller than a message.
        let has_room = before == 0 || before.saturating_add(size) <= EVENTS_QUEUED_SIZE_MAX;
        if has_room && self.queue.try_send(Received { event, at }).is_ok() {
            self.counts.taken.fetch_add(1, Relaxed);
        } else {
            self.counts.size_bytes.fetch_sub(size, Relaxed);
            self.counts.dropped.fetch_add(1, Relaxed);
        }
    }

    /// Notes that the channel has ended; the reader sees it after the queued events.
    pub fn end(&self) {
        self.counts.has_ended.store(true, Relaxed);
    }
}

impl Outbox {
    /// Returns the next event, or `None` if none comes within `patience`.
    pub fn next(&self, patience: Duration) -> Option<Received> {
        match self.queue.recv_timeout(patience) {
            Ok(received) => {
                let size = received.event.size();
                self.counts.size_bytes.fetch_sub(size, Relaxed);
                Some(received)
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }

    /// Whether the channel has notified its consumers that it ends.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.counts.has_ended.load(Relaxed)
    }

    /// The counts at this moment.
    #[must_use]
    pub fn counts(&self) -> InboxCounts {
        InboxCounts {
            taken: self.counts.taken.load(Relaxed),
            dropped: self.counts.dropped.load(Relaxed),
            unwanted: self.counts.unwanted.load(Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deckwatch_cdr::Any;

    fn event<T: deckwatch_cdr::Typed + deckwatch_cdr::Write + ?Sized>(value: &T) -> Event {
        Event::of(Any::from_value(value).expect("an event"))
    }

    #[test]
    fn a_full_queue_drops_the_newest_event_and_counts_it() {
        let (inbox, outbox) = inbox(Selection::default());
        let offered = EVENTS_QUEUED_MAX as u32 + 3;
        for number in 0..offered {
            inbox.offer(event(&number));
        }
        let counts = outbox.counts();
        assert_eq!(counts.taken, EVENTS_QUEUED_MAX as u64);
        assert_eq!((counts.dropped, counts.unwanted), (3, 0));
        let first = outbox.next(Duration::ZERO).expect("an event");
        assert_eq!(first.event.data.extract::<u32>(), Ok(0));
        inbox.offer(event(&offered));
        assert_eq!(outbox.counts().dropped, 3, "there is room again");
    }

    #[test]
    fn the_octets_of_the_queue_are_bounded() {
        let (inbox, outbox) = inbox(Selection::default());
        let large = event(&vec![0_u8; EVENTS_QUEUED_SIZE_MAX / 3 + 1]);
        for _ in 0..5 {
            inbox.offer(large.clone());
        }
        assert_eq!((outbox.counts().taken, outbox.counts().dropped), (2, 3));
        while outbox.next(Duration::ZERO).is_some() {}
        inbox.offer(large);
        assert_eq!(outbox.counts().taken, 3, "the octets read are free again");
    }
}

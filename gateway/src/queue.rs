//! The bounded queue of one direction of a mapping. The end that fills it never waits.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use crate::counts::Counter;
use crate::limits::{DRAIN_TIMEOUT, QUEUE_SIZE_MAX, WAIT_STEP};

/// The end that is filled.
#[derive(Clone)]
pub(crate) struct QueueEnd<T> {
    items: SyncSender<(T, usize)>,
    size_bytes: Arc<AtomicUsize>,
}

/// The end that is emptied.
pub(crate) struct Queue<T> {
    items: Receiver<(T, usize)>,
    size_bytes: Arc<AtomicUsize>,
}

/// Returns both ends of a queue of `len` items.
pub(crate) fn queue<T>(len: usize) -> (QueueEnd<T>, Queue<T>) {
    let (sender, receiver) = sync_channel(len);
    let size_bytes = Arc::new(AtomicUsize::new(0));
    let end = QueueEnd {
        items: sender,
        size_bytes: Arc::clone(&size_bytes),
    };
    let queue = Queue {
        items: receiver,
        size_bytes,
    };
    (end, queue)
}

impl<T> QueueEnd<T> {
    /// Queues an item of so many octets. Returns false if there is no room.
    pub(crate) fn offer(&self, item: T, size: usize) -> bool {
        let before = self.size_bytes.fetch_add(size, Relaxed);
        let has_room = before == 0 || before.saturating_add(size) <= QUEUE_SIZE_MAX;
        let is_queued = has_room && self.items.try_send((item, size)).is_ok();
        if !is_queued {
            self.size_bytes.fetch_sub(size, Relaxed);
        }
        is_queued
    }
}

impl<T> Queue<T> {
    /// Returns the next item, or `None` if none comes within `patience`.
    pub(crate) fn next(&self, patience: Duration) -> Option<T> {
        let (item, size) = self.items.recv_timeout(patience).ok()?;
        self.size_bytes.fetch_sub(size, Relaxed);
        Some(item)
    }

    /// Hands over each item until `ends` is set and the queue is empty. After [`DRAIN_TIMEOUT`] the rest is dropped and
    /// counted.
    pub(crate) fn drain(self, ends: &AtomicBool, dropped: &Counter, mut handle: impl FnMut(T)) {
        let mut until = None;
        loop {
            let next = self.next(WAIT_STEP);
            if ends.load(Acquire) {
                let until = until.get_or_insert_with(|| Instant::now() + DRAIN_TIMEOUT);
                if next.is_none() {
                    return;
                }
                if Instant::now() >= *until {
                    dropped.add();
                    continue;
                }
            }
            if let Some(item) = next {
                handle(item);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_refuses_and_has_room_again_once_an_item_was_taken() {
        let (end, queue) = queue(2);
        assert!(end.offer(1, 0) && end.offer(2, 0) && !end.offer(3, 0));
        assert_eq!(queue.next(Duration::ZERO), Some(1));
        assert!(end.offer(4, 0));
        assert_eq!(queue.next(Duration::ZERO), Some(2));
        assert_eq!(queue.next(Duration::ZERO), Some(4));
        assert_eq!(queue.next(Duration::ZERO), None);
    }

    #[test]
    fn octets_are_bounded_and_one_item_always_fits() {
        let (end, queue) = queue(8);
        assert!(end.offer(1, QUEUE_SIZE_MAX + 1), "alone");
        assert!(!end.offer(2, 1));
        assert_eq!(queue.next(Duration::ZERO), Some(1));
        assert!(end.offer(3, QUEUE_SIZE_MAX - 1) && end.offer(4, 1) && !end.offer(5, 1));
    }

    #[test]
    fn what_waits_is_handed_over_once_the_queue_ends() {
        let (end, queue) = queue(2);
        assert!(end.offer(1, 0) && end.offer(2, 0));
        let (mut taken, dropped) = (Vec::new(), Counter::default());
        queue.drain(&AtomicBool::new(true), &dropped, |item| taken.push(item));
        assert_eq!((taken, dropped.read()), (vec![1, 2], 0));
    }
}

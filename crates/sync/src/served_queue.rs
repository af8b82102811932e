//! An ordered queue that threads serve until it is closed. Each value that is put in is served once, or returned once.

use crate::primitive::{AtomicU8, AtomicUsize, Ordering, fence};
use crate::{Bell, OrderedQueue};

/// A bounded queue, and the threads that wait for its values.
#[derive(Debug)]
pub struct ServedQueue<T> {
    queue: OrderedQueue<T>,
    /// Rings when a value is queued, and when the queue is closed.
    bell: Bell,
    /// 1 once it is closed.
    closed: AtomicU8,
    /// Threads that serve a value, or are about to take one.
    busy: AtomicUsize,
}

/// The value for which a full queue has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// The new one.
    DropNew,
    /// The one that would leave first.
    DropFirst,
    /// The one that would leave last: the new one, unless another is due later.
    DropLast,
}

/// Why a value was not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unserved {
    /// The queue was full.
    Full,
    /// The queue was closed.
    Closed,
}

impl<T> ServedQueue<T> {
    /// An open queue for at most `capacity` values.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            queue: OrderedQueue::with_capacity(capacity),
            bell: Bell::new(),
            closed: AtomicU8::new(0),
            busy: AtomicUsize::new(0),
        }
    }

    /// Puts a value in. `unserved` is called with each value that has no place.
    pub fn put(
        &self,
        order: u64,
        value: T,
        when_full: WhenFull,
        mut unserved: impl FnMut(T, Unserved),
    ) {
        if self.is_closed() {
            return unserved(value, Unserved::Closed);
        }
        let mut refused = self.queue.push(order, value).err();
        while let Some(value) = refused.take() {
            match when_full {
                WhenFull::DropNew => unserved(value, Unserved::Full),
                WhenFull::DropFirst => {
                    if let Some(first) = self.queue.pop() {
                        unserved(first, Unserved::Full);
                    }
                    refused = self.queue.push(order, value).err();
                }
                WhenFull::DropLast => {
                    if let Some(last) = self.queue.push_for_last(order, value) {
                        unserved(last, Unserved::Full);
                    }
                }
            }
        }
        self.bell.ring();
        // A concurrent close may have missed this value: the threads may be gone.
        while self.is_closed() {
            let Some(left) = self.queue.pop() else {
                return;
            };
            unserved(left, Unserved::Closed);
        }
    }

    /// The body of a thread: serves values until the queue is closed and empty.
    pub fn serve(&self, mut serve: impl FnMut(T)) {
        loop {
            let turn = self.bell.turn();
            // Before the queue: what is put in later is left to the thread that puts it in.
            let is_closed = self.is_closed();
            if is_closed {
                // SYNC: pairs with the fence of the ring in `put`: this thread sees the value, or that one the close.
                fence(Ordering::SeqCst);
            }
            if self.serve_first(&mut serve) {
                continue;
            }
            if is_closed {
                return;
            }
            self.bell.wait(turn);
        }
    }

    /// Serves the value that is first. Returns false if there is none.
    pub fn serve_first(&self, serve: impl FnOnce(T)) -> bool {
        // Before the value is taken: see `is_idle`.
        self.busy.fetch_add(1, Ordering::SeqCst);
        let first = self.queue.pop();
        let is_served = first.is_some();
        if let Some(first) = first {
            serve(first);
        }
        self.busy.fetch_sub(1, Ordering::SeqCst);
        is_served
    }

    /// As [`OrderedQueue::pop_if`].
    pub fn pop_if(&self, is_meant: impl FnOnce(&T) -> bool) -> Option<T> {
        self.queue.pop_if(is_meant)
    }

    /// As [`OrderedQueue::pop_last_if`].
    pub fn pop_last_if(&self, is_meant: impl FnOnce(&T) -> bool) -> Option<T> {
        self.queue.pop_last_if(is_meant)
    }

    /// Whether no value is queued, and none is being served.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.busy.load(Ordering::SeqCst) == 0
    }

    /// Whether no value is queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Refuses further values. The threads serve what is queued, and end. A thread that puts a value in meanwhile may
    /// have queued values returned.
    pub fn close(&self) {
        self.closed.store(1, Ordering::SeqCst);
        self.bell.ring();
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst) == 1
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize as Count;
    use std::sync::atomic::Ordering::Relaxed;

    const PUT: usize = 20_000;

    #[test]
    fn each_value_is_served_or_returned_once_while_threads_put_serve_and_close() {
        for when_full in [WhenFull::DropNew, WhenFull::DropFirst, WhenFull::DropLast] {
            let queue = ServedQueue::with_capacity(8);
            let fates: Vec<Count> = (0..2 * PUT).map(|_| Count::new(0)).collect();
            let note = |value: usize| {
                fates[value].fetch_add(1, Relaxed);
            };
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| queue.serve(note));
                }
                let putters = [0, PUT].map(|first| {
                    let (queue, note) = (&queue, &note);
                    scope.spawn(move || {
                        for value in first..first + PUT {
                            let order = (value % 7) as u64;
                            queue.put(order, value, when_full, |value, _| note(value));
                            if value == PUT + PUT / 2 {
                                queue.close();
                            }
                        }
                    })
                });
                for putter in putters {
                    putter.join().expect("no panic");
                }
            });
            assert!(fates.iter().all(|count| count.load(Relaxed) == 1));
            assert!(queue.is_idle());
        }
    }

    #[test]
    fn full_queue_returns_the_value_that_its_policy_names() {
        for (when_full, order, lost) in [
            (WhenFull::DropNew, 0, 9),
            (WhenFull::DropFirst, 7, 1),
            (WhenFull::DropLast, 0, 3),
            (WhenFull::DropLast, 3, 9),
        ] {
            let queue = ServedQueue::with_capacity(3);
            for value in 1..=3 {
                queue.put(value, value, when_full, |_, _| panic!("there is room"));
            }
            let mut unserved = Vec::new();
            queue.put(order, 9, when_full, |value, why| {
                unserved.push((value, why))
            });
            assert_eq!(unserved, [(lost, Unserved::Full)], "{when_full:?}");
            queue.close();
            queue.put(0, 10, when_full, |value, why| unserved.push((value, why)));
            assert_eq!(unserved[1], (10, Unserved::Closed));
        }
    }
}

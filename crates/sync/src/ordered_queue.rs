//! A bounded queue ordered by a number: lowest first, then first in, first out.

use std::cmp::Ordering as Rank;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::PiMutex;
use crate::primitive::{AtomicUsize, Ordering};

/// At most `capacity` values; all memory is allocated at creation. Neither `push` nor `pop` waits.
#[derive(Debug)]
pub struct OrderedQueue<T> {
    heap: PiMutex<Heap<T>>,
    /// Read without the lock: the queue is usually empty.
    len: AtomicUsize,
}

#[derive(Debug)]
struct Heap<T> {
    values: BinaryHeap<Entry<T>>,
    capacity: usize,
    /// The number of the next value.
    next: u64,
}

#[derive(Debug)]
struct Entry<T> {
    order: u64,
    number: u64,
    value: T,
}

impl<T> OrderedQueue<T> {
    /// An empty queue for at most `capacity` values.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            heap: PiMutex::new(Heap {
                values: BinaryHeap::with_capacity(capacity),
                capacity,
                next: 0,
            }),
            len: AtomicUsize::new(0),
        }
    }

    /// Puts a value in. The lowest `order` leaves first, equal orders in arrival order.
    ///
    /// # Errors
    /// The value itself if the queue is full.
    pub fn push(&self, order: u64, value: T) -> Result<(), T> {
        let mut heap = self.heap.lock("ordered_queue.push");
        if heap.values.len() == heap.capacity {
            return Err(value);
        }
        let number = heap.next;
        heap.next += 1;
        heap.values.push(Entry {
            order,
            number,
            value,
        });
        // SYNC: pairs with the load in `len`: a thread that announces its wait and then looks sees this value, or the
        // pusher sees the announcement.
        self.len.store(heap.values.len(), Ordering::SeqCst);
        Ok(())
    }

    /// Puts a value in. If the queue is full, the value that would leave last is returned: one of the queue, or the new
    /// one. The search for it takes a time that grows with the queue.
    pub fn push_for_last(&self, order: u64, value: T) -> Option<T> {
        let mut heap = self.heap.lock("ordered_queue.push_for_last");
        let entry = Entry {
            order,
            number: heap.next,
            value,
        };
        heap.next += 1;
        let mut last = None;
        if heap.values.len() == heap.capacity {
            // The vector keeps its memory.
            let mut values = std::mem::take(&mut heap.values).into_vec();
            last = match last_of(&values) {
                Some(index) if values[index] < entry => {
                    Some(std::mem::replace(&mut values[index], entry).value)
                }
                _ => Some(entry.value),
            };
            heap.values = values.into();
        } else {
            heap.values.push(entry);
        }
        // SYNC: as in `push`.
        self.len.store(heap.values.len(), Ordering::SeqCst);
        last
    }

    /// Takes out the value that is due first.
    pub fn pop(&self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let mut heap = self.heap.lock("ordered_queue.pop");
        let entry = heap.values.pop();
        self.len.store(heap.values.len(), Ordering::SeqCst);
        drop(heap);
        entry.map(|entry| entry.value)
    }

    /// Takes out the value that is due first if `is_meant` returns true for it.
    pub fn pop_if(&self, is_meant: impl FnOnce(&T) -> bool) -> Option<T> {
        let mut heap = self.heap.lock("ordered_queue.pop_if");
        let first = heap
            .values
            .peek_mut()
            .filter(|first| is_meant(&first.value));
        let entry = PeekMut::pop(first?);
        self.len.store(heap.values.len(), Ordering::SeqCst);
        drop(heap);
        Some(entry.value)
    }

    /// Takes out the value that would leave last if `is_meant` returns true for it. The search for it takes a time that
    /// grows with the queue.
    pub fn pop_last_if(&self, is_meant: impl FnOnce(&T) -> bool) -> Option<T> {
        let mut heap = self.heap.lock("ordered_queue.pop_last_if");
        // The vector keeps its memory.
        let mut values = std::mem::take(&mut heap.values).into_vec();
        let last = last_of(&values).filter(|last| is_meant(&values[*last].value));
        let entry = last.map(|last| values.swap_remove(last));
        heap.values = values.into();
        self.len.store(heap.values.len(), Ordering::SeqCst);
        drop(heap);
        entry.map(|entry| entry.value)
    }

    /// Number of values now.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len.load(Ordering::SeqCst)
    }

    /// Whether it is empty now.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The index of the entry that would leave last.
fn last_of<T>(values: &[Entry<T>]) -> Option<usize> {
    // The least entry pops last.
    (0..values.len()).min_by(|a, b| values[*a].cmp(&values[*b]))
}

/// `BinaryHeap` pops the greatest entry: the order is reversed.
impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Rank {
        (other.order, other.number).cmp(&(self.order, self.number))
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Rank> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<T> Eq for Entry<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn drain<T>(queue: &OrderedQueue<T>) -> Vec<T> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn values_leave_by_their_order_and_equals_as_they_came() {
        let queue = OrderedQueue::with_capacity(6);
        for (order, value) in [(5, "c"), (1, "a"), (5, "d"), (9, "f"), (1, "b"), (5, "e")] {
            queue.push(order, value).unwrap();
        }
        assert_eq!(queue.len(), 6);
        assert_eq!(drain(&queue), ["a", "b", "c", "d", "e", "f"]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_full_queue_gives_up_the_value_that_would_leave_last() {
        let queue = OrderedQueue::with_capacity(3);
        let room = queue.heap.lock("test").values.capacity();
        for (order, value, last) in [
            (5, "b", None),
            (9, "old", None),
            (7, "c", None),
            (9, "new", Some("new")),
            (1, "a", Some("old")),
            (8, "later", Some("later")),
            (6, "bc", Some("c")),
        ] {
            assert_eq!(queue.push_for_last(order, value), last, "{value}");
        }
        assert_eq!(drain(&queue), ["a", "b", "bc"]);
        assert_eq!(queue.heap.lock("test").values.capacity(), room);
    }

    #[test]
    fn the_first_and_the_last_value_leave_on_a_condition() {
        let queue = OrderedQueue::with_capacity(4);
        let room = queue.heap.lock("test").values.capacity();
        for (order, value) in [(5, "b"), (9, "d"), (7, "c"), (1, "a")] {
            queue.push(order, value).unwrap();
        }
        assert_eq!(queue.pop_if(|first| *first != "a"), None);
        assert_eq!(queue.pop_last_if(|last| *last != "d"), None);
        assert_eq!(queue.len(), 4);
        assert_eq!(queue.pop_if(|first| *first == "a"), Some("a"));
        assert_eq!(queue.pop_last_if(|last| *last == "d"), Some("d"));
        assert_eq!(queue.len(), 2);
        assert_eq!(drain(&queue), ["b", "c"]);
        assert_eq!(queue.pop_if(|_| true), None);
        assert_eq!(queue.pop_last_if(|_| true), None);
        assert_eq!(queue.heap.lock("test").values.capacity(), room);
    }

    #[test]
    fn a_full_queue_gives_the_value_back_and_takes_no_memory() {
        let queue = OrderedQueue::with_capacity(2);
        let room = queue.heap.lock("test").values.capacity();
        for round in 0..100 {
            queue.push(2, round).unwrap();
            queue.push(1, round + 1).unwrap();
            assert_eq!(queue.push(0, 7), Err(7));
            assert_eq!(drain(&queue), [round + 1, round]);
        }
        assert_eq!(queue.heap.lock("test").values.capacity(), room);
    }

    #[test]
    fn each_value_leaves_once_whoever_takes_it() {
        let queue = Arc::new(OrderedQueue::with_capacity(64));
        let takers: Vec<_> = (0..2)
            .map(|_| {
                let queue = Arc::clone(&queue);
                std::thread::spawn(move || {
                    let mut sum = 0;
                    loop {
                        match queue.pop() {
                            Some(u64::MAX) => return sum,
                            Some(value) => sum += value,
                            None => std::thread::yield_now(),
                        }
                    }
                })
            })
            .collect();
        let push = |order, value| {
            while queue.push(order, value).is_err() {
                std::thread::yield_now();
            }
        };
        (1..=10_000).for_each(|value| push(value % 7, value));
        takers.iter().for_each(|_| push(u64::MAX, u64::MAX));
        let taken: u64 = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
        assert_eq!(taken, 50_005_000);
    }
}

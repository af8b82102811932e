//! Explores every interleaving of threads in the structures of this crate, up to three preemptions: `sanitize/run
//! loom`.
#![cfg(loom)]

mod budget;

use deckwatch_sync::{
    Bell, BoundedQueue, Budget, Claim, Handles, OrderedQueue, PiMutex, Pool, Popped, PushError,
    ServedQueue, Settable, Share, SlotIndex, SlotTable, TurnQueue, Unserved, WhenFull,
};
use loom::model::Builder;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

/// Runs a model in every order with at most three preemptions: faults of such structures need no more.
fn model(check: impl Fn() + Send + Sync + 'static) {
    model_within(3, check);
}

/// As [`model`], with fewer preemptions for a model of many steps.
fn model_within(preemptions: usize, check: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(check);
}

/// A value that counts its drops.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_claim_is_had_by_one_thread_and_what_is_left_with_it_is_taken() {
    model(|| {
        let claim = Arc::new(Claim::new(0));
        // A thread that finds the claim taken leaves its value; the owner takes it.
        let left = Arc::new(PiMutex::new(0));
        let leave = |claim: &Claim<i32>, left: &PiMutex<i32>| {
            *left.lock("leave") += 1;
            while let Some(mut value) = claim.claim_or_tell() {
                *value += std::mem::take(&mut *left.lock("take"));
                if !value.let_go() {
                    break;
                }
            }
        };
        let (other, others) = (Arc::clone(&claim), Arc::clone(&left));
        let thread = thread::spawn(move || leave(&other, &others));
        // The short path takes the claim alone.
        match claim.try_claim() {
            Some(mut value) => {
                *value += 1;
                if value.let_go() {
                    *left.lock("leave") -= 1;
                    leave(&claim, &left);
                }
            }
            None => leave(&claim, &left),
        }
        thread.join().unwrap();
        assert_eq!(claim.try_claim().map(|value| *value), Some(2));
    });
}

#[test]
fn a_claim_that_is_dropped_shows_the_next_one_what_was_done() {
    model(|| {
        let claim = Arc::new(Claim::new(0));
        let other = Arc::clone(&claim);
        let thread =
            thread::spawn(move || other.try_claim().map(|mut value| *value += 1).is_some());
        let here = claim.try_claim().map(|mut value| *value += 1).is_some();
        let there = thread.join().unwrap();
        let count = i32::from(here) + i32::from(there);
        assert!(count > 0, "one of them finds it free");
        assert_eq!(claim.try_claim().map(|value| *value), Some(count));
    });
}

#[test]
fn one_at_a_time_enters_a_turn_queue_and_each_waiter_once() {
    model(|| {
        let queue = Arc::new(TurnQueue::new());
        // Only the occupant reaches this: in the order of the queue.
        let done = Arc::new(Claim::new(Vec::new()));
        let serve = |queue: &TurnQueue<u32>, done: &Claim<Vec<u32>>, first: u32| {
            let mut next = Some(first);
            while let Some(value) = next {
                let mut done = done.try_claim().expect("nobody else is in");
                done.push(value);
                drop(done);
                next = queue.leave();
            }
        };
        let (other, others) = (Arc::clone(&queue), Arc::clone(&done));
        assert!(queue.enter());
        let server = thread::spawn(move || serve(&other, &others, 1));
        let is_in = if queue.enter() {
            Some(2)
        } else {
            queue.join(2)
        };
        if let Some(value) = is_in {
            serve(&queue, &done, value);
        }
        server.join().unwrap();
        assert_eq!(queue.count(), 0);
        assert_eq!(*done.try_claim().unwrap(), [1, 2]);
    });
}

#[test]
fn a_pool_gives_each_value_to_one_thread() {
    model(|| {
        let pool = Arc::new(Pool::with_capacity(2));
        pool.put(Box::new(1)).unwrap();
        let other = Arc::clone(&pool);
        let thread = thread::spawn(move || {
            let taken = other.take();
            let has = taken.is_some();
            taken.map(|value| other.put(value).unwrap());
            has
        });
        let taken = pool.take();
        let here = taken.is_some();
        taken.map(|value| pool.put(value).unwrap());
        let there = thread.join().unwrap();
        assert!(here || there, "somebody finds the one value");
        assert_eq!(pool.take().as_deref(), Some(&1));
        assert!(pool.take().is_none());
    });
}

#[test]
fn a_pool_lends_each_value_to_one_thread() {
    model(|| {
        let pool = Arc::new(Pool::with_capacity(2));
        pool.put(Box::new(1)).unwrap();
        let other = Arc::clone(&pool);
        let thread = thread::spawn(move || match other.lend() {
            Some(mut lent) => {
                **lent += 1;
                true
            }
            None => false,
        });
        let taken = pool.take();
        let here = taken.is_some();
        taken.map(|value| pool.put(Box::new(*value + 1)).unwrap());
        let there = thread.join().unwrap();
        assert!(here || there, "somebody finds the one value");
        let left = pool.lend().map(|lent| *lent.into_value());
        assert_eq!(left, Some(1 + i32::from(here) + i32::from(there)));
        assert!(pool.take().is_none());
    });
}

#[test]
fn a_pool_that_is_looked_through_loses_nothing_that_is_kept() {
    model(|| {
        let pool = Arc::new(Pool::with_capacity(2));
        pool.put(1).unwrap();
        pool.put(2).unwrap();
        let other = Arc::clone(&pool);
        let thread = thread::spawn(move || other.retain(|value| *value == 1));
        let taken: Vec<i32> = pool.take().into_iter().collect();
        thread.join().unwrap();
        let left: Vec<i32> = std::iter::from_fn(|| pool.take()).collect();
        let ones = taken.iter().chain(&left).filter(|value| **value == 1);
        assert_eq!(ones.count(), 1);
        assert!(taken.len() + left.len() <= 2);
    });
}

#[test]
fn an_ordered_queue_gives_each_value_once_and_what_is_left_by_its_order() {
    model(|| {
        let queue = Arc::new(OrderedQueue::with_capacity(2));
        let other = Arc::clone(&queue);
        let taker = thread::spawn(move || other.pop());
        queue.push(2, "later").unwrap();
        queue.push(1, "first").unwrap();
        let full = queue.push(0, "one too many");
        let taken = taker.join().unwrap();
        let left: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        let mut all: Vec<_> = taken.into_iter().chain(left.iter().copied()).collect();
        let rank = |value: &&str| {
            ["one too many", "first", "later"]
                .iter()
                .position(|at| at == value)
        };
        assert!(left.is_sorted_by_key(rank));
        all.sort_unstable();
        let expected: &[_] = if full.is_ok() {
            &["first", "later", "one too many"]
        } else {
            &["first", "later"]
        };
        assert_eq!(all, expected);
        assert!(queue.is_empty());
    });
}

#[test]
fn a_pinned_value_outlives_its_removal_and_is_dropped_once() {
    model(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let table = Arc::new(SlotTable::new());
        let key = table.insert(Counted(Arc::clone(&drops))).ok().unwrap();
        let (other, seen) = (Arc::clone(&table), Arc::clone(&drops));
        let reader = thread::spawn(move || {
            if let Some(pin) = other.pin(key) {
                assert_eq!(
                    seen.load(Ordering::Relaxed),
                    0,
                    "it stays while it is pinned"
                );
                drop(pin);
            }
        });
        assert!(table.remove(key));
        assert!(table.pin(key).is_none());
        reader.join().unwrap();
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_key_never_finds_the_value_that_follows_in_its_slot() {
    model(|| {
        let table = Arc::new(SlotTable::new());
        let key = table.insert(1).ok().unwrap();
        let other = Arc::clone(&table);
        let reader = thread::spawn(move || {
            if let Some(value) = other.pin(key) {
                assert_eq!(*value, 1);
            }
        });
        assert!(table.remove(key));
        let next = table.insert(2).ok().unwrap();
        assert_eq!(table.pin(next).map(|value| *value), Some(2));
        reader.join().unwrap();
    });
}

#[test]
fn of_two_who_remove_a_value_one_does() {
    model(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let table = Arc::new(SlotTable::new());
        let key = table.insert(Counted(Arc::clone(&drops))).ok().unwrap();
        let other = Arc::clone(&table);
        let thread = thread::spawn(move || other.remove(key));
        let here = table.remove(key);
        assert_ne!(here, thread.join().unwrap());
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn whoever_waits_at_a_queue_is_woken_by_a_value_and_by_the_end() {
    model(|| {
        let queue = Arc::new(BoundedQueue::with_capacity(1));
        let other = Arc::clone(&queue);
        let consumer = thread::spawn(move || {
            let mut values = 0;
            while let Popped::Value(value) = other.pop(None) {
                values += value;
            }
            values
        });
        queue.push(1).unwrap();
        let second = match queue.push(2) {
            Ok(()) => 2,
            Err(PushError::Full(_)) => 0,
            Err(PushError::Closed(_)) => unreachable!("it is closed later"),
        };
        queue.close();
        assert_eq!(consumer.join().unwrap(), 1 + second);
    });
}

#[test]
fn two_consumers_share_what_two_producers_push() {
    model(|| {
        let queue = Arc::new(BoundedQueue::with_capacity(2));
        let other = Arc::clone(&queue);
        let producer = thread::spawn(move || other.push(1).unwrap());
        let other = Arc::clone(&queue);
        let consumer = thread::spawn(move || match other.pop(None) {
            Popped::Value(value) => value,
            Popped::TimedOut | Popped::Closed => unreachable!("two values come for two"),
        });
        queue.push(2).unwrap();
        let Popped::Value(value) = queue.pop(None) else {
            unreachable!("two values come for two");
        };
        producer.join().unwrap();
        assert_eq!(value + consumer.join().unwrap(), 3);
    });
}

#[test]
fn what_is_in_an_index_is_found_while_what_stood_before_it_goes() {
    model(|| {
        let index = Arc::new(SlotIndex::new());
        // Two entries whose search begins at the same place.
        index.insert(1 << 32, 7);
        index.insert(5 << 32, 8);
        let other = Arc::clone(&index);
        let reader = thread::spawn(move || {
            let found = other.find(5 << 32, |slot| (slot == 8).then_some(()));
            assert!(found.is_some());
        });
        assert!(index.remove(1 << 32, 7));
        reader.join().unwrap();
        assert_eq!(index.find(1 << 32, Some), None);
    });
}

#[test]
fn what_is_in_an_index_is_found_while_others_take_the_places_around_it() {
    model(|| {
        let index = Arc::new(SlotIndex::new());
        index.insert(1 << 32, 7);
        index.insert(5 << 32, 8);
        let other = Arc::clone(&index);
        let reader = thread::spawn(move || {
            let found = other.find(5 << 32, |slot| (slot == 8).then_some(()));
            assert!(found.is_some());
        });
        assert!(index.remove(1 << 32, 7));
        // Grows.
        index.insert(9 << 32, 9);
        index.insert(13 << 32, 10);
        reader.join().unwrap();
        assert_eq!(index.find(13 << 32, Some), Some(10));
    });
}

#[test]
fn what_replaces_another_under_its_hash_is_found_where_that_has_gone() {
    model(|| {
        let (index, table) = (SlotIndex::new(), SlotTable::new());
        let first = table.insert(1).unwrap();
        index.insert(1 << 32, first.slot);
        let both = Arc::new((index, table));
        let other = Arc::clone(&both);
        let reader = thread::spawn(move || {
            let (index, table) = &*other;
            let found = index.find(1 << 32, |slot| table.pin_at(slot).map(|(_, held)| *held));
            assert!(found.is_some());
        });
        let (index, table) = &*both;
        let second = table.insert(2).unwrap();
        index.insert(1 << 32, second.slot);
        assert!(index.remove(1 << 32, first.slot));
        assert!(table.remove(first));
        reader.join().unwrap();
    });
}

#[test]
fn who_waits_at_a_bell_is_woken_by_what_has_changed() {
    model(|| {
        let bell = Arc::new(Bell::new());
        let changed = Arc::new(AtomicUsize::new(0));
        let (other, others) = (Arc::clone(&bell), Arc::clone(&changed));
        let thread = thread::spawn(move || {
            others.store(1, Ordering::Relaxed);
            other.ring();
        });
        loop {
            let turn = bell.turn();
            if changed.load(Ordering::Relaxed) == 1 {
                break;
            }
            bell.wait(turn);
        }
        thread.join().unwrap();
    });
}

#[test]
fn a_reader_of_a_settable_cell_has_the_old_value_or_the_new_one_and_each_is_dropped_once() {
    model(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let value = || (Counted(Arc::clone(&drops)), Arc::clone(&drops));
        let cell = Arc::new(Settable::new(value()));
        let other = Arc::clone(&cell);
        let reader = thread::spawn(move || {
            let seen = other.read(|(_, drops)| drops.load(Ordering::Relaxed));
            assert!(seen.is_some_and(|drops| drops <= 1), "a value is set");
        });
        cell.set(value());
        reader.join().unwrap();
        assert_eq!(drops.load(Ordering::Relaxed), 1);
        cell.clear();
        assert_eq!(drops.load(Ordering::Relaxed), 2);
    });
}

/// What became of each of two values of a served queue, counted by value.
type Fates = [[usize; 3]; 2];
const SERVED: usize = 0;
const FULL: usize = 1;
const CLOSED: usize = 2;

fn note(fates: &PiMutex<Fates>, value: usize, fate: usize) {
    fates.lock("note")[value][fate] += 1;
}

fn put_into(queue: &ServedQueue<usize>, fates: &PiMutex<Fates>, value: usize, full: WhenFull) {
    queue.put(value as u64, value, full, |value, why| {
        let fate = if why == Unserved::Full { FULL } else { CLOSED };
        note(fates, value, fate);
    });
}

#[test]
fn each_value_of_a_served_queue_has_one_fate_and_its_thread_ends() {
    for full in [WhenFull::DropNew, WhenFull::DropFirst, WhenFull::DropLast] {
        model_within(2, move || {
            let queue = Arc::new(ServedQueue::with_capacity(1));
            let fates = Arc::new(PiMutex::new(Fates::default()));
            let (other, others) = (Arc::clone(&queue), Arc::clone(&fates));
            let server = thread::spawn(move || other.serve(|value| note(&others, value, SERVED)));
            let (other, others) = (Arc::clone(&queue), Arc::clone(&fates));
            let putter = thread::spawn(move || put_into(&other, &others, 1, full));
            put_into(&queue, &fates, 0, full);
            queue.close();
            server.join().unwrap();
            putter.join().unwrap();
            let fates = *fates.lock("read");
            let is_one = fates.iter().all(|of| of.iter().sum::<usize>() == 1);
            assert!(is_one, "{full:?}: {fates:?}");
            assert!(queue.is_idle());
        });
    }
}

#[test]
fn a_served_queue_is_idle_once_all_that_was_put_in_is_served() {
    model(|| {
        let queue = Arc::new(ServedQueue::with_capacity(1));
        let fates = Arc::new(PiMutex::new(Fates::default()));
        let (other, others) = (Arc::clone(&queue), Arc::clone(&fates));
        let server = thread::spawn(move || other.serve_first(|value| note(&others, value, SERVED)));
        put_into(&queue, &fates, 0, WhenFull::DropNew);
        if queue.is_idle() {
            assert_eq!(fates.lock("read")[0][SERVED], 1);
        }
        server.join().unwrap();
    });
}

//! Budgets: what several holders take, and the share of each.

use super::*;

#[test]
fn of_two_who_want_more_than_a_half_of_a_budget_one_gets_it() {
    model(|| {
        let budget = Arc::new(Budget::new(10));
        let other = Arc::clone(&budget);
        // The call that asks for too much keeps nothing from the others.
        let thread = thread::spawn(move || !other.take(11) && other.take(6));
        let here = budget.take(6);
        assert!(budget.held() <= budget.max());
        let there = thread.join().unwrap();
        assert_ne!(here, there);
        assert_eq!(budget.give(6), 6);
        assert!(budget.take(10) && !budget.take(1));
    });
}

/// A channel's bound, and the events that wait in a queue under it.
struct Queued {
    bound: Budget,
    events: PiMutex<Vec<u32>>,
}

impl Queued {
    /// Takes the oldest event, and then gives its place back. Returns false if there is none.
    fn take_oldest(&self) -> bool {
        let oldest = {
            let mut events = self.events.lock("oldest");
            (!events.is_empty()).then(|| events.remove(0))
        };
        oldest.is_some_and(|_| self.bound.give(1) > 0)
    }

    /// Puts an event in. Without room the oldest is dropped. Returns false if there is none to drop.
    fn offer(&self, event: u32) -> bool {
        let has_room = self.bound.take_or(1, || self.take_oldest());
        assert!(self.bound.held() <= self.bound.max());
        if has_room {
            self.events.lock("offer").push(event);
        }
        has_room
    }
}

#[test]
fn room_that_is_given_back_is_found_by_all_who_make_room_and_the_bound_holds() {
    for has_consumer in [false, true] {
        model_within(2, move || {
            let queued = Arc::new(Queued {
                bound: Budget::new(2),
                events: PiMutex::new(Vec::new()),
            });
            assert!(queued.offer(1) && queued.offer(2));
            let other = Arc::clone(&queued);
            let supplier = thread::spawn(move || other.offer(3));
            let other = Arc::clone(&queued);
            let consumer = has_consumer.then(|| thread::spawn(move || other.take_oldest()));
            let here = queued.offer(4);
            let there = supplier.join().unwrap();
            match consumer {
                // It may own the last event that there is to drop, and give its place back later.
                Some(consumer) => {
                    let _ = consumer.join().unwrap();
                }
                None => assert!(here && there, "each finds an event to drop"),
            }
            assert_eq!(queued.bound.held(), queued.events.lock("read").len());
            while queued.take_oldest() {}
            assert_eq!(queued.bound.held(), 0);
        });
    }
}

#[test]
fn a_holder_with_several_threads_leaves_as_much_of_a_budget_as_it_has() {
    const BOUND: usize = 30;
    model(|| {
        let all = Arc::new((Budget::new(BOUND), Share::default(), Share::default()));
        let own = |all: &(Budget, Share, Share)| usize::from(all.1.take(&all.0, 10)) * 10;
        let other = Arc::clone(&all);
        let thread = thread::spawn(move || own(&other));
        let others = Arc::clone(&all);
        let stranger = thread::spawn(move || usize::from(others.2.take(&others.0, 5)) * 5);
        let here = own(&all);
        let (there, of_stranger) = (thread.join().unwrap(), stranger.join().unwrap());
        let (budget, share, stranger) = &*all;
        assert_eq!(share.held(), here + there);
        assert_eq!(stranger.held(), of_stranger);
        assert_eq!(budget.held(), here + there + of_stranger);
        assert!(here + there <= BOUND / 2, "one holder has at most a half");
        assert!(of_stranger == 5, "it had room all the time");
    });
}

#[test]
fn of_two_threads_of_one_holder_that_want_its_share_one_gets_it() {
    model(|| {
        let all = Arc::new((Budget::new(20), Share::default()));
        let other = Arc::clone(&all);
        let thread = thread::spawn(move || other.1.take(&other.0, 10));
        let here = all.1.take(&all.0, 10);
        assert_ne!(here, thread.join().unwrap());
        assert_eq!(all.1.give(&all.0, 10), 10);
        assert_eq!((all.0.held(), all.1.held()), (0, 0));
    });
}

/// A body of an event as the channel has it: charged to a bound, and kept for a later event by its last handle.
#[test]
fn octets_are_given_back_once_by_the_last_handle_and_their_memory_is_used_again() {
    struct Body {
        handles: Handles,
        octets: [u32; 1],
    }
    struct Store {
        bound: Budget,
        kept: Pool<Arc<Body>>,
    }
    fn end(store: &Store, body: Arc<Body>) {
        if body.handles.end() {
            assert_eq!(store.bound.give(1), 1, "once");
            assert!(store.kept.put(body).is_ok());
        }
    }
    model(|| {
        let store = Arc::new(Store {
            bound: Budget::new(1),
            kept: Pool::with_capacity(1),
        });
        assert!(store.bound.take(1));
        let mut body = Arc::new(Body {
            handles: Handles::default(),
            octets: [7],
        });
        Arc::get_mut(&mut body).expect("new").handles.begin();
        body.handles.add();
        let (other, others) = (Arc::clone(&body), Arc::clone(&store));
        let consumer = thread::spawn(move || {
            assert_eq!(other.octets, [7], "they stay for each handle");
            end(&others, other);
        });
        assert_eq!(body.octets, [7]);
        let is_alone = !body.handles.are_several();
        end(&store, body);
        if is_alone {
            assert_eq!(store.bound.held(), 0);
        }
        // The next event finds room, and the memory, or neither while the consumer has the last one.
        let has_room = store.bound.take(1);
        let mut kept = store.kept.take();
        assert!(has_room || kept.is_none());
        if let Some(inside) = kept.as_mut().and_then(Arc::get_mut) {
            inside.octets = [8];
        }
        consumer.join().unwrap();
        assert_eq!(store.bound.held(), usize::from(has_room));
    });
}

//! Lanes and their queues, without a channel.

use super::{
    Dispatcher, Dispatching, LaneOptions, QueueFull, QueueOptions, QueueOrder, Task, Urgency,
};
use deckwatch_orb::{Priority, SystemException, SystemExceptionKind as Kind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// What became of a task, and in which thread.
type Fate = (u32, &'static str, String);

struct Numbered {
    number: u32,
    fates: Sender<Fate>,
    /// The thread waits for it.
    gate: Option<Receiver<()>>,
}

impl Numbered {
    fn end(self, fate: &'static str) {
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        self.fates
            .send((self.number, fate, thread))
            .expect("the test listens");
    }
}

impl Task for Numbered {
    fn run(self) {
        if let Some(gate) = &self.gate {
            gate.recv_timeout(PATIENCE).expect("the gate opens");
        }
        self.end("sent");
    }

    fn drop_unsent(self, is_closed: bool) {
        self.end(if is_closed { "closed" } else { "full" });
    }
}

struct World {
    dispatcher: Dispatcher<Numbered>,
    sender: Sender<Fate>,
    fates: Receiver<Fate>,
    prepared: Arc<Mutex<Vec<Option<Priority>>>>,
}

impl World {
    fn new(options: &Dispatching) -> Self {
        let prepared = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&prepared);
        let prepare: Arc<dyn Fn(Option<Priority>) -> _ + Send + Sync> = Arc::new(move |priority| {
            seen.lock().expect("whole").push(priority);
            Ok(())
        });
        let (sender, fates) = channel();
        Self {
            dispatcher: Dispatcher::start(options, false, &prepare).expect("threads"),
            sender,
            fates,
            prepared,
        }
    }

    fn task(&self, number: u32) -> Numbered {
        Numbered {
            number,
            fates: self.sender.clone(),
            gate: None,
        }
    }

    fn dispatch(&self, priority: i16, deadline_ns: u64, worst_case_ns: u64, number: u32) {
        let urgency = Urgency {
            deadline_ns,
            worst_case_ns,
        };
        self.dispatcher
            .dispatch(at(priority), urgency, self.task(number));
    }

    /// Occupies a thread. It goes on when the sender is used.
    fn occupy(&self, priority: i16) -> Sender<()> {
        let (open, gate) = channel();
        let task = Numbered {
            gate: Some(gate),
            ..self.task(0)
        };
        self.dispatcher.dispatch(at(priority), Urgency::NONE, task);
        // The thread has taken it once the queue is empty.
        while !self
            .dispatcher
            .lanes
            .iter()
            .all(|lane| lane.queue_is_empty())
        {
            std::thread::yield_now();
        }
        open
    }

    fn next(&self) -> Fate {
        self.fates.recv_timeout(PATIENCE).expect("a fate")
    }

    fn numbers(&self, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.next().0).collect()
    }
}

fn at(priority: i16) -> Option<Priority> {
    Priority::new(priority)
}

fn queue(len: usize, order: QueueOrder, when_full: QueueFull) -> QueueOptions {
    QueueOptions {
        len,
        order,
        when_full,
    }
}

fn lane(priority: i16, queue: QueueOptions) -> LaneOptions {
    LaneOptions {
        priority: at(priority).expect("a priority"),
        threads: 1,
        queue,
    }
}

fn one_lane(order: QueueOrder, when_full: QueueFull) -> Dispatching {
    Dispatching::Lanes(vec![lane(10, queue(3, order, when_full))])
}

#[test]
fn reactive_dispatching_sends_in_the_callers_thread() {
    let world = World::new(&Dispatching::Reactive);
    world.dispatch(10, 0, 0, 1);
    let own = std::thread::current().name().unwrap_or_default().to_owned();
    assert_eq!(world.fates.try_recv(), Ok((1, "sent", own)));
}

#[test]
fn a_task_goes_to_the_lane_of_its_priority_else_to_the_nearest_lower_and_is_counted() {
    let lanes = [50, 10, 30].map(|priority| lane(priority, QueueOptions::default()));
    let world = World::new(&Dispatching::Lanes(lanes.to_vec()));
    let mut prepared = world.prepared.lock().unwrap().clone();
    prepared.sort_unstable();
    assert_eq!(prepared, [at(10), at(30), at(50)]);
    for (priority, thread, missed) in [
        (30, "dispatch-30", 0),
        (50, "dispatch-50", 0),
        (49, "dispatch-30", 1),
        (99, "dispatch-50", 2),
        (5, "dispatch-10", 3),
    ] {
        world.dispatch(priority, 0, 0, 1);
        assert_eq!(world.next(), (1, "sent", thread.to_owned()));
        assert_eq!(world.dispatcher.missed(), missed, "{priority}");
    }
    let task = world.task(2);
    world.dispatcher.dispatch(None, Urgency::NONE, task);
    assert_eq!(
        world.next().2,
        "dispatch-10",
        "no priority: the lowest lane"
    );
    assert_eq!(world.dispatcher.missed(), 3);
}

#[test]
fn queues_are_ordered_by_arrival_deadline_or_laxity() {
    for (order, expected) in [
        (QueueOrder::Arrival, [0, 1, 2, 3]),
        (QueueOrder::Deadline, [0, 2, 3, 1]),
        (QueueOrder::Laxity, [0, 3, 2, 1]),
    ] {
        let world = World::new(&one_lane(order, QueueFull::DropNew));
        let open = world.occupy(10);
        world.dispatch(10, 30, 1, 1);
        world.dispatch(10, 10, 1, 2);
        world.dispatch(10, 20, 19, 3);
        open.send(()).unwrap();
        assert_eq!(world.numbers(4), expected, "{order:?}");
    }
}

#[test]
fn a_full_queue_drops_by_its_policy_and_tells_whom() {
    for (when_full, lost, sent) in [
        (QueueFull::DropNew, 4, [0, 1, 2, 3]),
        (QueueFull::DropFirst, 1, [0, 2, 3, 4]),
    ] {
        let world = World::new(&one_lane(QueueOrder::Arrival, when_full));
        let open = world.occupy(10);
        for number in 1..=4 {
            world.dispatch(10, 0, 0, number);
        }
        let (number, fate, _) = world.next();
        assert_eq!((number, fate), (lost, "full"));
        open.send(()).unwrap();
        assert_eq!(world.numbers(4), sent);
    }
}

#[test]
fn highest_priority_is_that_of_the_most_urgent_lane() {
    let lanes = [30, 10].map(|priority| lane(priority, QueueOptions::default()));
    let world = World::new(&Dispatching::Lanes(lanes.to_vec()));
    assert_eq!(world.dispatcher.highest(), at(30));
    assert_eq!(
        World::new(&Dispatching::Reactive).dispatcher.highest(),
        None
    );
}

#[test]
fn what_is_dropped_for_room_is_of_the_lowest_lane() {
    for (order, low) in [
        (QueueOrder::Arrival, [1, 2, 3]),
        (QueueOrder::Deadline, [2, 3, 1]),
    ] {
        let lanes = [30, 10].map(|priority| lane(priority, queue(3, order, QueueFull::DropNew)));
        let world = World::new(&Dispatching::Lanes(lanes.to_vec()));
        let gates = [world.occupy(30), world.occupy(10)];
        for (priority, due, number) in [(30, 5, 9), (10, 10, 1), (10, 90, 2), (10, 20, 3)] {
            world.dispatch(priority, due, 0, number);
        }
        let refuse = |task: &Numbered| task.number == 9;
        assert!(!world.dispatcher.drop_one(refuse), "the lowest lane first");
        for lost in low.into_iter().chain([9]) {
            assert!(world.dispatcher.drop_one(|_| true));
            let (number, fate, _) = world.next();
            assert_eq!((number, fate), (lost, "full"), "{order:?}");
        }
        assert!(!world.dispatcher.drop_one(|_| true));
        for gate in gates {
            gate.send(()).unwrap();
        }
        assert_eq!(world.numbers(2), [0, 0]);
    }
}

#[test]
fn a_full_queue_by_deadline_or_laxity_keeps_what_is_due_first() {
    const NONE: u64 = u64::MAX;
    for order in [QueueOrder::Deadline, QueueOrder::Laxity] {
        let world = World::new(&one_lane(order, QueueFull::DropFirst));
        let open = world.occupy(10);
        let due = [(10, 1), (NONE, 2), (20, 3), (NONE, 4), (15, 5), (30, 6)];
        for (deadline_ns, number) in due {
            world.dispatch(10, deadline_ns, 0, number);
        }
        for lost in [4, 2, 6] {
            let (number, fate, _) = world.next();
            assert_eq!((number, fate), (lost, "full"), "{order:?}");
        }
        open.send(()).unwrap();
        assert_eq!(world.numbers(4), [0, 1, 5, 3], "{order:?}");
    }
}

#[test]
fn threads_end_if_a_later_lane_cannot_start() {
    let denied = SystemException::new(Kind::NoPermission, 0, deckwatch_orb::Completion::No);
    let prepare: Arc<dyn Fn(Option<Priority>) -> _ + Send + Sync> = Arc::new(move |priority| {
        if priority == at(20) {
            Err(denied)
        } else {
            Ok(())
        }
    });
    let lanes = [10, 20].map(|priority| lane(priority, QueueOptions::default()));
    let refused =
        Dispatcher::<Numbered>::start(&Dispatching::Lanes(lanes.to_vec()), false, &prepare);
    assert_eq!(refused.err(), Some(denied));
    let started = std::time::Instant::now();
    // Each thread holds it until its end.
    while Arc::strong_count(&prepare) > 1 {
        assert!(started.elapsed() < PATIENCE, "a thread waits for ever");
        std::thread::yield_now();
    }
}

#[test]
fn closing_sends_what_is_queued_and_returns_what_comes_later() {
    let world = World::new(&one_lane(QueueOrder::Arrival, QueueFull::DropNew));
    let open = world.occupy(10);
    world.dispatch(10, 0, 0, 1);
    world.dispatcher.close();
    world.dispatch(10, 0, 0, 2);
    let (number, fate, _) = world.next();
    assert_eq!((number, fate), (2, "closed"));
    assert!(!world.dispatcher.is_idle());
    open.send(()).unwrap();
    assert_eq!(world.numbers(2), [0, 1]);
}

#[test]
fn a_pool_shares_one_queue_and_has_no_priority() {
    let options = Dispatching::Pool {
        threads: 3,
        queue: QueueOptions::default(),
    };
    let world = World::new(&options);
    assert_eq!(world.prepared.lock().unwrap()[..], [None; 3]);
    let gates = [world.occupy(1), world.occupy(2)];
    world.dispatch(40, 0, 0, 1);
    assert_eq!(world.next().0, 1, "the third thread serves");
    assert_eq!(world.dispatcher.missed(), 0);
    for gate in gates {
        gate.send(()).unwrap();
    }
    assert_eq!(world.numbers(2), [0, 0]);
}

#[test]
fn options_out_of_bounds_are_refused() {
    let prepare: Arc<dyn Fn(Option<Priority>) -> Result<(), SystemException> + Send + Sync> =
        Arc::new(|_| Ok(()));
    let sound = lane(1, QueueOptions::default());
    let no_thread = LaneOptions {
        threads: 0,
        ..sound
    };
    let no_place = lane(1, queue(0, QueueOrder::Arrival, QueueFull::DropNew));
    for lanes in [vec![], vec![sound, sound], vec![no_thread], vec![no_place]] {
        let refused = Dispatcher::<Numbered>::start(&Dispatching::Lanes(lanes), false, &prepare);
        assert_eq!(refused.err().map(|error| error.kind), Some(Kind::BadParam));
    }
    let denied = SystemException::new(Kind::NoPermission, 0, deckwatch_orb::Completion::No);
    let prepare: Arc<dyn Fn(Option<Priority>) -> _ + Send + Sync> = Arc::new(move |_| Err(denied));
    let refused = Dispatcher::<Numbered>::start(&Dispatching::Lanes(vec![sound]), false, &prepare);
    assert_eq!(refused.err(), Some(denied));
}

//! Mutexes of real-time CORBA by clause (RTCORBA 1.x, clause 5.12): the owner inherits the priority of a waiting
//! thread.

use std::fs::read_to_string;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

use crate::common::rt::may_be_real_time;
use deckwatch_orb::{
    Completion, MutexNotFound, Orb, RtMutex, RtOrb, SystemException, SystemExceptionKind as Kind,
    limits, own_minor,
};
use deckwatch_os::schedule::{Class, affinity, set_affinity, set_class};

/// Upper limit for any machine. A test that passes does not wait so long.
const LONG: Duration = Duration::from_secs(600);

fn rt_orb() -> RtOrb {
    Orb::builder()
        .build()
        .expect("an ORB without endpoints")
        .rt_orb()
}

fn raised(kind: Kind, minor: u32) -> SystemException {
    SystemException::new(kind, minor, Completion::No)
}

fn elsewhere<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    spawn(run).join().expect("no panic")
}

#[test]
fn a_mutex_is_had_by_one_thread_at_a_time() {
    let mutex = rt_orb().create_mutex();
    let inside = Arc::new(Mutex::new((0_u32, 0_u32)));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (mutex, inside) = (mutex.clone(), Arc::clone(&inside));
            spawn(move || {
                for _ in 0..2_000 {
                    mutex.lock().expect("it is there");
                    let seen = inside.lock().expect("no panic").0;
                    std::thread::yield_now();
                    inside.lock().expect("no panic").0 = seen + 1;
                    mutex.unlock().expect("it is ours");
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().expect("no panic"));
    assert_eq!(inside.lock().expect("no panic").0, 8_000);
}

#[test]
fn try_lock_waits_no_longer_than_it_is_told() {
    let mutex = rt_orb().create_mutex();
    assert_eq!(mutex.try_lock(Duration::ZERO), Ok(true));
    assert_eq!(
        mutex.try_lock(LONG),
        Ok(false),
        "nobody has it twice, and none waits for itself"
    );
    let other = mutex.clone();
    let tried = elsewhere(move || {
        [Duration::ZERO, Duration::from_millis(5)].map(|wait| other.try_lock(wait))
    });
    assert_eq!(tried, [Ok(false); 2]);
    let other = mutex.clone();
    let waiting = spawn(move || {
        other
            .try_lock(LONG)
            .inspect(|_| other.unlock().expect("it is ours"))
    });
    mutex.unlock().expect("it is ours");
    assert_eq!(waiting.join().expect("no panic"), Ok(true));
}

#[test]
fn only_the_holder_unlocks() {
    let mutex = rt_orb().create_mutex();
    let not_held = Err(raised(Kind::BadInvOrder, own_minor::MUTEX_NOT_HELD));
    assert_eq!(mutex.unlock(), not_held);
    mutex.lock().expect("it is free");
    let other = mutex.clone();
    assert_eq!(elsewhere(move || other.unlock()), not_held);
    assert_eq!(mutex.unlock(), Ok(()));
    assert_eq!(mutex.unlock(), not_held);
}

#[test]
fn who_would_wait_for_ever_is_told() {
    let mutex = rt_orb().create_mutex();
    mutex.lock().expect("it is free");
    assert_eq!(
        mutex.lock(),
        Err(raised(Kind::BadInvOrder, own_minor::MUTEX_DEADLOCK))
    );
    mutex.unlock().expect("it is ours");
    let other = mutex.clone();
    elsewhere(move || other.lock()).expect("it is free");
    assert_eq!(
        mutex.lock(),
        Err(raised(Kind::BadInvOrder, own_minor::MUTEX_ABANDONED))
    );
}

#[test]
fn a_destroyed_mutex_does_not_exist_and_a_held_one_is_not_destroyed() {
    let orb = rt_orb();
    let (mutex, _) = orb.create_named_mutex("deck").expect("room");
    mutex.lock().expect("it is free");
    let held = Err(raised(Kind::BadInvOrder, own_minor::MUTEX_HELD));
    assert_eq!(orb.destroy_mutex(&mutex), held);
    mutex.unlock().expect("it is ours");
    assert_eq!(orb.destroy_mutex(&mutex), Ok(()));
    let gone = raised(Kind::ObjectNotExist, own_minor::MUTEX_DESTROYED);
    assert_eq!(mutex.lock(), Err(gone));
    assert_eq!(mutex.try_lock(Duration::ZERO), Err(gone));
    assert_eq!(orb.destroy_mutex(&mutex), Err(gone));
    assert_eq!(orb.open_named_mutex("deck"), Err(MutexNotFound));
    let (again, created) = orb.create_named_mutex("deck").expect("room");
    assert!(created && again != mutex);
}

#[test]
fn a_name_leads_to_one_mutex() {
    let orb = rt_orb();
    assert_eq!(orb.open_named_mutex("deck"), Err(MutexNotFound));
    let (first, created) = orb.create_named_mutex("deck").expect("room");
    assert!(created);
    let (second, created) = orb.create_named_mutex("deck").expect("room");
    assert!(!created && first == second);
    assert_eq!(orb.open_named_mutex("deck"), Ok(first.clone()));
    assert!(orb.create_named_mutex("hold").expect("room").0 != first);
    assert_eq!(
        rt_orb().open_named_mutex("deck"),
        Err(MutexNotFound),
        "names are of their ORB"
    );
}

#[test]
fn the_table_of_names_is_bounded() {
    let orb = rt_orb();
    for number in 0..limits::NAMED_MUTEXES_MAX {
        orb.create_named_mutex(&number.to_string()).expect("room");
    }
    let full = raised(Kind::ImpLimit, own_minor::TOO_MANY_MUTEXES);
    assert_eq!(orb.create_named_mutex("one more"), Err(full));
    assert!(!orb.create_named_mutex("7").expect("it is there").1);
    let seventh = orb.open_named_mutex("7").expect("it is there");
    orb.destroy_mutex(&seventh).expect("nobody holds it");
    assert!(orb.create_named_mutex("one more").is_ok());
}

const LOW: u8 = 10;
const MIDDLE: u8 = 20;
const HIGH: u8 = 30;
const DIRECTOR: u8 = 40;

/// Starts a thread on one processor, in the real-time class.
fn at(priority: u8, processor: u32, run: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    spawn(move || {
        set_affinity(&[processor]).expect("permitted");
        set_class(Class::Fifo(priority)).expect("tried before");
        run();
    })
}

/// The kernel's id of the calling thread.
fn own_number() -> u32 {
    let stat = read_to_string("/proc/thread-self/stat").expect("proc is there");
    stat.split(' ')
        .next()
        .expect("the number")
        .parse()
        .expect("a number")
}

/// The current scheduler priority of a thread, inherited priority included. `None` in the time-sharing class.
fn effective(thread: u32) -> Option<u8> {
    let stat = read_to_string(format!("/proc/self/task/{thread}/stat")).expect("it lives");
    // The name is in parentheses and may contain anything. The priority is the sixteenth field after it.
    let fields = stat.rsplit_once(") ").expect("a name").1;
    let priority: i32 = fields
        .split(' ')
        .nth(15)
        .expect("the priority")
        .parse()
        .expect("a number");
    u8::try_from(-1 - priority).ok()
}

/// State that the threads of a test share.
#[derive(Clone)]
struct Stage {
    mutex: RtMutex,
    /// The events, in order.
    story: Arc<Mutex<Vec<&'static str>>>,
}

impl Stage {
    fn tell(&self, what: &'static str) {
        self.story.lock().expect("no panic").push(what);
    }
}

fn wait_for<T>(what: &Receiver<T>) -> T {
    what.recv_timeout(LONG).expect("it comes")
}

/// Starts the low thread: it locks the mutex, waits at `gate`, and unlocks. Returns the thread and its kernel id once
/// it owns the mutex.
fn low(stage: &Stage, processor: u32, gate: Receiver<()>) -> (JoinHandle<()>, u32) {
    let (here, arrived) = channel();
    let stage = stage.clone();
    let thread = at(LOW, processor, move || {
        stage.mutex.lock().expect("it is free");
        here.send(own_number()).expect("the test waits");
        wait_for(&gate);
        stage.tell("low unlocks");
        stage.mutex.unlock().expect("it is ours");
    });
    let number = wait_for(&arrived);
    (thread, number)
}

fn high(stage: &Stage, processor: u32) -> JoinHandle<()> {
    let stage = stage.clone();
    at(HIGH, processor, move || {
        stage.mutex.lock().expect("it comes free");
        stage.tell("high has it");
        stage.mutex.unlock().expect("it is ours");
    })
}

/// Computes for a limited time on any machine.
fn middle(stage: &Stage, processor: u32, gate: Receiver<()>) -> JoinHandle<()> {
    let stage = stage.clone();
    at(MIDDLE, processor, move || {
        wait_for(&gate);
        let sum = (0_u64..200_000).fold(0, |sum, number| sum ^ std::hint::black_box(number));
        std::hint::black_box(sum);
        stage.tell("middle has run");
    })
}

fn real_time_processor() -> Option<u32> {
    if !may_be_real_time() {
        return None;
    }
    affinity().expect("readable").last().copied()
}

#[test]
fn who_holds_a_mutex_runs_at_the_priority_of_the_highest_that_waits() {
    let Some(processor) = real_time_processor() else {
        return;
    };
    let stage = Stage {
        mutex: rt_orb().create_mutex(),
        story: Arc::default(),
    };
    let (open_low, gate) = channel();
    let (low, number) = low(&stage, processor, gate);
    assert_eq!(effective(number), Some(LOW));
    let high = high(&stage, processor);
    // No other thread runs now, so the kernel's answer does not depend on the moment.
    let limit = Instant::now() + LONG / 10;
    while effective(number) == Some(LOW) && Instant::now() < limit {
        std::thread::yield_now();
    }
    assert_eq!(effective(number), Some(HIGH));
    let (open_middle, gate) = channel();
    let middle = middle(&stage, processor, gate);
    // This thread has the highest priority, so that both threads can run only after it ends.
    at(DIRECTOR, processor, move || {
        open_middle.send(()).expect("middle waits");
        open_low.send(()).expect("low waits");
    })
    .join()
    .expect("no panic");
    for thread in [low, middle, high] {
        thread.join().expect("no panic");
    }
    let story = stage.story.lock().expect("no panic").clone();
    assert_eq!(story, ["low unlocks", "high has it", "middle has run"]);
}

#[test]
fn a_lent_priority_is_given_back_with_the_mutex_and_when_the_waiter_gives_up() {
    let Some(processor) = real_time_processor() else {
        return;
    };
    let mutex = rt_orb().create_mutex();
    let (orders, gate): (Sender<()>, _) = channel();
    let (here, arrived) = channel();
    let is_done = Arc::new(AtomicBool::new(false));
    let holder = {
        let (mutex, is_done) = (mutex.clone(), Arc::clone(&is_done));
        at(LOW, processor, move || {
            mutex.lock().expect("it is free");
            here.send(own_number()).expect("the test waits");
            wait_for(&gate);
            mutex.unlock().expect("it is ours");
            is_done.store(true, Ordering::SeqCst);
            wait_for(&gate);
        })
    };
    let number = wait_for(&arrived);
    let waiter = mutex.clone();
    let gave_up = at(HIGH, processor, move || {
        assert_eq!(waiter.try_lock(Duration::from_secs(1)), Ok(false));
    });
    let mut was_lent = false;
    while !gave_up.is_finished() {
        was_lent |= effective(number) == Some(HIGH);
    }
    gave_up.join().expect("no panic");
    assert!(
        was_lent,
        "the holder had the priority while the other waited"
    );
    assert_eq!(effective(number), Some(LOW));
    orders.send(()).expect("the holder waits");
    while !is_done.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    assert_eq!(effective(number), Some(LOW));
    orders.send(()).expect("the holder waits");
    holder.join().expect("no panic");
}

//! The threads of a lane: the static ones, those that are added while all serve, and their priority.

use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::seat::Seat;
use super::waiting::Keeper;
use super::{Lane, ThreadStart, Turned};
use crate::counters::Counter;
use crate::limits::{ADOPTION_SPARE, BUFFERS_PER_THREAD, TURNS_UNTIL_YIELD};
use crate::rt::current::replace;
use crate::server::priority::note_class;
use crate::transport::{is_time_sharing, may_spin};
use crate::{Completion, SystemException, current, raise, raise::own};

/// The threads of a lane.
pub(super) struct Threads {
    seats: Box<[Seat]>,
    /// Threads that wait in the poller.
    waiting: AtomicUsize,
    /// Connections that a thread has adopted.
    adopted: AtomicUsize,
    handles: Mutex<Vec<JoinHandle<()>>>,
    start: Option<ThreadStart>,
}

/// Frees a seat when its thread ends, also by a panic.
struct SeatTaken<'s>(&'s Seat);

impl Drop for SeatTaken<'_> {
    fn drop(&mut self) {
        self.0.free();
    }
}

/// A new thread reports once: it runs at its priority, or why it cannot.
type Started = SyncSender<Result<(), SystemException>>;

impl Threads {
    pub(super) fn new(max: usize, start: Option<ThreadStart>) -> Self {
        Self {
            seats: (0..max).map(|_| Seat::default()).collect(),
            waiting: AtomicUsize::new(0),
            adopted: AtomicUsize::new(0),
            handles: Mutex::default(),
            start,
        }
    }

    /// Threads that the lane has at most.
    pub(super) fn max(&self) -> usize {
        self.seats.len()
    }

    pub(super) fn seats(&self) -> &[Seat] {
        &self.seats
    }

    pub(super) fn seat(&self, seat: usize) -> &Seat {
        &self.seats[seat]
    }

    /// Threads that the lane has now.
    pub(super) fn taken(&self) -> usize {
        self.seats.iter().filter(|seat| seat.is_taken()).count()
    }

    /// Counts the calling thread as waiting in the poller.
    #[inline]
    pub(super) fn begin_waiting(&self) {
        // SYNC: pairs with `end_wait`, where a thread that leaves housekeeping looks for a successor; and with every
        // check of `is_one_waiting` behind a change that a waiting thread must see.
        self.waiting.fetch_add(1, Ordering::SeqCst);
    }

    #[inline]
    pub(super) fn end_waiting(&self) {
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }

    /// Threads that wait in the poller.
    #[inline]
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Whether a thread waits in the poller.
    #[inline]
    pub(super) fn is_one_waiting(&self) -> bool {
        self.waiting() != 0
    }

    /// Whether so many threads wait in the poller that one of them may block for longer elsewhere.
    pub(super) fn has_spare(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) >= ADOPTION_SPARE
    }

    #[inline]
    pub(super) fn has_adopted(&self) -> bool {
        self.adopted.load(Ordering::Relaxed) != 0
    }

    /// Counts an adoption. Returns whether it is the only one.
    pub(super) fn begin_adoption(&self) -> bool {
        self.adopted.fetch_add(1, Ordering::AcqRel) == 0
    }

    pub(super) fn end_adoption(&self) {
        self.adopted.fetch_sub(1, Ordering::AcqRel);
    }

    /// Takes all handles, to join the threads.
    pub(super) fn take_handles(&self) -> Vec<JoinHandle<()>> {
        std::mem::take(&mut *self.handles.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn keep_handle(&self, thread: JoinHandle<()>) {
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        handles.retain(|thread| !thread.is_finished());
        handles.push(thread);
    }

    /// Starts the static threads and the keeper, and returns when each of them runs at its priority.
    ///
    /// # Errors
    /// As [`Lane::start`].
    pub(super) fn start(&self, lane: &Arc<Lane>) -> Result<(), SystemException> {
        let refused = || raise::no_resources(own::THREAD_REFUSED, Completion::No);
        let (started, arrivals) = sync_channel(lane.shape.threads + 1);
        for seat in 0..lane.shape.threads {
            self.seats[seat].take();
            self.add(lane, seat, None, Some(started.clone()))
                .map_err(|_| refused())?;
        }
        self.add_keeper(lane, started).map_err(|_| refused())?;
        // Ends when every thread has dropped its sender.
        arrivals.iter().collect()
    }

    /// Starts the keeper, if the lane has one.
    fn add_keeper(&self, lane: &Arc<Lane>, started: Started) -> std::io::Result<()> {
        let Some(keeper) = Keeper::of(lane) else {
            return Ok(());
        };
        let name = lane.id.keeper_name();
        let lane = Arc::clone(lane);
        let run = move || {
            lane.server.note_own_thread();
            let begun = lane.threads.begin(&lane);
            let is_refused = begun.is_err();
            // The starter may have given up.
            let _ = started.send(begun);
            drop(started);
            if !is_refused {
                keeper.run();
            }
        };
        let keeper = std::thread::Builder::new().name(name).spawn(run)?;
        self.keep_handle(keeper);
        Ok(())
    }

    /// Starts a thread at a seat that has been taken for it. `idle`: how long it waits for work before it ends; without
    /// it, for ever.
    fn add(
        &self,
        lane: &Arc<Lane>,
        seat: usize,
        idle: Option<Duration>,
        started: Option<Started>,
    ) -> std::io::Result<()> {
        let of_lane = Arc::clone(lane);
        let run = move || {
            let lane = of_lane;
            let place = lane.threads.seat(seat);
            let seat_taken = SeatTaken(place);
            lane.server.note_own_thread();
            let begun = lane.threads.begin(&lane);
            let is_refused = begun.is_err();
            if let Some(started) = started {
                // The starter may have given up.
                let _ = started.send(begun);
            }
            if is_refused {
                return lane.io.count(Counter::ThreadsRefused);
            }
            if idle.is_some() && place.take_supply() {
                lane.io.slab.fill(BUFFERS_PER_THREAD);
            }
            lane.threads.run(&lane, seat, idle);
            drop(seat_taken);
            // SYNC: pairs with the fence in `keep_watch`: the last thread to leave the poller has found this seat free,
            // or we see that no thread is there.
            fence(Ordering::SeqCst);
            lane.keep_watch();
        };
        let mut builder = std::thread::Builder::new().name(lane.id.thread_name(seat));
        if lane.id.stack_size != 0 {
            builder = builder.stack_size(lane.id.stack_size);
        }
        let thread = builder.spawn(run).inspect_err(|_| {
            self.seats[seat].free();
            lane.io.count(Counter::ThreadsRefused);
        })?;
        self.keep_handle(thread);
        Ok(())
    }

    /// Allocates what a thread keeps for itself, so that its first request does not, and takes its priority.
    fn begin(&self, lane: &Lane) -> Result<(), SystemException> {
        if let Some(start) = &self.start {
            start();
        }
        current::enter(&lane.orb);
        crate::adapter::prepare();
        take_priority(lane)?;
        note_class();
        if lane.shape.spin.is_some() && !may_spin() {
            return Err(raise::bad_param(own::SPIN_IN_REAL_TIME, Completion::No));
        }
        Ok(())
    }

    /// No thread waits in the poller: adds one if there is a free seat. Returns whether it did.
    pub(super) fn add_watcher(&self, lane: &Lane) -> bool {
        // SYNC: pairs with the fence at the end of a thread.
        fence(Ordering::SeqCst);
        if lane.is_closing() {
            return true;
        }
        let Some(lane) = lane.this() else {
            return false;
        };
        let free = self.seats.iter().position(Seat::take);
        let added =
            free.is_some_and(|seat| self.add(&lane, seat, Some(lane.id.idle), None).is_ok());
        if added {
            lane.io.count(Counter::ThreadsAdded);
        }
        added
    }

    fn run(&self, lane: &Lane, seat: usize, idle: Option<Duration>) {
        let mut idle_since = None;
        let mut turns_served = 0;
        let is_real_time = !is_time_sharing();
        loop {
            if idle.is_some() {
                idle_since.get_or_insert_with(|| lane.io.now());
            }
            match lane.turn(Some(seat), idle) {
                Turned::Served => {
                    idle_since = None;
                    // A thread of a real-time class holds its processor while events wait. A thread that waits in the
                    // read of an adopted connection would get it only behind all of them.
                    if is_real_time && self.has_adopted() {
                        turns_served += 1;
                        if turns_served == TURNS_UNTIL_YIELD {
                            turns_served = 0;
                            std::thread::yield_now();
                        }
                    }
                }
                Turned::Closed => return,
                // Many short waits are a long one.
                Turned::Kept | Turned::Idle => {
                    let (Some(idle), Some(since)) = (idle, idle_since) else {
                        continue;
                    };
                    let waited = lane.io.now().since(since) + TIMER_STEP;
                    if waited >= idle && self.is_one_waiting() {
                        // This thread may have been the one that answers for housekeeping.
                        return lane.io.poller.wake();
                    }
                }
            }
        }
    }
}

/// A wait may end so much too early.
const TIMER_STEP: Duration = Duration::from_millis(1);

/// Puts the calling thread at the lane's priority. If the host does not permit it and the ORB may do without, the
/// thread stays where it is, which is counted.
fn take_priority(lane: &Lane) -> Result<(), SystemException> {
    let Some(priority) = lane.id.priority else {
        return Ok(());
    };
    lane.priorities.enter(priority)?;
    replace(Some(priority));
    Ok(())
}

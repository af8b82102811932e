//! The threads of a lane: the static ones, those that come while all serve, and their priority.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::{Lane, Turned};
use crate::adapter::{Patience, WaitPermits};
use crate::counters::Counter;
use crate::lane::follow::Seat;
use crate::limits::BUFFERS_PER_THREAD;
use crate::rt::current::{AtPriority, replace};
use crate::server::priority::note_class;
use crate::transport::may_spin;
use crate::{Completion, SystemException, current, raise, raise::own};

/// Gives a seat back when its thread ends, in whatever way.
struct SeatTaken<'s>(&'s AtomicBool);

impl Drop for SeatTaken<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Told once by a thread: it is there, or why it cannot be.
type Here = SyncSender<Result<(), SystemException>>;

impl Lane {
    /// Starts the static threads, and returns when each of them is there and at its priority.
    ///
    /// # Errors
    /// NO_RESOURCES where a thread could not be started, or the host does not permit its priority; DATA_CONVERSION where no native
    /// priority is mapped to it; BAD_PARAM where the lane is to spin and its threads have a real-time class. Threads that could are there all the same: the lane is to be shut down.
    pub(crate) fn start(self: &Arc<Self>) -> Result<(), SystemException> {
        let _started_once = self.this.set(Arc::downgrade(self));
        let (here, arrivals) = sync_channel(self.shape.threads + 1);
        for seat in 0..self.shape.threads {
            self.add_thread(seat, None, Some(here.clone()))
                .map_err(|_| raise::no_resources(raise::own::THREAD_REFUSED, Completion::No))?;
        }
        self.add_keeper(here)?;
        // Ends when every thread has let go of its end.
        arrivals.iter().collect()
    }

    /// Starts the keeper, where the lane has one.
    fn add_keeper(self: &Arc<Self>, here: Here) -> Result<(), SystemException> {
        let Some(room) = self.room.clone() else {
            return Ok(());
        };
        let lane = Arc::clone(self);
        let run = move || {
            lane.server.note_own_thread();
            let begun = lane.begin_thread();
            let refused = begun.is_err();
            let _starter_gave_up = here.send(begun);
            drop(here);
            if !refused {
                lane.keep(&room);
            }
        };
        let builder = std::thread::Builder::new().name(self.station.keeper_name());
        let keeper = builder
            .spawn(run)
            .map_err(|_| raise::no_resources(raise::own::THREAD_REFUSED, Completion::No))?;
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.push(keeper);
        Ok(())
    }

    fn add_thread(
        self: &Arc<Self>,
        seat: usize,
        idle: Option<Duration>,
        here: Option<Here>,
    ) -> std::io::Result<()> {
        let lane = Arc::clone(self);
        self.seats[seat].taken.store(true, Ordering::Release);
        let run = move || {
            let seat_taken = SeatTaken(&lane.seats[seat].taken);
            lane.server.note_own_thread();
            let begun = lane.begin_thread();
            let refused = begun.is_err();
            if let Some(here) = here {
                let _starter_gave_up = here.send(begun);
            }
            if refused {
                return lane.counters.count(Counter::ThreadsRefused);
            }
            if idle.is_some() && !lane.seats[seat].is_supplied.swap(true, Ordering::Relaxed) {
                lane.slab.fill(BUFFERS_PER_THREAD);
            }
            lane.run(seat, idle);
            drop(seat_taken);
            // SYNC: pairs with the fence in `keep_watch`: who was the last to leave the poller has found this seat free, or we
            // see that nobody is there.
            fence(Ordering::SeqCst);
            lane.keep_watch();
        };
        let mut builder = std::thread::Builder::new().name(self.station.thread_name(seat));
        if self.station.stack_size != 0 {
            builder = builder.stack_size(self.station.stack_size);
        }
        let thread = builder.spawn(run).inspect_err(|_| {
            self.seats[seat].taken.store(false, Ordering::Release);
            self.counters.count(Counter::ThreadsRefused);
        })?;
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
        Ok(())
    }

    /// What a thread keeps for itself is taken now, not by its first request.
    fn begin_thread(&self) -> Result<(), SystemException> {
        if let Some(start) = &self.thread_start {
            start();
        }
        current::enter(&self.orb);
        crate::adapter::prepare();
        self.take_priority()?;
        note_class();
        if self.shape.spin.is_some() && !may_spin() {
            return Err(raise::bad_param(own::SPIN_IN_REAL_TIME, Completion::No));
        }
        Ok(())
    }

    /// Puts the calling thread at the lane's priority. Where the host does not permit it and the ORB may do without, it stays
    /// where it is, which is counted.
    fn take_priority(&self) -> Result<(), SystemException> {
        let Some(priority) = self.station.priority else {
            return Ok(());
        };
        let gone = raise::no_resources(raise::own::THREAD_REFUSED, Completion::No);
        let orb = self.orb.upgrade().ok_or(gone)?;
        orb.enter_priority(priority)?;
        replace(Some(priority));
        Ok(())
    }

    /// Takes a thread of another lane to the priority of this one. Where the host does not permit it any more it serves as it is.
    pub(crate) fn lend_priority(&self) -> Option<AtPriority> {
        self.orb.upgrade()?.lend_priority(self.station.priority)
    }

    /// How the calling thread may wait for a reply that a thread of this lane has to read: not as the last of them.
    pub(crate) fn patience_for_replies(&self) -> Patience<'_> {
        static NONE: WaitPermits = WaitPermits::new(0);
        let is_reader = self.shape.threads == 0 || self.server.is_own_thread();
        let has_others = self.seats.len() > 1;
        is_reader.then_some(if has_others {
            &self.server.wait_permits
        } else {
            &NONE
        })
    }

    /// Keeps a thread in the poller where the last one has left it to serve.
    pub(crate) fn keep_watch(self: &Arc<Self>) {
        let has_none = self.shape.threads_dynamic == 0 && self.room.is_none();
        if has_none || self.waiting.load(Ordering::SeqCst) != 0 {
            return;
        }
        // SYNC: pairs with the fence at the end of a thread.
        fence(Ordering::SeqCst);
        if self.closing.load(Ordering::Acquire) {
            return;
        }
        let free = |seat: &Seat| {
            seat.taken
                .compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        };
        if let Some(seat) = self.seats.iter().position(free)
            && self.add_thread(seat, Some(self.station.idle), None).is_ok()
        {
            return self.counters.count(Counter::ThreadsAdded);
        }
        if let Some(room) = &self.room {
            self.settle_keeper(room);
        }
    }

    fn run(self: &Arc<Self>, seat: usize, idle: Option<Duration>) {
        let mut idle_since = None;
        loop {
            if idle.is_some() {
                idle_since.get_or_insert_with(|| self.transport.now());
            }
            match self.turn(Some(seat), idle) {
                Turned::Served => idle_since = None,
                Turned::Closed => return,
                // Many short waits are a long one.
                Turned::Kept | Turned::Idle => {
                    let (Some(idle), Some(since)) = (idle, idle_since) else {
                        continue;
                    };
                    let waited = self.transport.now().since(since) + TIMER_STEP;
                    if waited >= idle && self.waiting.load(Ordering::Acquire) != 0 {
                        // It may have been the one that keeps the lane.
                        return self.poller.wake();
                    }
                }
            }
        }
    }
}

/// A wait may end so much too early.
const TIMER_STEP: Duration = Duration::from_millis(1);

//! The keeper of a lane, a thread at the lane's priority that serves nothing. While all threads of the lane serve, it
//! reads what comes, queues requests up to the limits of the pool and refuses the others at once, or has a thread of a
//! lower lane serve them (borrowing).
//!
//! It waits in a poller that watches the lane's, and only while no thread waits in that one: a lane that has a thread
//! to spare never wakes it.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::WaitingRoom;
use crate::lane::Lane;
use crate::limits::KEEPER_PAUSE;

thread_local! {
    /// The address of the lane that the calling thread keeps; 0: none.
    static KEPT: Cell<usize> = const { Cell::new(0) };
}

/// Whether the calling thread is the keeper of this lane.
pub(super) fn keeps(lane: &Lane) -> bool {
    KEPT.get() == std::ptr::from_ref(lane).addr()
}

/// The keeper of a lane.
pub(crate) struct Keeper {
    lane: Arc<Lane>,
    room: Arc<WaitingRoom>,
}

impl Keeper {
    /// Returns `None` if the lane needs none.
    pub(crate) fn of(lane: &Arc<Lane>) -> Option<Self> {
        let room = Arc::clone(lane.waiting.room.as_ref()?);
        let lane = Arc::clone(lane);
        Some(Self { lane, room })
    }

    /// Runs until the lane closes.
    pub(crate) fn run(&self) {
        let (lane, room) = (&*self.lane, &*self.room);
        KEPT.set(std::ptr::from_ref(lane).addr());
        let is_open = || !lane.closing.load(Ordering::Acquire);
        let is_needed = || !lane.threads.is_one_waiting() && is_open();
        while is_open() {
            room.wait(lane.housekeeping_period().filter(|_| is_needed()));
            while is_needed() {
                lane.do_housekeeping();
                // A thread that is about to come back to the poller is given that moment: nothing has to wait for it.
                if room.busy() < lane.threads.taken() {
                    std::thread::sleep(KEEPER_PAUSE);
                    continue;
                }
                if self.is_starving() {
                    break;
                }
                let Some(event) = lane.io.poller.wait(Some(Duration::ZERO)) else {
                    break;
                };
                lane.handle_event(event, None);
            }
            if lane.threads.is_one_waiting() {
                lane.settle_keeper(room);
                // The wake-up may have been meant for the thread that waits.
                lane.io.poller.wake();
            }
        }
    }

    /// Whether the keeper must leave requests unread until a lower lane has a thread to lend.
    fn is_starving(&self) -> bool {
        let (lane, room) = (&*self.lane, &*self.room);
        if lane.may_keeper_read(room) {
            return false;
        }
        // SYNC: pairs with `has_waiting`: a thread to lend sees that we starve, or we see the thread.
        room.set_starving();
        if lane.may_keeper_read(room) {
            room.end_starving();
            return false;
        }
        lane.settle_keeper(room);
        true
    }
}

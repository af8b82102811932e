//! Housekeeping: what a lane does by the clock because no event reports it. It resumes accepting, watches adopted
//! connections with a long request, and closes connections whose message does not end, whose peer does not read, or
//! that are idle.
//!
//! One of the threads in the poller comes back in time for housekeeping; the others sleep until there is an event.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::transport::Instant64;

/// How a thread waits in the poller.
pub(super) struct Wait {
    /// How long at most.
    pub(super) limit: Option<Duration>,
    /// The limit is the caller's, not that of housekeeping.
    pub(super) is_patience: bool,
    /// Until when this thread answers for housekeeping; 0: it does not.
    keeps_until: u64,
}

/// When housekeeping is due.
#[derive(Default)]
pub(super) struct Housekeeping {
    /// All of it.
    due: AtomicU64,
    /// The look for overdue messages and replies.
    overdue_due: AtomicU64,
    /// The last one of those looks came late, and was left out.
    left_out: AtomicBool,
    /// The look for idle connections.
    idle_due: AtomicU64,
    /// Until when a thread waits in the poller that then does housekeeping; 0: none does.
    kept_until: AtomicU64,
}

impl Housekeeping {
    /// How the calling thread waits. `chores`: how often housekeeping is due; `start`: when the next request may be
    /// served that waits for its start time.
    pub(super) fn begin_wait(
        &self,
        patience: Option<Duration>,
        chores: Option<Duration>,
        start: Option<Instant64>,
        now: impl FnOnce() -> Instant64,
    ) -> Wait {
        let others = Wait {
            limit: patience,
            is_patience: true,
            keeps_until: 0,
        };
        if chores.is_none() && start.is_none() {
            return others;
        }
        let now = now();
        let start = start.map(|start| start.since(now));
        let Some(period) = chores.into_iter().chain(start).min() else {
            return others;
        };
        if patience.is_some_and(|patience| patience <= period) {
            return others;
        }
        let until = now.after(period).0;
        let kept = self.kept_until.load(Ordering::SeqCst);
        // A thread that is overdue is not relied on.
        let is_kept = now.0 <= kept && kept <= until;
        let swap = || {
            self.kept_until
                .compare_exchange(kept, until, Ordering::AcqRel, Ordering::Relaxed)
        };
        if is_kept || swap().is_err() {
            return others;
        }
        Wait {
            limit: Some(period),
            is_patience: false,
            keeps_until: until,
        }
    }

    /// Ends a wait. Returns whether the thread answered for housekeeping: if it leaves the poller, it must wake
    /// another.
    #[inline]
    pub(super) fn end_wait(&self, wait: &Wait) -> bool {
        wait.keeps_until != 0
            && self
                .kept_until
                .compare_exchange(wait.keeps_until, 0, Ordering::SeqCst, Ordering::Relaxed)
                .is_ok()
    }

    /// Whether the calling thread has to do housekeeping now, which is due every `period`.
    pub(super) fn take_due(&self, now: Instant64, period: Duration) -> bool {
        let due = self.due.load(Ordering::Relaxed);
        let next = now.after(period).0;
        // A date further off than this period was set for less urgent work.
        if now.0 < due && due <= next {
            return false;
        }
        self.due
            .compare_exchange(due, next, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Whether to look for overdue messages and replies now; the next look is after `period`. A look that comes a period
    /// late or more is left out, but not two in a row: the process was stopped or its threads were busy, and what has
    /// arrived meanwhile is still to be read.
    pub(super) fn take_overdue_due(&self, now: Instant64, period: Duration) -> bool {
        let due = Instant64(self.overdue_due.load(Ordering::Relaxed));
        if !take(&self.overdue_due, now, period) {
            return false;
        }
        let is_late = now >= due.after(period);
        let leaves_out = is_late && !self.left_out.load(Ordering::Relaxed);
        self.left_out.store(leaves_out, Ordering::Relaxed);
        !leaves_out
    }

    /// Whether to look for idle connections now; the next look is after `period`.
    pub(super) fn take_idle_due(&self, now: Instant64, period: Duration) -> bool {
        take(&self.idle_due, now, period)
    }
}

/// For the thread that does housekeeping.
fn take(due: &AtomicU64, now: Instant64, period: Duration) -> bool {
    let is_due = now.0 >= due.load(Ordering::Relaxed);
    if is_due {
        due.store(now.after(period).0, Ordering::Relaxed);
    }
    is_due
}

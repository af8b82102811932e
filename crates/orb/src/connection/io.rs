//! What a lane lends to its connections: poller, buffers, accounts, clock, counters and trace.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::accounts::Accounts;
use crate::counters::{Counter, Counters};
use crate::slab::Slab;
use crate::trace::Trace;
use crate::transport::{Instant64, Poller, Transport};
use crate::wire::Sizes;

/// Shared by all connections of a lane.
pub(crate) struct Io {
    pub(crate) poller: Box<dyn Poller>,
    pub(crate) slab: Slab,
    /// The clock.
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) trace: Arc<Trace>,
    pub(crate) sizes: Sizes,
    /// What peers hold.
    pub(crate) accounts: Arc<Accounts>,
    /// A message may be unfinished, on its way in or out: housekeeping must look for overdue ones.
    unfinished: AtomicBool,
}

impl Io {
    pub(crate) fn new(
        poller: Box<dyn Poller>,
        slab: Slab,
        transport: Arc<dyn Transport>,
        counters: Arc<Counters>,
        trace: Arc<Trace>,
        sizes: Sizes,
        accounts: Arc<Accounts>,
    ) -> Self {
        Self {
            poller,
            slab,
            transport,
            counters,
            trace,
            sizes,
            accounts,
            unfinished: AtomicBool::new(false),
        }
    }

    #[inline]
    pub(crate) fn count(&self, counter: Counter) {
        self.counters.count(counter);
    }

    #[inline]
    pub(crate) fn now(&self) -> Instant64 {
        self.transport.now()
    }

    #[inline]
    pub(crate) fn has_unfinished(&self) -> bool {
        self.unfinished.load(Ordering::Relaxed)
    }

    pub(crate) fn set_unfinished(&self, is_so: bool) {
        self.unfinished.store(is_so, Ordering::SeqCst);
    }

    /// Polls `is_so` until it holds (there is no notification). Returns false at the deadline.
    pub(crate) fn poll_until(&self, deadline: Instant64, mut is_so: impl FnMut() -> bool) -> bool {
        loop {
            if is_so() {
                return true;
            }
            if self.now() >= deadline {
                return false;
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
    }
}

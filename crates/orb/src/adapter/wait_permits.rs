//! Limits how many threads of a lane may block on something other than events: a POA manager that holds requests, a
//! servant that is being made, or a reply that another thread of the lane must read.

use deckwatch_sync::Budget;

use crate::{Completion, SystemException, minor, raise};

/// Counts the threads of one lane that block. One thread is always left to serve.
#[derive(Debug)]
pub(crate) struct WaitPermits(Budget);

/// The right to block. Dropping returns it.
pub(crate) struct WaitPermit<'h>(&'h WaitPermits);

/// The limit under which a thread may block: that of its lane, or `None` for a thread of the application, which has
/// none.
pub(crate) type Patience<'h> = Option<&'h WaitPermits>;

impl WaitPermits {
    pub(crate) const fn new(max: usize) -> Self {
        Self(Budget::new(max))
    }

    pub(crate) fn take(&self) -> Option<WaitPermit<'_>> {
        self.0.take(1).then(|| WaitPermit(self))
    }
}

impl Drop for WaitPermit<'_> {
    fn drop(&mut self) {
        self.0.0.give(1);
    }
}

/// Takes a permit, if the thread needs one.
///
/// # Errors
/// TRANSIENT if no permit is left.
pub(crate) fn permit(patience: Patience<'_>) -> Result<Option<WaitPermit<'_>>, SystemException> {
    let busy = raise::transient(minor::REQUEST_DISCARDED, Completion::No);
    patience
        .map(|permits| permits.take().ok_or(busy))
        .transpose()
}

//! How many threads of a lane may wait for something other than events: a manager that holds, a servant that is being
//! made, a reply that another of them has to read.

use crate::budget::Budget;
use crate::{Completion, SystemException, minor, raise};

/// Counts the threads of one lane that wait; one is always left for the others.
#[derive(Debug)]
pub(crate) struct WaitPermits(Budget);

/// The right to wait, given back on drop.
pub(crate) struct WaitPermit<'h>(&'h WaitPermits);

/// Who waits: a thread of a lane, or one of the application that may wait for ever.
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

/// # Errors
/// TRANSIENT where no thread can be spared.
pub(crate) fn permit(patience: Patience<'_>) -> Result<Option<WaitPermit<'_>>, SystemException> {
    let busy = raise::transient(minor::REQUEST_DISCARDED, Completion::No);
    patience.map(|holds| holds.take().ok_or(busy)).transpose()
}

//! Waiting without sleeping: octets are read as soon as they arrive, at the cost of a processor.
//!
//! A thread of a real-time class may not spin: it would keep its processor from every thread below it.

use std::cell::Cell;
use std::time::Duration;

use deckwatch_os::schedule::{self, Class};

use super::{Instant64, Stream, Transport, TransportError};
use crate::limits::SPIN_SLICE;

/// Spin without limit, as long as there is nothing else to do.
pub const SPIN_FOREVER: Duration = Duration::MAX;

thread_local! {
    /// Whether this thread may spin, as of the last check.
    static MAY_SPIN: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Whether the calling thread is in the time-sharing class.
pub(crate) fn may_spin() -> bool {
    let may = schedule::class().is_ok_and(|class| class == Class::Other);
    MAY_SPIN.set(Some(may));
    may
}

/// Whether the calling thread may spin, as of the last check.
pub(crate) fn is_time_sharing() -> bool {
    MAY_SPIN.get().unwrap_or_else(may_spin)
}

/// As [`Stream::read`], but polls for `spin` before it sleeps. A thread of a real-time class sleeps at once; a thread
/// that has joined such a class since the last check sleeps after [`SPIN_SLICE`].
pub(crate) fn read_spinning(
    stream: &dyn Stream,
    into: &mut [u8],
    deadline: Option<Instant64>,
    mut spin: Duration,
    transport: &dyn Transport,
) -> Result<usize, TransportError> {
    if !is_time_sharing() {
        return stream.read(into, deadline);
    }
    while spin != Duration::ZERO {
        let slice = spin.min(SPIN_SLICE);
        if let Some(count) = stream.read_spinning(into, slice)? {
            return Ok(count);
        }
        if deadline.is_some_and(|at| at <= transport.now()) || !may_spin() {
            break;
        }
        if spin != SPIN_FOREVER {
            spin -= slice;
        }
    }
    stream.read(into, deadline)
}

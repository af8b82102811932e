//! The state of a connection: independent bits in one atomic word.
//!
//! ```text
//!              which octets are read                             by which thread
//!
//!   accepted                                            WATCHED by the poller (no bit)
//!      │  first message: BROUGHT                            │  ▲
//!      ▼                                            adopt   │  │ watch_again, hand_over
//!    open ──── the read returns 0 ─────► READ_OUT           ▼  │
//!      │                                    │           ADOPTED: a thread blocks in its read
//!      │ farewell or MessageError written   │ the last
//!      ▼                                    │ reply has gone        pauses of parsing
//!   PARTED ────────► closed ◄───────────────┘
//!                                               open ── hold_up ──► HELD_UP ── room ──► open
//!   notices for the next reader                 open ── park ─────► PARKED ── served ─► open
//!
//!   SIGNALLED: the poller reported an event       HANDED_OVER: octets are buffered but not parsed
//!   ENDED: the poller reported the end
//! ```
//!
//! A bit that two threads race for is changed by one read-modify-write operation, which is sequentially consistent. So
//! is every load. On the road of a request the word is only loaded.

use std::sync::atomic::{AtomicU32, Ordering};

/// The poller has reported an event since the connection was last read. Set by the thread that got the event; cleared
/// by the reader once it has the claim and before it reads. The reader checks it again after it has released the claim.
pub(super) const SIGNALLED: u32 = 1 << 0;
/// The poller has reported the end of the stream: the reader reads to the end, not until a read would block. Never
/// cleared.
pub(super) const ENDED: u32 = 1 << 1;
/// Everything that the peer sent has been read. Requests in progress are still answered; the thread that answers the
/// last one closes the connection. Set by the reader, never cleared.
pub(super) const READ_OUT: u32 = 1 << 2;
/// A thread blocks in the read of this connection, and the poller does not watch it. Set by that thread; cleared by
/// whichever thread makes the poller watch it again.
pub(super) const ADOPTED: u32 = 1 << 3;
/// Its requests are not read because replies are owed or its request queue is full. Set by the reader; cleared by the
/// thread that removes the cause, which then has the connection read on.
pub(super) const HELD_UP: u32 = 1 << 4;
/// Octets are buffered but not parsed, and the poller wake-up for them is still pending. Set by the thread that stops
/// parsing; cleared by the next reader, as [`SIGNALLED`].
pub(super) const HANDED_OVER: u32 = 1 << 5;
/// CloseConnection or MessageError has been written: no request is served any more. Set by the owner of the read claim,
/// never cleared.
pub(super) const PARTED: u32 = 1 << 6;
/// A message waits for a thread, and no message behind it is parsed before it is served. Set by the keeper of the lane;
/// cleared by the thread that served the message.
pub(super) const PARKED: u32 = 1 << 7;
/// At least one message has arrived. Never cleared.
pub(super) const BROUGHT: u32 = 1 << 8;

/// The word.
#[derive(Debug, Default)]
pub(super) struct State(AtomicU32);

impl State {
    /// Whether one of `bits` is set.
    #[inline]
    pub(super) fn has(&self, bits: u32) -> bool {
        self.0.load(Ordering::SeqCst) & bits != 0
    }

    /// Sets `bits`. Returns whether one of them was clear.
    #[inline]
    pub(super) fn set(&self, bits: u32) -> bool {
        self.0.fetch_or(bits, Ordering::SeqCst) & bits != bits
    }

    /// Clears `bits`. Returns whether one of them was set.
    #[inline]
    pub(super) fn clear(&self, bits: u32) -> bool {
        self.0.fetch_and(!bits, Ordering::SeqCst) & bits != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_changes_once_and_leaves_the_others() {
        let state = State::default();
        assert!(state.set(ADOPTED) && !state.set(ADOPTED));
        assert!(state.set(SIGNALLED | ENDED));
        assert!(state.has(ADOPTED) && state.has(ENDED | PARKED) && !state.has(PARKED));
        assert!(state.clear(SIGNALLED | HANDED_OVER) && !state.clear(SIGNALLED | HANDED_OVER));
        assert!(state.clear(ADOPTED) && !state.clear(ADOPTED));
        assert!(state.has(ENDED));
    }
}

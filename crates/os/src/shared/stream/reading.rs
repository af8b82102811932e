//! Reading from a connection through shared memory: without waiting, spinning, sleeping, or notified by a poller.

use std::io;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use super::super::handshake::{Greeting, hear_greeting};
use super::super::ring::{RING_SIZE, wait};
use super::waiting::{DEATH_LOOK, drain, remaining, ring_for, sleep, wait_for_greeting};
use super::{End, Rings, SharedStream, broken};
use crate::stream::{is_readable_now, monotonic_ns};

/// Checks of the ring that a spinning read makes between two readings of the clock.
const LOOKS_PER_CLOCK: u32 = 64;

impl SharedStream {
    /// Reads the greeting, if it has arrived. Returns 0 if the connection has ended instead.
    fn greeted(&self) -> io::Result<Option<usize>> {
        match hear_greeting(&self.arrival)? {
            Greeting::NotYet => Ok(self.closed.load(Ordering::Relaxed).then_some(0)),
            Greeting::Ended => Ok(Some(0)),
            Greeting::Heard(shared) => {
                let _ = self.shared.set(shared); // Another thread may have read it, too.
                if let Some(rings) = self.rings() {
                    rings.incoming.reader.0.taken.store(1, Ordering::Release);
                }
                Ok(None)
            }
        }
    }

    /// Takes the available octets. Returns `None` if there are none, 0 at the end.
    fn look(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(rings) = self.rings() else {
            let told = self.greeted()?;
            return match self.rings() {
                Some(_) => self.look(into),
                None => Ok(told),
            };
        };
        let ring = rings.incoming;
        // The end is checked before the octets, so that octets written before the end are read before it.
        let is_end = self.closed.load(Ordering::Relaxed)
            || self.silent.load(Ordering::Relaxed)
            || ring.written.0.ended.load(Ordering::Acquire) != 0;
        let (count, waited) = ring.take(&self.read, into).map_err(broken)?;
        if count != 0 {
            // A waiting writer has seen the ring full since the octets were last counted. However many are taken here,
            // a later take will start with half of the ring or more.
            if waited >= RING_SIZE / 2 && waited - count <= RING_SIZE / 2 {
                tell_of_room(rings);
            }
            return Ok(Some(count));
        }
        if !is_end {
            return Ok(None);
        }
        let taken = &rings.outgoing.reader.0.taken;
        let is_refused = self.end == End::Client && taken.load(Ordering::Acquire) == 0;
        if is_refused && !self.closed.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        Ok(Some(0))
    }

    /// Reads the octets that have arrived, waiting until `deadline_ns` (for ever without one). Returns 0 if the peer
    /// has ended its side.
    ///
    /// # Errors
    /// `TimedOut` at the deadline; `ConnectionRefused` if the server never accepted the connection and so read nothing
    /// of what was written; `InvalidData` if the other end has corrupted the memory.
    pub fn read(&self, into: &mut [u8], deadline_ns: Option<u64>) -> io::Result<usize> {
        let mut vain_wakes = 0;
        loop {
            // Available octets are returned even after the deadline.
            if let Some(count) = self.look(into)? {
                return Ok(count);
            }
            let slice = remaining(deadline_ns)?.min(DEATH_LOOK);
            if let Some(count) = self.read_after_sleep(into, slice, &mut vain_wakes)? {
                return Ok(count);
            }
        }
    }

    /// Reads, waiting at most about `wait`. Returns `None` if nothing arrived.
    ///
    /// # Errors
    /// `InvalidData` if the other end has corrupted the memory.
    pub fn read_within(&self, into: &mut [u8], wait: Duration) -> io::Result<Option<usize>> {
        match self.look(into)? {
            None => self.read_after_sleep(into, wait.min(DEATH_LOOK), &mut 0),
            some => Ok(some),
        }
    }

    fn read_after_sleep(
        &self,
        into: &mut [u8],
        limit: Duration,
        vain_wakes: &mut u32,
    ) -> io::Result<Option<usize>> {
        let Some(rings) = self.rings() else {
            wait_for_greeting(&self.arrival, limit);
            return self.look(into);
        };
        let word = &rings.incoming.reader.0.waits;
        word.store(wait::SLEEPS, Ordering::Relaxed);
        // SYNC: pairs with the fence in `ring_for`'s callers: either this thread finds the octets, or the caller finds
        // that it sleeps.
        fence(Ordering::SeqCst);
        let mut found = self.look(into);
        if matches!(found, Ok(None)) {
            let is_in_time = sleep(word, limit, vain_wakes);
            found = self.look(into);
            if matches!(found, Ok(None)) && !is_in_time && self.is_ended() {
                found = self.look(into);
            }
        }
        word.store(wait::AWAKE, Ordering::Relaxed);
        found
    }

    /// Reads as soon as octets arrive, checking repeatedly without sleeping, for `wait` at most. Returns `None` if
    /// nothing arrived.
    ///
    /// # Errors
    /// `InvalidData` if the other end has corrupted the memory.
    pub fn read_spinning(&self, into: &mut [u8], wait: Duration) -> io::Result<Option<usize>> {
        let mut give_up_ns = None;
        loop {
            for _ in 0..LOOKS_PER_CLOCK {
                if let Some(count) = self.look(into)? {
                    return Ok(Some(count));
                }
            }
            let now_ns = monotonic_ns();
            let wait_ns = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
            if now_ns >= *give_up_ns.get_or_insert(now_ns.saturating_add(wait_ns)) {
                return if self.is_ended() {
                    self.look(into)
                } else {
                    Ok(None)
                };
            }
        }
    }

    /// Reads the octets that have arrived without waiting. Returns `None` if there are none. After it has taken all,
    /// the next arrival wakes the poller.
    ///
    /// # Errors
    /// `InvalidData` if the other end has corrupted the memory.
    pub fn read_now(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        if self.arrival_rung.swap(false, Ordering::Relaxed) {
            drain(&self.arrival);
        }
        let mut total = 0;
        let mut is_told = false;
        loop {
            match self.look(&mut into[total..])? {
                Some(0) if total == 0 => return Ok(Some(0)),
                // The socket notifies of the end, too.
                Some(0) => return Ok(Some(total)),
                Some(count) => total += count,
                None if !is_told => {
                    self.awaits_arrival();
                    is_told = true;
                }
                None if total != 0 => return Ok(Some(total)),
                None if self.is_ended() => is_told = false,
                None => return Ok(None),
            }
            if total == into.len() {
                return Ok(Some(total));
            }
        }
    }

    /// Arms the notification of this end's poller for the next arrival.
    fn awaits_arrival(&self) {
        // Before the rings exist, the greeting makes the socket readable.
        let Some(rings) = self.rings() else {
            return;
        };
        self.arrival_rung.store(true, Ordering::Relaxed);
        let word = &rings.incoming.reader.0.waits;
        word.store(wait::WATCHES, Ordering::Relaxed);
        // SYNC: as in `read_after_sleep`.
        fence(Ordering::SeqCst);
    }

    /// Declares that a poller watches [`SharedStream::arrival`] from now on. Returns true if something can be read
    /// already; the poller gets no notification of that.
    pub fn begin_watch(&self) -> bool {
        self.awaits_arrival();
        self.has_something()
    }

    fn has_something(&self) -> bool {
        let Some(Rings { incoming: ring, .. }) = self.rings() else {
            return false;
        };
        self.closed.load(Ordering::Relaxed)
            || ring.written.0.ended.load(Ordering::Acquire) != 0
            || ring.waiting(self.read.load(Ordering::Relaxed)) != Ok(0)
    }

    /// Returns true if anything can be read now: octets, the peer's end or an error. Takes nothing out.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.has_something()
            || self.is_ended()
            || self.shared.get().is_none() && is_readable_now(self)
    }
}

/// Wakes a waiting writer. A writer waits for a full ring, and is woken when half of it is free.
fn tell_of_room(rings: Rings<'_>) {
    // SYNC: pairs with the fence in `awaits_room`: either the writer finds the room, or this thread finds that it
    // waits.
    fence(Ordering::SeqCst);
    ring_for(&rings.incoming.writer_waits.0, rings.room);
}

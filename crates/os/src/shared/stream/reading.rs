//! Reading from a connection through shared memory: at once, spinning, asleep, or told by a poller.

use std::io;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use super::super::handshake::{Greeting, hear_greeting};
use super::super::ring::{RING_SIZE, wait};
use super::waiting::{DEATH_LOOK, drain, remaining, ring_for, sleep, wait_for_greeting};
use super::{End, Rings, SharedStream, broken};
use crate::stream::{is_readable_now, monotonic_ns};

/// How often a spinning read looks before it looks at the clock.
const LOOKS_PER_CLOCK: u32 = 64;

impl SharedStream {
    /// Reads the greeting, where it has come. 0: an end came instead.
    fn greeted(&self) -> io::Result<Option<usize>> {
        match hear_greeting(&self.arrival)? {
            Greeting::NotYet => Ok(self.closed.load(Ordering::Relaxed).then_some(0)),
            Greeting::Ended => Ok(Some(0)),
            Greeting::Heard(shared) => {
                let _read_twice = self.shared.set(shared);
                if let Some(rings) = self.rings() {
                    rings.incoming.reader.0.taken.store(1, Ordering::Release);
                }
                Ok(None)
            }
        }
    }

    /// Takes what is there. `None`: nothing; 0: the end.
    fn look(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(rings) = self.rings() else {
            let told = self.greeted()?;
            return match self.rings() {
                Some(_) => self.look(into),
                None => Ok(told),
            };
        };
        let ring = rings.incoming;
        // Looked at before the octets: what was written before the end is read before it.
        let is_end = self.closed.load(Ordering::Relaxed)
            || self.silent.load(Ordering::Relaxed)
            || ring.written.0.ended.load(Ordering::Acquire) != 0;
        let (count, waited) = ring.take(&self.read, into).map_err(broken)?;
        if count != 0 {
            // A writer that waits has seen the ring full since octets were last counted: whatever of these is taken then, a take
            // that begins with half of the ring or more is still to come.
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

    /// Reads what has arrived, waiting until `deadline_ns` (for ever without one). 0: the peer has ended its side.
    ///
    /// # Errors
    /// `TimedOut` at the deadline, `ConnectionRefused` where the server never took the connection and so nothing of what was written,
    /// `InvalidData` where the other end has spoiled the memory.
    pub fn read(&self, into: &mut [u8], deadline_ns: Option<u64>) -> io::Result<usize> {
        let mut vain_wakes = 0;
        loop {
            // A deadline that has passed leaves what has come.
            if let Some(count) = self.look(into)? {
                return Ok(count);
            }
            let slice = remaining(deadline_ns)?.min(DEATH_LOOK);
            if let Some(count) = self.read_after_sleep(into, slice, &mut vain_wakes)? {
                return Ok(count);
            }
        }
    }

    /// Reads, waiting at most about `wait`. `None`: nothing came.
    ///
    /// # Errors
    /// `InvalidData` where the other end has spoiled the memory.
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
        // SYNC: pairs with the fence in `ring_for`'s callers: we find the octets, or they that we sleep.
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

    /// Reads as soon as octets are there, looking again and again without sleeping, for `wait` at most. `None`: nothing came.
    ///
    /// # Errors
    /// `InvalidData` where the other end has spoiled the memory.
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

    /// Reads what has arrived without waiting. `None`: nothing has. Where it has taken all, its poller is told of the next.
    ///
    /// # Errors
    /// `InvalidData` where the other end has spoiled the memory.
    pub fn read_now(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        if self.arrival_rung.swap(false, Ordering::Relaxed) {
            drain(&self.arrival);
        }
        let mut total = 0;
        let mut is_told = false;
        loop {
            match self.look(&mut into[total..])? {
                Some(0) if total == 0 => return Ok(Some(0)),
                // The socket has told of the end, too.
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

    /// Has its poller told of the next arrival.
    fn awaits_arrival(&self) {
        // Until then the socket tells of the greeting.
        let Some(rings) = self.rings() else {
            return;
        };
        self.arrival_rung.store(true, Ordering::Relaxed);
        let word = &rings.incoming.reader.0.waits;
        word.store(wait::WATCHES, Ordering::Relaxed);
        // SYNC: as in `read_after_sleep`.
        fence(Ordering::SeqCst);
    }

    /// Says that a poller watches [`SharedStream::arrival`] from now on; whether there is something to read already, which it is not told of.
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

    /// Whether anything can be read now: octets, the peer's end or an error. Takes nothing out.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.has_something()
            || self.is_ended()
            || self.shared.get().is_none() && is_readable_now(self)
    }
}

/// A writer that waits does so for a full ring, and is woken when half of it is free.
fn tell_of_room(rings: Rings<'_>) {
    // SYNC: pairs with the fence in `awaits_room`: it finds the room, or we that it waits.
    fence(Ordering::SeqCst);
    ring_for(&rings.incoming.writer_waits.0, rings.room);
}

//! Octets that have arrived on one connection and have not been served, in a lent buffer, cut into GIOP messages.
//!
//! It knows sizes, versions and limits, but no socket and no clock. An idle connection holds no buffer.

#[cfg(test)]
mod tests;

use std::collections::TryReserveError;
use std::ops::Range;
use std::sync::Arc;

use deckwatch_cdr::Divided;
use deckwatch_giop::{Assembly, HEADER_SIZE, ProtocolError};

use crate::accounts::{Account, Bound, Waits};
use crate::budget::OverBudget;
use crate::limits::{BUFFER_RETAINED_MAX, BUFFER_SIZE, READ_SIZE_MAX};
use crate::slab::Slab;
use crate::transport::Instant64;
use crate::wire;

/// A whole message in a buffer of its own.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) buffer: Vec<u8>,
    pub(crate) place: Range<usize>,
    /// The ends of its fragments, in GIOP 1.1.
    pub(crate) ends: Vec<u32>,
    /// Counts it for its peer while it waits.
    pub(crate) waits: Option<Waits>,
}

impl Arrived {
    /// A message of so many octets at the start of its buffer.
    #[inline]
    pub(crate) const fn at_start(buffer: Vec<u8>, count: usize) -> Self {
        Self {
            place: 0..count,
            buffer,
            ends: Vec::new(),
            waits: None,
        }
    }

    /// A message that fills its buffer.
    pub(crate) fn whole(buffer: Vec<u8>) -> Self {
        Self {
            place: 0..buffer.len(),
            buffer,
            ends: Vec::new(),
            waits: None,
        }
    }

    pub(crate) fn message(&self) -> Divided<'_> {
        Divided::new(&self.buffer[self.place.clone()], &self.ends)
    }

    /// Copies it into a buffer of its exact size, and returns the old buffer to the slab. Without memory for a copy it
    /// stays where it is.
    pub(crate) fn into_exact(self, slab: &Slab) -> Self {
        let Ok(copy) = copied(&self.buffer[self.place.clone()]) else {
            return self;
        };
        let exact = Self {
            ends: self.ends,
            waits: self.waits,
            ..Self::whole(copy)
        };
        slab.take_back(self.buffer);
        exact
    }

    /// Prepares it to wait: beyond its counted size it holds no more than a buffer of the slab to read into has.
    pub(crate) fn into_waiting(self, slab: &Slab) -> Self {
        let idle = self.buffer.capacity() - self.place.len();
        let is_written = self.place.len() == self.buffer.len();
        if idle > slab.size || is_written && idle != 0 {
            self.into_exact(slab)
        } else {
            self
        }
    }

    /// Octets that it holds in a buffer of its exact size.
    pub(crate) fn size(&self) -> usize {
        self.place.len() + size_of_val(&self.ends[..])
    }
}

/// Octets between the socket and the parser.
#[derive(Debug)]
pub(crate) struct Inbound {
    buffer: Option<Vec<u8>>,
    /// Octets of the buffer that have been polled as messages.
    consumed: usize,
    /// Octets of the buffer that have arrived.
    filled: usize,
    /// Messages in fragments; allocated with the first fragment.
    assembly: Option<Box<Assembly>>,
    size_max: usize,
    /// That of the peer, at a lane. A client's connections have none: their calls bound them.
    account: Option<Arc<Account>>,
    /// What has been taken from the account.
    charged: usize,
    /// Since when a message has been unfinished.
    begun: Option<Instant64>,
    /// The train of fragments that has been unfinished since then; `None` for an unfragmented message.
    begun_train: Option<u64>,
}

impl Inbound {
    /// Empty. Messages above `size_max` octets are a fault.
    pub(crate) const fn new(size_max: usize, account: Option<Arc<Account>>) -> Self {
        Self {
            buffer: None,
            consumed: 0,
            filled: 0,
            assembly: None,
            size_max,
            account,
            charged: 0,
            begun: None,
            begun_train: None,
        }
    }

    /// Starts with a buffer that has been read into already, outside any account. Without `count` the buffer is kept for
    /// reuse only.
    pub(crate) fn begin(&mut self, buffer: Vec<u8>, count: Option<usize>) {
        debug_assert!(self.buffer.is_none() && self.account.is_none());
        self.buffer = Some(buffer);
        self.filled = count.unwrap_or(0);
    }

    /// Changes the amount taken from the account to `octets`.
    fn charge(&mut self, octets: usize) -> Result<(), OverBudget> {
        if let Some(account) = &self.account {
            if octets > self.charged && !account.take(Bound::Inbound, octets - self.charged) {
                return Err(OverBudget);
            }
            if octets < self.charged {
                account.give(Bound::Inbound, self.charged - octets);
            }
            self.charged = octets;
        }
        Ok(())
    }

    /// The amount that counts in the account if the buffer has `len` octets.
    fn cost(&self, len: usize, slab: &Slab) -> usize {
        let joined = self.assembly.as_ref().map_or(0, |trains| trains.held());
        len.saturating_sub(slab.size) + joined
    }

    /// Nothing more can be read now. Returns the buffer to the slab if it is empty. Otherwise notes the time since when
    /// a message has been unfinished, and returns true.
    pub(crate) fn pause(&mut self, slab: &Slab, now: impl FnOnce() -> Instant64) -> bool {
        self.rest(slab);
        let oldest = self.oldest_train();
        let is_unfinished = self.is_within_message();
        if !is_unfinished {
            self.begun = None;
        } else if self.begun.is_none() || self.begun_train != oldest {
            self.begun = Some(now());
            self.begun_train = oldest;
        }
        is_unfinished
    }

    fn oldest_train(&self) -> Option<u64> {
        self.assembly.as_ref().and_then(|trains| trains.oldest())
    }

    /// A message is complete: none is unfinished any more, except a train of fragments that this did not end.
    fn end_message(&mut self) {
        if self.begun_train.is_none() || self.begun_train != self.oldest_train() {
            self.begun = None;
        }
    }

    /// Since when a message has been unfinished.
    pub(crate) const fn begun(&self) -> Option<Instant64> {
        self.begun
    }

    /// Room to read into, never empty and at most [`READ_SIZE_MAX`]. It doubles as octets arrive, whatever size a header claims. Behind a large
    /// message it ends with the next header, so that less of the next message must be moved to the front.
    ///
    /// # Errors
    /// [`OverBudget`].
    pub(crate) fn space(&mut self, slab: &Slab) -> Result<&mut [u8], OverBudget> {
        let (size_max, waits) = (self.size_max, self.filled - self.consumed);
        let mut len = self.buffer.as_ref().map_or(0, Vec::len);
        if len != 0 && waits == len {
            len = next_len(len).min(size_max.max(len + BUFFER_SIZE));
        }
        let cost = self.cost(len, slab);
        if cost != self.charged {
            self.charge(cost)?;
        }
        let buffer = match &mut self.buffer {
            Some(buffer) => buffer,
            none => none.insert(slab.try_lend().ok_or(OverBudget)?),
        };
        if self.consumed != 0 {
            buffer.copy_within(self.consumed..self.filled, 0);
            self.filled -= self.consumed;
            self.consumed = 0;
        }
        if self.filled == buffer.len() {
            let more = len - buffer.len();
            // A peer has announced the size: the process must not end for want of memory.
            buffer.try_reserve_exact(more).map_err(|_| OverBudget)?;
            buffer.resize(len, 0);
        }
        let (there, room) = buffer.split_at_mut(self.filled);
        let size = wire::stated_len(there);
        let end = if size > BUFFER_SIZE {
            size.saturating_sub(self.filled) + HEADER_SIZE
        } else {
            room.len()
        };
        let end = end.min(room.len()).min(READ_SIZE_MAX);
        Ok(&mut room[..end])
    }

    /// `count` octets have been read into [`Inbound::space`].
    pub(crate) fn handle_bytes(&mut self, count: usize) {
        self.filled += count;
    }

    /// The next whole message, as a place for [`Inbound::message`] or [`Inbound::detach`].
    ///
    /// # Errors
    /// [`ProtocolError`] if the octets are no GIOP message, or one that is too large: nothing behind it can be read.
    #[inline]
    pub(crate) fn poll_message(&mut self) -> Result<Option<Range<usize>>, ProtocolError> {
        let Some(len) = self.next_len()? else {
            return Ok(None);
        };
        let place = self.consumed..self.consumed + len;
        self.consumed = place.end;
        if self.begun.is_some() && !wire::is_fragmented(self.message(place.clone())) {
            self.end_message();
        }
        Ok(Some(place))
    }

    #[inline]
    fn next_len(&self) -> Result<Option<usize>, ProtocolError> {
        if self.consumed == self.filled {
            return Ok(None);
        }
        let Some(buffer) = &self.buffer else {
            return Ok(None);
        };
        let waiting = &buffer[self.consumed..self.filled];
        wire::whole_len(waiting, self.size_max)
    }

    /// Whether another message, or a fault, can be polled without reading.
    pub(crate) fn has_more(&self) -> bool {
        !matches!(self.next_len(), Ok(None))
    }

    /// Whether a message has begun to arrive, whole or in fragments, and not ended.
    pub(crate) fn is_within_message(&self) -> bool {
        self.consumed != self.filled || self.oldest_train().is_some()
    }

    /// Whether the octets that wait begin with an alert of TLS, in place of a message.
    pub(crate) fn is_tls(&self) -> bool {
        let buffer = self.buffer.as_deref().unwrap_or_default();
        let waiting = buffer.get(self.consumed..self.filled);
        waiting.is_some_and(|waiting| waiting.starts_with(TLS_ALERT))
    }

    /// Parsing pauses, so the time limit of an unfinished message starts again afterwards.
    pub(crate) fn excuse(&mut self) {
        self.begun = None;
    }

    /// The octets of a message, until the next read.
    pub(crate) fn message(&self, place: Range<usize>) -> &[u8] {
        self.buffer.as_ref().map_or(&[], |buffer| &buffer[place])
    }

    /// Joins the fragment polled last with those before it. Returns the message in a buffer of its own once it is
    /// complete.
    ///
    /// # Errors
    /// [`ProtocolError`] if it belongs to no message, if all unfinished messages together are too large, or if there is
    /// no memory for them.
    pub(crate) fn join(
        &mut self,
        place: Range<usize>,
        slab: &Slab,
    ) -> Result<Option<Arrived>, ProtocolError> {
        let fragment = self
            .buffer
            .as_ref()
            .map_or(&[][..], |buffer| &buffer[place]);
        let assembly = self
            .assembly
            .get_or_insert_with(|| Box::new(Assembly::new(self.size_max)));
        let copy = |whole: Divided<'_>| {
            let mut buffer = slab.lend_empty();
            buffer.try_reserve(whole.octets().len() + 1)?;
            buffer.extend_from_slice(whole.octets());
            Ok(Arrived {
                place: 0..buffer.len(),
                buffer,
                ends: copied(whole.ends())?,
                waits: None,
            })
        };
        let whole = assembly.accept(fragment)?.map(copy).transpose();
        let whole = whole.map_err(|_: TryReserveError| ProtocolError::MemoryExhausted)?;
        assembly.shrink(BUFFER_RETAINED_MAX);
        if whole.is_some() {
            self.end_message();
        }
        Ok(whole)
    }

    /// Drops the fragments of a cancelled request.
    pub(crate) fn cancel(&mut self, request_id: u32) {
        if let Some(assembly) = &mut self.assembly {
            assembly.cancel(request_id);
        }
    }

    /// Moves the buffer out with the message polled last, so that others may read while it is served. Octets behind it
    /// stay.
    ///
    /// # Errors
    /// [`OverBudget`] without memory for the octets behind it.
    pub(crate) fn detach(
        &mut self,
        place: Range<usize>,
        slab: &Slab,
    ) -> Result<Arrived, OverBudget> {
        let buffer = self.buffer.take().unwrap_or_default();
        let rest = &buffer[self.consumed.min(buffer.len())..self.filled.min(buffer.len())];
        if !rest.is_empty() {
            let mut kept = slab.try_lend().ok_or(OverBudget)?;
            if kept.len() < rest.len() {
                let more = rest.len() - kept.len();
                kept.try_reserve_exact(more).map_err(|_| OverBudget)?;
                kept.resize(rest.len(), 0);
            }
            kept[..rest.len()].copy_from_slice(rest);
            self.buffer = Some(kept);
        }
        self.filled -= self.consumed;
        self.consumed = 0;
        // Messages being served are bounded by the number of threads.
        // To lower the charge cannot fail.
        let _ = self.charge(self.cost(0, slab).min(self.charged));
        Ok(Arrived {
            buffer,
            place,
            ends: Vec::new(),
            waits: None,
        })
    }

    /// Takes back the buffer of [`Inbound::detach`] to read into. It goes to the slab if there is another already.
    pub(crate) fn reattach(&mut self, buffer: Vec<u8>, slab: &Slab) {
        let is_fit = buffer.len() >= slab.size && buffer.capacity() <= BUFFER_RETAINED_MAX;
        if is_fit && self.buffer.is_none() {
            self.buffer = Some(buffer);
        } else {
            slab.take_back(buffer);
        }
    }

    /// Returns the buffer to the slab, whatever is in it.
    pub(crate) fn discard(&mut self, slab: &Slab) {
        self.consumed = self.filled;
        self.rest(slab);
    }

    /// Returns the buffer to the slab if it is empty.
    pub(crate) fn rest(&mut self, slab: &Slab) {
        if self.consumed == self.filled
            && let Some(buffer) = self.buffer.take()
        {
            slab.take_back(buffer);
            self.consumed = 0;
            self.filled = 0;
            let cost = self.cost(0, slab);
            if cost < self.charged {
                // To lower the charge cannot fail.
                let _ = self.charge(cost);
            }
        }
    }
}

/// Copies what a peer has sent.
///
/// # Errors
/// Without memory for it.
pub(crate) fn copied<T: Copy>(values: &[T]) -> Result<Vec<T>, TryReserveError> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(values.len())?;
    copy.extend_from_slice(values);
    Ok(copy)
}

/// How a record of TLS begins that holds an alert: a server of TLS sends one where it reads GIOP.
const TLS_ALERT: &[u8] = &[21, 3];

/// The next size of a full buffer of `len` octets: double, but first the largest that the slab keeps.
const fn next_len(len: usize) -> usize {
    if len < BUFFER_RETAINED_MAX && 2 * len > BUFFER_RETAINED_MAX {
        BUFFER_RETAINED_MAX
    } else {
        2 * len
    }
}

impl Drop for Inbound {
    fn drop(&mut self) {
        // To lower the charge cannot fail.
        let _ = self.charge(0);
    }
}
